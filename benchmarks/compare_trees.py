"""Compare the CPU time of the same command lines in two checkouts, in interleaved pairs.

    python benchmarks/compare_trees.py OTHER_CHECKOUT --pool clean.parquet [--pairs 7] [--only TEXT]

Both checkouts run on this interpreter, one after the other in every pair, with one thread, after a
warm-up that compiles the kernels. The script prints the median, the least and the greatest of the
ratios (this checkout over the other; below 1 is faster). CPU time is that of the whole process,
start included.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import polars as pl

HERE = Path(__file__).parents[1]
SENTENCES = 40_000
ROWS = 40_000
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}

CECDATA, CECBENCH, CECTRAIN = (
    f"from {name}.cli import main; main()" for name in ("cecdata", "cecbench", "cectrain")
)
BUILD = ["build", "pool.txt", "--out", "data", "--overwrite", "--workers", "1"]
TRAIN = ["train", "pairs", "--out", "train", "--overwrite", "--sft-steps", "0", "--updates", "20"]
TRAIN += ["--set", "policy.name=policy"]  # another policy samples other candidates
JOBS: dict[str, tuple[str, list[str]]] = {
    "build, 8 copies, no cosine": (CECDATA, [*BUILD, "--copies", "8", "--filters", "levenshtein"]),
    "build, 4 copies, built-in encoder": (CECDATA, [*BUILD, "--encoder", "builtin"]),
    "build, recipe typed": (
        CECDATA,
        [*BUILD, "--recipe", "typed", "--filters", "levenshtein"],
    ),
    "score, cscd": (CECBENCH, ["score", "answers.tsv"]),
    "score, sighan": (CECBENCH, ["score", "answers.tsv", "--scorer", "sighan"]),
    "score, cherrant": (CECBENCH, ["score", "answers.tsv", "--scorer", "cherrant"]),
    "train, 20 batches": (CECTRAIN, TRAIN),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--pool", type=Path, required=True, help="Parquet file with a column text.")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--only", default="", help="Run the jobs whose name contains this text.")
    given = parser.parse_args()
    trees = (HERE, given.other.resolve())
    with tempfile.TemporaryDirectory() as folder:
        rooms = [Path(folder) / name for name in ("this", "other")]
        for room, tree in zip(rooms, trees, strict=True):
            prepare(room, tree, given.pool)
            shutil.copytree(trees[1] / "cectrain/weights", room / "policy")
        for name, (program, words) in JOBS.items():
            if given.only in name:
                compare(name, program, words, list(zip(rooms, trees, strict=True)), given.pairs)


def prepare(room: Path, tree: Path, pool: Path) -> None:
    """Write the inputs of all jobs; the dataset for training is built by the checkout itself."""
    room.mkdir()
    texts = pl.scan_parquet(pool, glob=False).head(SENTENCES).collect()["text"]
    (room / "pool.txt").write_text("\n".join(texts) + "\n", "utf-8")
    rows = (f"{n}\t{t[:-2]}的了\t{t}\t{t if n % 3 else t[:-1] + '了'}" for n, t in enumerate(texts))
    (room / "answers.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    cpu_seconds(CECDATA, ["build", "sample", "--out", "pairs"], room, tree)


def compare(
    name: str, program: str, words: Sequence[str], sides: Sequence[tuple[Path, Path]], pairs: int
) -> None:
    """Run a job in both checkouts in turn, and print the ratios of their CPU times."""
    for room, tree in sides:
        cpu_seconds(program, words, room, tree)
    spent = [[cpu_seconds(program, words, *side) for side in sides] for _ in range(pairs)]
    ratios = sorted(this / other for this, other in spent)
    medians = [statistics.median(column) for column in zip(*spent, strict=True)]
    print(
        f"{name:36}{statistics.median(ratios):7.3f}  [{ratios[0]:.3f}, {ratios[-1]:.3f}]"
        f"   {medians[0]:.2f} s, {medians[1]:.2f} s",
        flush=True,
    )


def cpu_seconds(program: str, words: Sequence[str], room: Path, tree: Path) -> float:
    """Run a command line in a folder with a checkout's packages; return its CPU time."""
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(tree)}
    command = [sys.executable, "-c", program, *words]
    with (room / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=room, env=environment, stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{tree}: {' '.join(words)}\n{(room / 'log').read_text('utf-8')}")
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
