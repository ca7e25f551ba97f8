"""Draw random corruptions for a person to judge, and compute the shares judged plausible.

    python experiments/reading/verdicts.py draw homophone --recipe typed --seed 1
    python experiments/reading/verdicts.py draw homophone --recipe paper --seed 2
    python experiments/reading/verdicts.py table

`draw` writes RECIPE-OPERATOR-SEED.tsv beside it: on each line one edit of one sentence of the
sample corpus, with an empty column for the verdict. A reader enters the verdicts by hand; drawing
again keeps the verdicts of lines that are the same. The rule is in the README beside it.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa

from cecdata.config import Config, load
from cecdata.corpus.ids import id_column
from cecdata.operators import OPERATORS
from cecdata.perturbation.engine import Perturber
from cecdata.shards.schema import SENTENCE

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
COUNT = 200
AROUND = 12  # code points of the sentence shown on either side
RATE = 0.035  # for operators that have no rate in the recipe
Z = 1.959964  # 95 %


@dataclass(frozen=True, slots=True)
class Read:
    """One corruption: `right` was written as `wrong` between `before` and `after`."""

    before: str
    right: str
    wrong: str
    after: str
    kind: str
    verdict: str = ""  # 1 plausible, 0 not, empty: not read
    why: str = ""  # where the verdict is 0


def sample_sentences() -> list[str]:
    """Return the sentences of the packaged sample corpus, without those too short or too long."""
    files = sorted((ROOT / "cecdata" / "sample").glob("*.txt"))
    lines = [line.strip() for file in files for line in file.read_text("utf-8").splitlines()]
    return [line for line in dict.fromkeys(lines) if 5 <= len(line) <= 512]


def settings(operator: str, recipe: str, seed: int) -> Config:
    """Return the recipe with this operator alone."""
    known = load(recipe)
    prior = dict.fromkeys(known.prior, 0.0) | {operator: 1.0}
    rate = {operator: known.rate.get(operator, RATE)}
    return load(recipe, prior=prior, rate=rate, mixed=0.0, unchanged=0.0, copies=1, seed=seed)


def drawn(operator: str, recipe: str, seed: int) -> Iterator[Read]:
    """Yield one edit of each sentence that the operator can strike, in random order."""
    config = settings(operator, recipe, seed)
    text = pa.array(sample_sentences(), pa.string())
    origin = pa.array(["sample"] * len(text), pa.string())
    batch = pa.RecordBatch.from_arrays([id_column(text), text, origin], schema=SENTENCE)
    rows = Perturber.calibrated(config, text).pairs(batch).table.to_pylist()
    random = np.random.default_rng(seed)
    for place in random.permutation(len(rows)):
        row = rows[place]
        if row["edits"]:
            edit = row["edits"][random.integers(len(row["edits"]))]
            target, start, end = row["target"], edit["start"], edit["end"]
            before, after = target[max(0, start - AROUND) : start], target[end : end + AROUND]
            yield Read(before, edit["target"], edit["source"], after, edit["kind"])


def read_file(path: Path) -> list[Read]:
    """Return the lines of a file that `draw` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [Read(*line) for line in lines[1:]]


def write_file(path: Path, reads: list[Read]) -> None:
    """Write a header and tab-separated lines; no field may hold a tab or a line break."""
    names = [item.name for item in fields(Read)]
    lines = ["\t".join(line) for line in (names, *map(astuple, reads))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def draw(operator: str, recipe: str, seed: int, count: int) -> Path:
    """Write the sample, keeping the verdicts that are there."""
    path = FOLDER / f"{recipe}-{operator}-{seed}.tsv"
    known = {astuple(read)[:5]: read for read in read_file(path)} if path.exists() else {}
    reads = [read for read, _ in zip(drawn(operator, recipe, seed), range(count), strict=False)]
    write_file(path, [known.get(astuple(read)[:5], read) for read in reads])
    return path


def wilson(good: int, total: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a share.

    >>> [round(end, 3) for end in wilson(180, 200)]
    [0.851, 0.934]
    """
    share, spread = good / total, Z * Z / total
    middle = (share + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * (share * (1 - share) / total + spread / total / 4) ** 0.5
    return middle - half, middle + half


def table() -> Iterator[str]:
    """Yield the shares as lines of a Markdown table."""
    yield "| recipe | operator | seed | read | plausible | 95 % |"
    yield "|---|---|---|---|---|---|"
    for path in sorted(FOLDER.glob("*.tsv")):
        recipe, operator, seed = path.stem.rsplit("-", 2)
        verdicts = [read.verdict for read in read_file(path) if read.verdict]
        if verdicts:
            good = verdicts.count("1")
            low, high = wilson(good, len(verdicts))
            share = f"{good / len(verdicts):.1%} | {low:.1%}–{high:.1%}"
            yield f"| {recipe} | {operator} | {seed} | {len(verdicts)} | {share} |"


def main() -> None:
    """Run the command line of the module's docstring."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("draw", help="write a sample to be read")
    one.add_argument("operator", choices=list(OPERATORS))
    one.add_argument("--recipe", default="typed")
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--count", type=int, default=COUNT)
    verbs.add_parser("table", help="print the shares")
    options = parser.parse_args()
    if options.verb == "draw":
        print(draw(options.operator, options.recipe, options.seed, options.count))
    else:
        print("\n".join(table()))


if __name__ == "__main__":
    main()
