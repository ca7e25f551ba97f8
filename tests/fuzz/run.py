"""Long runs: so many cases of one reader, or of all; what fails is kept under corpus/.

    python tests/fuzz/run.py --reader bench-m2 --cases 1000000

Case n is a function of (reader, seed, n) alone. The cases run in a child process: where it dies or
hangs in foreign code, the parent knows the case, keeps it and goes on behind it. For each reader a
line of a table is printed.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import mmap
import os
import resource
import shutil
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]
STUCK_S = 300.0  # no case done for so long: foreign code hangs


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    given.add_argument("--reader", action="append", help="a name of the table; default: all")
    given.add_argument("--cases", type=int, default=100_000)
    given.add_argument("--seed", type=int, default=1)
    given.add_argument("--first", type=int, default=0, help="number of the first case")
    given.add_argument("--list", action="store_true")
    options = given.parse_args()
    from fuzz_readers import readers

    table, failed = readers(), 0
    if options.list:
        print("\n".join(table))
        return 0
    tempfile.tempdir = _fast()  # some readers keep a room of their own
    print("| reader | cases | failures | hangs | slowest case, s | most memory, MiB |")
    print("| --- " + "| ---: " * 5 + "|", flush=True)
    for name in options.reader or list(table):
        found = long_run(table[name], options.cases, options.seed, options.first)
        print(
            f"| {name} | {found['cases']:,} | {found['failures']} | {found['hangs']} | "
            f"{found['slowest_s']:.2f} | {found['peak_mib']:,} |",
            flush=True,
        )
        failed += bool(found["failures"])
    return 1 if failed else 0


def long_run(reader, cases: int, seed: int, first: int = 0) -> dict[str, object]:
    """Runs the cases in a child that is started again behind every case it died of."""
    _make_seeds(reader)
    kinds: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    peak, slowest = 0, 0.0
    with tempfile.TemporaryDirectory(dir=_fast()) as room:
        page = mmap.mmap(-1, 4096)
        at = first
        while at < first + cases:
            page[:8] = struct.pack("<q", at)
            told = Path(room) / "told.json"
            told.unlink(missing_ok=True)
            child = os.fork()
            if child == 0:
                os._exit(_child(reader, at, first + cases, seed, Path(room), page, told))
            code = _wait(child, page)
            done = struct.unpack("<q", page[:8])[0]
            if told.exists():
                found = json.loads(told.read_text("utf-8"))
                kinds.update(found["kinds"])
                outcomes.update(found["outcomes"])
                peak = max(peak, found["peak_mib"])
                slowest = max(slowest, found["slowest_s"])
            if code:
                keep(reader.name, reader.mutator.case(f"{reader.name}:{seed}", done))
                kinds["stood still" if code == 9 else f"the process ended with {code}"] += 1
                done += 1
            at = done
    hangs = sum(n for kind, n in kinds.items() if "more than" in kind or "still" in kind)
    print(f"{reader.name}: {dict(kinds)} {dict(outcomes.most_common())}", file=sys.stderr)
    return {"cases": cases, "failures": sum(kinds.values()), "hangs": hangs, "peak_mib": peak,
            "slowest_s": slowest}  # fmt: skip


@functools.cache
def _make_seeds(reader) -> None:
    """In a child, because making them starts threads; all pieces draw from the same ones."""
    into, out = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with os.fdopen(out, "w") as pipe:
                json.dump([seed.hex() for seed in reader.mutator.seeds], pipe)
        except Exception:  # noqa: BLE001 - whatever it was, the child ends here
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(out)
    with os.fdopen(into) as pipe:
        reader.mutator.draw_from(tuple(bytes.fromhex(seed) for seed in json.load(pipe)))
    os.waitpid(child, 0)


def _child(reader, first: int, end: int, seed: int, room: Path, page, told: Path) -> int:
    from fuzz_case import LeakError, check, kind_of

    kinds: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    folder = room / "case"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    path, salt = folder / reader.file, f"{reader.name}:{seed}"
    slowest = 0.0
    number = first
    for number in range(first, end):
        page[:8] = struct.pack("<q", number)
        data = reader.mutator.case(salt, number)
        started = time.process_time()
        try:
            outcome = check(reader, data, path)
            outcomes[outcome if outcome.endswith("Error") else "read"] += 1
        except LeakError as error:
            kind = kind_of(error)
            kinds[kind] += 1
            if kinds[kind] == 1:
                kept = keep(reader.name, data)
                print(f"{kept.name}, case {number}: {error}", file=sys.stderr, flush=True)
        if number > first:  # the first one imports
            slowest = max(slowest, time.process_time() - started)
    page[:8] = struct.pack("<q", end)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    found = {"kinds": kinds, "outcomes": outcomes, "peak_mib": peak, "slowest_s": slowest}
    told.write_text(json.dumps(found))
    return 0


def _wait(child: int, page) -> int:
    """0, or how the child ended; one that stands still is killed."""
    last, since = -1, time.monotonic()
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return abs(os.waitstatus_to_exitcode(status))
        now = struct.unpack("<q", page[:8])[0]
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > STUCK_S:
            os.kill(child, 9)
        time.sleep(0.05)


def keep(name: str, data: bytes) -> Path:
    """Write a failing case where the suite replays it."""
    folder = HERE / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    return path


def _fast() -> str | None:
    """A folder in memory, where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


if __name__ == "__main__":
    sys.exit(main())
