"""Damage to the state of a finished run, for commands that verify its folder."""

from __future__ import annotations

from pathlib import Path

from cecdata.common.durable import fingerprint
from cecdata.common.durable.files import sha256_of
from cecdata.common.durable.journal import read_lines
from cecdata.common.durable.workspace import JOURNAL, STATE


def damage_of(root: Path) -> list[tuple[str, str]]:
    """Return (file, problem) for each damaged file of a run's state; nothing is changed.

    A folder without a state, such as a copy of the results, has no damage.
    """
    state = root / STATE
    if not state.is_dir():
        return []
    entries, damage, whole, size = read_lines(state / JOURNAL, root)
    problems = [(f"{STATE}/{JOURNAL}", text) for text in damage]
    if whole < size:
        problems.append((f"{STATE}/{JOURNAL}", "its last line is torn or damaged"))
    bound = [e.facts.get("sha256") for e in entries if e.step == fingerprint.BOUND]
    named_by = state / fingerprint.FILE
    if not named_by.is_file() or sha256_of(named_by).sha256 not in bound[-1:]:
        problems.append((f"{STATE}/{fingerprint.FILE}", "not the one that the journal names"))
    return problems
