"""Long runs: so many cases of one reader, or of all; what fails is kept under corpus/.

    python tests/fuzz/run.py --reader bench-m2 --cases 1000000
    python tests/fuzz/run.py --cases 1000000 --piece 50000 --log runs.jsonl
    python tests/fuzz/run.py --sum runs.jsonl
    python tests/fuzz/run.py --reader bench-m2 --engine atheris --cases 200000

Case n is a function of (reader, seed, n) alone. The cases run in a child process: where it dies or
hangs in foreign code, the parent knows the case, keeps it and goes on behind it. With a log, the
cases that it holds are not run again: the same command goes on after a kill, which costs the piece
under way. `--engine atheris` lets coverage of our bytecode choose what is mutated on (pip install
atheris).
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import mmap
import os
import random
import re
import resource
import shutil
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]
STUCK_S = 180.0  # asleep, and no case done, for so long: foreign code hangs
SPINS_S = 60.0  # of CPU for one case: foreign code goes round and round


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    given.add_argument("--reader", action="append", help="a name of the table; default: all")
    given.add_argument("--cases", type=int, default=100_000)
    given.add_argument("--seed", type=int, default=1)
    given.add_argument("--first", type=int, default=0, help="number of the first case")
    given.add_argument("--piece", type=int, help="cases a reader at a time, all readers in turn")
    given.add_argument("--sum", type=Path, metavar="LOG", help="print the table of a log")
    given.add_argument("--engine", choices=("own", "atheris"), default="own")
    given.add_argument("--log", type=Path, help="append a line of JSON a reader")
    given.add_argument("--list", action="store_true")
    options = given.parse_args()
    if options.sum:
        print(table_of(options.sum))
        return 0
    if options.engine == "atheris":
        return _guided(options)
    from fuzz_readers import readers

    table = readers()
    if options.list:
        print("\n".join(table))
        return 0
    tempfile.tempdir = _fast()  # some readers keep a room of their own
    return 1 if _pieces(table, options) else 0


def _pieces(table, options: argparse.Namespace) -> int:
    """All cases of all readers, a piece of each in turn; gives the number of failures."""
    names, end = options.reader or list(table), options.first + options.cases
    size, failed = options.piece or options.cases, 0
    for first in range(options.first, end, size):
        for name in names:
            at = max(first, _done(options.log, name, options.seed))
            if (last := min(first + size, end)) <= at:
                continue
            record = long_run(table[name], last - at, options.seed, at)
            line = json.dumps(record, ensure_ascii=False)
            print(line, flush=True)
            if options.log:
                with options.log.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
            failed += record["failures"]
    return failed


def _records(log: Path | None) -> Iterator[dict]:
    lines = log.read_text("utf-8").splitlines() if log and log.exists() else []
    for line in lines:
        with contextlib.suppress(ValueError):  # a line that a kill cut short
            yield json.loads(line)


def _done(log: Path | None, name: str, seed: int) -> int:
    """The number of the first case behind those of the log."""
    ends = [
        record["first"] + record["cases"]
        for record in _records(log)
        if (record["reader"], record["seed"]) == (name, seed)
    ]
    return max(ends, default=0)


def table_of(log: Path) -> str:
    """A line of Markdown a reader: cases, failures, the slowest case, the most memory."""
    found: dict[str, dict] = {}
    for record in _records(log):
        whole = found.setdefault(record["reader"], dict.fromkeys(("cases", "failures", "hangs"), 0))
        for name in ("cases", "failures", "hangs"):
            whole[name] += record[name]
        for name in ("slowest_s", "peak_mib"):
            whole[name] = max(whole.get(name, 0), record[name])
    lines = [
        "| reader | cases | failures | hangs | slowest case, s | most memory, MiB |",
        "| --- " + "| ---: " * 5 + "|",
        *(f"| {name} | {w['cases']:,} | {w['failures']} | {w['hangs']} | {w['slowest_s']:.2f} | "
          f"{w['peak_mib']:,} |" for name, w in found.items()),
        f"| all | {sum(w['cases'] for w in found.values()):,} | | | | |",
    ]  # fmt: skip
    return "\n".join(lines)


def long_run(reader, cases: int, seed: int, first: int = 0) -> dict[str, object]:
    """Runs the cases in a child that is started again behind every case it died of."""
    started, cpu = time.monotonic(), _child_cpu()
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
    return {
        "reader": reader.name, "first": first, "cases": cases, "seed": seed,
        "failures": sum(kinds.values()),
        "hangs": sum(n for kind, n in kinds.items() if "more than" in kind or "still" in kind),
        "kinds": dict(kinds), "outcomes": dict(outcomes.most_common()), "peak_mib": peak,
        "slowest_s": round(slowest, 3),
        "seconds": round(time.monotonic() - started, 1), "cpu_s": round(_child_cpu() - cpu, 1),
    }  # fmt: skip


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
    """0, or how the child ended; one that stands still is killed.

    One that would run but gets no turn, because the machine is busy, does not stand still.
    """
    last, since, cpu = -1, time.monotonic(), 0.0
    while True:
        used = _cpu_and_state(child)
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return abs(os.waitstatus_to_exitcode(status))
        now = struct.unpack("<q", page[:8])[0]
        if now != last:
            last, since, cpu = now, time.monotonic(), used[0]
        elif used[1] == "R":
            since = time.monotonic()
        if time.monotonic() - since > STUCK_S or used[0] - cpu > SPINS_S:
            os.kill(child, 9)
        time.sleep(0.05)


def _cpu_and_state(process: int) -> tuple[float, str]:
    """Seconds of CPU so far, and R where it runs or waits for its turn."""
    fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), fields[0]


def keep(name: str, data: bytes) -> Path:
    """Write a failing case where the suite replays it."""
    folder = HERE / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    return path


def _guided(options: argparse.Namespace) -> int:
    """One reader under atheris; libFuzzer's own lines go to stderr."""
    import atheris
    from fuzz_case import LeakError, check, kind_of

    (name,) = options.reader
    folder = Path(tempfile.mkdtemp(dir=_fast()))
    ours = ["cecdata", "cecbench", "cectrain"]
    with atheris.instrument_imports(include=ours, exclude=_kernels(ours)):
        from fuzz_readers import readers

        reader = readers()[name]
        for seed in reader.mutator.seeds:  # readers import late: what is imported here is measured
            check(reader, seed, folder / reader.file)
    seeds = folder / "seeds"
    seeds.mkdir()
    for number, seed in enumerate(reader.mutator.seeds):
        (seeds / str(number)).write_bytes(seed)
    seen: set[str] = set()

    def one(data: bytes) -> None:
        try:
            check(reader, data, folder / reader.file)
        except LeakError as error:
            if (kind := kind_of(error)) not in seen:
                seen.add(kind)
                print(f"{keep(name, data).name}: {error}", file=sys.stderr, flush=True)

    def mutate(data: bytes, longest: int, number: int) -> bytes:
        if number % 2:
            return atheris.Mutate(data, len(data))
        return reader.mutator.changed(random.Random(number), bytearray(data))[:longest]

    arguments = [sys.argv[0], f"-runs={options.cases}", "-max_len=65536", "-rss_limit_mb=0",
                 f"-seed={options.seed}", "-timeout=30", str(seeds)]  # fmt: skip
    atheris.Setup(arguments, one, custom_mutator=mutate)
    atheris.Fuzz()
    return 0


def _kernels(packages: list[str]) -> list[str]:
    """Modules with compiled functions: numba compiles no bytecode that counts its coverage."""
    root, makers = HERE.parents[1], re.compile(r"numba|kernels\.jit import")
    files = (path for package in packages for path in (root / package).rglob("*.py"))
    found = (path for path in files if makers.search(path.read_text("utf-8")))
    return [".".join(path.relative_to(root).with_suffix("").parts) for path in found]


def _fast() -> str | None:
    """A folder in memory, where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _child_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
