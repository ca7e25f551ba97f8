"""What tests share: a target with corruptions applied."""

from __future__ import annotations

from collections.abc import Iterable

from cecdata.hanzi.edits import Corruption, splice


def apply(target: str, edits: Iterable[Corruption]) -> str:
    """Return the source: the target with every edit applied."""
    return splice(target, ((edit.start, edit.end, edit.source) for edit in edits))
