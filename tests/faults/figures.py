"""The long campaigns, and the tables of docs/reports/reliability.md that they print.

    python tests/faults/figures.py kills --count 300
    python tests/faults/figures.py calls --only bench

`--only NAME` takes one scenario (repeatable); `--every N` of `calls` takes each N-th call only.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

import loopback
import scenarios
from campaign import ORDEALS, Unbroken, kill_over_and_over, sweep
from harness import Zygote
from scenarios import Scenario

#: kills out of every hundred; training costs a hundred times as much as the others
SHARES = {"build": 35, "bench": 10, "api": 15, "sft": 6, "train": 4, "export": 5}
SMALL = {"build": (30, 20, "--holdout", "0"), "bench": (12,)}


@contextmanager
def room() -> Iterator[Path]:
    """In memory where there is one."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@contextmanager
def prepared(name: str, folder: Path, *, small: bool = False) -> Iterator[tuple[Scenario, Zygote]]:
    """A scenario with its inputs, and a warm process that runs it."""
    trains = name in ("sft", "train")
    zygote = Zygote(folder / "log.txt", "cecdata", "cectrain" if trains else "cecbench")
    try:
        if trains:
            data = scenarios.build(folder, 60, 40, "--holdout", "0.3")
            assert zygote.run(*data.words(folder / "data")).code == 0
            scenarios.tiny_policy(folder / "tiny")
            yield getattr(scenarios, name)(folder / "data", folder / "tiny"), zygote
        elif name == "export":
            data = scenarios.build(folder, 60, 40)
            assert zygote.run(*data.words(folder / "data")).code == 0
            yield scenarios.export(folder / "data"), zygote
        elif name == "api":
            with loopback.serving() as server:
                yield scenarios.asked(folder, server.url), zygote
        else:
            sizes = SMALL[name] if small else ()
            yield getattr(scenarios, name)(folder, *sizes), zygote
    finally:
        zygote.close()


def kills(names: list[str], count: int, seed: int, minutes: float = math.inf) -> list[str]:
    """SIGKILL over and over; gives what must not have been."""
    print("| run | SIGKILLs | runs to the end | partial files | rows lost | rows twice "
          "| other bytes |")  # fmt: skip
    print("| --- " + "| ---: " * 6 + "|", flush=True)
    told: list[str] = []
    for name in names:
        wanted = max(1, round(count * SHARES[name] / sum(SHARES[n] for n in names)))
        with room() as folder, prepared(name, folder) as (scenario, zygote):
            found = kill_over_and_over(zygote, scenario, folder, wanted, seed, minutes)
            print(found.line(name), flush=True)
        told += found.told
    return told


def calls(names: list[str], every: int, ordeals: list[str]) -> list[str]:
    """The k-th call fails, for every k."""
    print("| run | what happens to the k-th call | k tried | refused | done all the same | wrong |")
    print("| --- | --- " + "| ---: " * 4 + "|", flush=True)
    told: list[str] = []
    for name in names:
        with room() as folder, prepared(name, folder, small=True) as (scenario, zygote):
            wanted = Unbroken.of(zygote, scenario, folder / "unbroken")
            for ordeal in ordeals:
                matched = sum(wanted.kinds[call] for call in ORDEALS[ordeal][2])
                ks = range(1, matched + 1, every) if every > 1 else None
                found = sweep(zygote, scenario, folder, ordeal, wanted, ks)
                print(found.line(name, ordeal), flush=True)
                told += found.told
    return told


def main() -> int:
    """0 where nothing was wrong."""
    known = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known.add_argument("what", choices=["kills", "calls"])
    known.add_argument("--only", action="append", choices=list(SHARES))
    known.add_argument("--count", type=int, default=300, help="of kills, in all")
    known.add_argument("--every", type=int, default=1, help="take each N-th call only")
    known.add_argument("--ordeal", action="append", choices=list(ORDEALS))
    known.add_argument("--minutes", type=float, default=math.inf, help="of kills, each scenario")
    known.add_argument("--seed", type=int, default=20)
    chosen = known.parse_args()
    names = chosen.only or list(SMALL if chosen.what == "calls" else SHARES)
    if chosen.what == "kills":
        told = kills(names, chosen.count, chosen.seed, chosen.minutes)
    else:
        told = calls(names, chosen.every, chosen.ordeal or list(ORDEALS))
    for line in told:
        print(f"WRONG: {line}", file=sys.stderr)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
