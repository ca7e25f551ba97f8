"""Doing harm over and over, and counting what came of it."""

from __future__ import annotations

import math
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness import ANY, Ended, Fault, Zygote, differing
from scenarios import Scenario

REFUSED = (1, 4, 5)  # exit codes of a command that could not do its work


@dataclass(slots=True)
class Figures:
    """What a campaign saw; all but the first two must stay at zero."""

    kills: int = 0
    finished: int = 0  # outputs that reached their end
    partial: int = 0  # files under a final name that were not whole
    differing: int = 0  # finished outputs that are not those of an unbroken run
    lost: int = 0  # rows
    duplicate: int = 0
    told: list[str] = field(default_factory=list)  # of what must not be, in words

    def line(self, name: str) -> str:
        """A row of the table in docs/reports/reliability.md."""
        return (
            f"| {name} | {self.kills} | {self.finished} | {self.partial} | {self.lost} | "
            f"{self.duplicate} | {self.differing} |"
        )


@dataclass(frozen=True, slots=True)
class Unbroken:
    """A run that nobody disturbed."""

    tree: dict[str, bytes]
    rows: Counter[str]
    seconds: float
    steps: int
    calls: int
    kinds: Mapping[str, int]

    @classmethod
    def of(cls, zygote: Zygote, scenario: Scenario, out: Path) -> Unbroken:
        """Run it twice, because the first may compile kernels; the second is kept."""
        for _ in range(2):
            shutil.rmtree(out, ignore_errors=True)
            ended = zygote.done(*scenario.words(out), fault=Fault(out))
        return cls(
            scenario.tree(out), scenario.rows(out), ended.seconds, ended.steps, ended.matched,
            ended.kinds,
        )  # fmt: skip


def kill_over_and_over(
    zygote: Zygote,
    scenario: Scenario,
    folder: Path,
    kills: int,
    seed: int,
    minutes: float = math.inf,
) -> Figures:
    """SIGKILL at random instants, steps and calls; each output is killed until it is finished.

    After so many minutes what was begun is finished, and the kills that came so far count.
    """
    rng, found = random.Random(seed), Figures()
    wanted = Unbroken.of(zygote, scenario, folder / "unbroken")
    out = folder / "out"
    attempts, end = 0, time.monotonic() + 60 * minutes
    while found.kills < kills and time.monotonic() < end:
        attempts += 1
        assert attempts <= 8 * kills, f"only {found.kills} of {attempts} runs could be killed"
        ended = _killed_somewhere(zygote, scenario, out, wanted, rng)
        for name in scenario.partial(out, wanted.tree):
            found.partial += 1
            found.told.append(f"{scenario.name}: {name} is under its final name and not whole")
        if ended.killed:
            found.kills += 1
        elif ended.code == 0:
            _compare(found, scenario, out, wanted)
            shutil.rmtree(out)
        else:
            found.told.append(f"{scenario.name}: exit {ended.code}: {ended.text[-500:]}")
            found.differing += 1
            shutil.rmtree(out, ignore_errors=True)
    ended = zygote.run(*scenario.words(out))
    if ended.code:
        found.differing += 1
        found.told.append(f"{scenario.name}: does not go on: {ended.text[-500:]}")
    else:
        _compare(found, scenario, out, wanted)
    return found


def _killed_somewhere(
    zygote: Zygote, scenario: Scenario, out: Path, wanted: Unbroken, rng: random.Random
) -> Ended:
    """Strikes fall on the early part more often: an output that was begun has less to do."""
    words, how = scenario.words(out), rng.choice(("instant", "step", "call", "torn"))
    share = rng.random() ** 1.5
    if how == "instant":
        return zygote.run(*words, after_s=share * wanted.seconds)
    if how == "step":
        return zygote.run(*words, step=1 + int(share * wanted.steps))
    if how == "torn":
        fault = Fault(out, 1 + int(share * wanted.calls / 3), "kill-torn", calls=("write",))
    else:
        fault = Fault(out, 1 + int(share * wanted.calls), "kill")
    return zygote.run(*words, fault=fault)


def _compare(found: Figures, scenario: Scenario, out: Path, wanted: Unbroken) -> None:
    found.finished += 1
    names = differing(scenario.tree(out), wanted.tree)
    if names:
        found.differing += 1
        found.told.append(f"{scenario.name}: finished, but other bytes: {', '.join(names[:5])}")
    rows = scenario.rows(out)
    found.lost += sum((wanted.rows - rows).values())
    found.duplicate += sum((rows - wanted.rows).values())


@dataclass(slots=True)
class Sweep:
    """What the fault shim brought about."""

    cases: int = 0
    refused: int = 0  # exit ≠ 0
    survived: int = 0  # exit 0 with the whole output: the call was tried again, or not needed
    told: list[str] = field(default_factory=list)

    def line(self, name: str, what: str) -> str:
        """A row of the table in docs/reports/reliability.md."""
        counts = (self.cases, self.refused, self.survived, len(self.told))
        return f"| {name} | {what} | {' | '.join(map(str, counts))} |"


#: what is done to which calls; every k of each
ORDEALS = {
    "ENOSPC": ("fail", "ENOSPC", ANY),
    "ENOSPC for good": ("stick", "ENOSPC", ("open", "write", "mkdir", "fsync", "truncate")),
    "EIO": ("fail", "EIO", ANY),
    "EINTR": ("fail", "EINTR", ANY),
    "short write": ("short", "EIO", ("write",)),
    "half, then ENOSPC": ("torn", "ENOSPC", ("write",)),
    "EIO on reading back": ("fail", "EIO", ("read",)),
    "short read": ("short", "EIO", ("read",)),
    "SIGKILL before": ("kill", "EIO", ANY),
    "SIGKILL after half": ("kill-torn", "EIO", ("write",)),
}


def sweep(
    zygote: Zygote,
    scenario: Scenario,
    folder: Path,
    ordeal: str,
    wanted: Unbroken,
    ks: Sequence[int] | None = None,
) -> Sweep:
    """The k-th call fails, for every k (or these): an error that tells, then the same again."""
    found, out = Sweep(), folder / "out"
    action, error, calls = ORDEALS[ordeal]
    k = 0
    while ks is None or k < len(ks):
        shutil.rmtree(out, ignore_errors=True)
        number = k + 1 if ks is None else ks[k]
        k += 1
        fault = Fault(out, number, action, error, calls)
        ended = zygote.run(*scenario.words(out), fault=fault)
        if not ended.hit:
            if ended.code:  # nothing was done to it
                found.told.append(
                    f"{scenario.name}, {ordeal}: exit {ended.code}: {ended.text[-300:]}"
                )
            if ks is None or ended.code:
                break
            continue
        found.cases += 1
        where = f"{scenario.name}, {ordeal}, call {number} ({ended.hit} {ended.path})"
        found.told += (f"{where}: {what}" for what in _judged(found, scenario, out, ended, wanted))
        if ended.code == 0:
            continue  # it has just been compared with the unbroken run
        again = zygote.run(*scenario.words(out))
        if again.code:
            found.told.append(f"{where}: afterwards exit {again.code}: {again.text[-300:]}")
        elif names := differing(scenario.tree(out), wanted.tree):
            found.told.append(f"{where}: afterwards other bytes: {', '.join(names[:5])}")
    return found


def _judged(
    found: Sweep, scenario: Scenario, out: Path, ended: Ended, wanted: Unbroken
) -> Iterator[str]:
    """What is wrong with how a command met its fault."""
    if ended.killed:
        found.refused += 1
    elif ended.code == 0:
        found.survived += 1
        if names := differing(scenario.tree(out), wanted.tree):
            yield f"exit 0, but other bytes: {', '.join(names[:5])}"
        return
    else:
        found.refused += 1
        if ended.code not in REFUSED:
            yield f"exit {ended.code}: {ended.text[-300:]}"
        if "Traceback" in ended.text:
            yield f"a traceback: {ended.text[-400:]}"
        # Where the folder could not be made, the one that it was to lie in is named.
        if str(out.parent if ended.hit == "mkdir" else out) not in ended.text:
            yield f"the message does not name the folder: {ended.text[-300:]}"
    for name in scenario.partial(out, wanted.tree):
        yield f"{name} is under its final name and not whole"
