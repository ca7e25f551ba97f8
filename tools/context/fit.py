"""Write the tables of the recipe `context`: cecdata/perturbation/shipped.context.

    python tools/context/fit.py pairs CLEAN.parquet --out pairs.npz
    python tools/context/fit.py factors pairs.npz --errors ERRORS.tsv --out FILE [--recipe R]

`pairs` counts neighbouring characters in sentences of openly licensed origins, and gives each pair
a code. The code says how much more often the pair occurs than by chance, how frequent the word is
that it forms, or that this word has two accepted spellings (variants.txt).

`factors` draws errors with the recipe, one proposal each, into the targets of real pairs, and fits
a conditional logit that tells the error a person made from the drawn ones by the codes around it.
The factors are the exponentials of its weights. ERRORS.tsv has "source TAB target" lines; for the
shipped file they are columns 2 and 3 of CSCD-NS dev.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from cecdata.audit import read_pairs
from cecdata.common import arrays
from cecdata.common.durable import sha256_of
from cecdata.config import load
from cecdata.corpus.ids import id_column
from cecdata.hanzi.characters import LENGTHS, code_point_slots, standard_characters, words
from cecdata.hanzi.components import shape_pairs
from cecdata.hanzi.readings import readings
from cecdata.perturbation.context import KIND, TONE_BITS
from cecdata.perturbation.engine import Perturber
from cecdata.perturbation.kernel.context import LEFT, RIGHT
from cecdata.perturbation.kernel.layout import EDGE, SLOT_BITS
from cecdata.shards.schema import SENTENCE

sys.path.insert(0, str(Path(__file__).parents[1] / "ngram"))
sys.path.insert(0, str(Path(__file__).parents[1] / "operators"))
from build import sentences
from links import looked_up, one_part_apart, word_pairs

LEAST_PAIR = 5  # occurrences
LEAST_WORD, LEAST_LONGER = 8, 20  # counts in the lexicon
ASSOCIATION = (-0.5, 0.5, 1.5, 2.5, 4.0)  # logarithms, between the codes 1 to 6
IN_LONGER = 7  # code of pairs inside words of three and four characters, 8 where also associated
WORD_COUNTS = (50, 200, 1000, 4000)  # between the codes 9 to 13 of two-character words
VARIANT = 14  # code of words that have two accepted spellings
TABLES, SIZE = 9, 8
CELLS = TABLES * 256
MAINS = TABLES * 32  # main effects: one for each row and each column of a table
STRENGTH = 10.0  # ridge penalty
ALIKE = 0.5  # minimum similarity of characters that look alike
CHANCES = (1e-9, 1e-3, 3e-3, 1e-2, 3e-2, 0.08, 0.2)  # where classes of `word_pairs` chances begin
COPIES = 24  # proposals for each target


def pairs_of(corpus: Path) -> dict[str, np.ndarray]:
    """Return the pairs with their codes, and the frequency class of each slot."""
    slots = code_point_slots().astype(np.int64)
    text = "\n".join(sentences(corpus).to_list())
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    at = slots[points]
    held = (at[:-1] > 0) & (at[1:] > 0)
    keys, counts = np.unique(at[:-1][held] << 13 | at[1:][held], return_counts=True)
    single = np.bincount(at, minlength=len(standard_characters()) + 1).astype(float)
    single[0] = 0
    total = counts.sum()
    left, right = keys >> 13, keys & 8191
    association = np.log(counts * float(total) / (single[left] * single[right]))
    code = 1 + np.searchsorted(ASSOCIATION, association)
    code[counts < LEAST_PAIR] = 0
    known = dict(zip(keys.tolist(), code.tolist(), strict=True))
    associated = set(keys[code >= 4].tolist())
    for length in LENGTHS[1:]:
        listed = words(length)
        common = listed.characters[listed.counts >= LEAST_LONGER].astype(np.int64) + 1
        for key in np.unique(common[:, :-1] << 13 | common[:, 1:]).tolist():
            known[key] = IN_LONGER + (key in associated)
    two = words(2)
    own = two.characters.astype(np.int64) + 1
    level = 9 + np.searchsorted(WORD_COUNTS, two.counts, side="right")
    typed = two.counts >= LEAST_WORD
    own, level = own[typed], level[typed]
    known |= dict(zip((own[:, 0] << 13 | own[:, 1]).tolist(), level.tolist(), strict=True))
    two_ways = (slots[[ord(sign) for sign in word]].tolist() for word in variants())
    known |= {one << 13 | other: VARIANT for one, other in two_ways}
    known = {key: code for key, code in known.items() if code}
    share = (single + 0.5) / (single.sum() + 0.5 * len(single))
    classes = np.clip(np.floor((np.log(share) + 14.0) / 0.75), 0, 15)  # e^-14 is one in a million
    classes[0] = 0
    keys = np.array(sorted(known), np.uint32)
    return {
        "key": keys,
        "code": np.array([known[key] for key in keys.tolist()], np.uint8),
        "classes": classes.astype(np.uint8),
    }


def variants() -> list[str]:
    """Return the two-character words that have another accepted spelling."""
    lines = Path(__file__).with_name("variants.txt").read_text("utf-8").splitlines()
    return [word for line in lines if not line.startswith("#") for word in line.split()]


def confusions() -> tuple[np.ndarray, np.ndarray]:
    """Return (right number << 13 | wrong number, code) of characters confused in words or by sight.

    The code is 2c, or 2c + 1 where the two look alike; c is the class of the chance that a word of
    the same sound has the wrong character (`word_pairs`).
    """
    count = len(standard_characters())
    keys, chance = word_pairs()
    shapes = shape_pairs()
    alike = shapes.similarity >= ALIKE
    seen = np.concatenate(
        [shapes.left[alike].astype(np.int64) * count + shapes.right[alike], one_part_apart().key]
    )
    all_ = np.union1d(keys, seen)
    level = np.array([np.searchsorted(CHANCES, value, side="right") for value in chance.tolist()])
    code = 2 * looked_up(all_, keys, level.astype(np.float64)) + np.isin(all_, seen)
    both = (all_ // count + 1) << SLOT_BITS | all_ % count + 1
    return both.astype(np.uint32), code.astype(np.uint8)


def sounds() -> np.ndarray:
    """Return syllable << 3 | tone of every standard character's usual reading; 0 for number 0."""
    usual = [readings(sign)[0] for sign in standard_characters()]
    number = {
        name: position for position, name in enumerate(sorted({r.syllable for r in usual}), 1)
    }
    return np.array([0, *(number[r.syllable] << TONE_BITS | r.tone for r in usual)], np.uint16)


class Codes:
    """The codes of a text's pairs, as the kernel reads them."""

    def __init__(self, held: dict[str, np.ndarray]) -> None:
        self.code = dict(zip(held["key"].tolist(), held["code"].tolist(), strict=True))
        self.classes = held["classes"].tolist()
        confused = (held["confused"].tolist(), held["confusion"].tolist())
        self.alike = dict(zip(*confused, strict=True))
        self.slots = code_point_slots()
        self.sounds = held["sounds"].tolist()

    def slot(self, text: str, at: int) -> int:
        return int(self.slots[ord(text[at])]) if 0 <= at < len(text) else 0

    def of(self, left: int, right: int) -> int:
        return self.code.get(left << 13 | right, 0) if left and right else EDGE

    def same(self, old: int, new: int) -> int:
        one, other = self.sounds[old], self.sounds[new]
        return int(one == other) + int(one >> 3 == other >> 3)

    def cells(self, source: str, target: str, i: int) -> list[int] | None:
        """Return the cells of the substitution at i in two texts of the same length.

        Return None if either character is not a standard one.
        """
        old, new = self.slot(target, i), self.slot(source, i)
        if not old or not new:
            return None
        left = self.of(self.slot(source, i - 1), new)
        right = self.of(new, self.slot(source, i + 1))
        was_left = self.of(self.slot(target, i - 1), old)
        was_right = self.of(old, self.slot(target, i + 1))
        rows = (
            (left, right), (was_left, was_right), (was_left, left), (was_right, right),
            (self.classes[old], self.classes[new]),
            (min(i, 15), min(len(target) - 1 - i, 15)),
            (self.alike.get(old << 13 | new, 0), self.classes[old]),
            (self.same(old, new), self.classes[new]),
        )  # fmt: skip
        return [t * 256 + a * 16 + b for t, (a, b) in enumerate(rows)]

    def groups(self, source: str, target: str) -> list[list[list[int]]]:
        """Return the cells of each run of substitutions; none if the lengths differ."""
        if len(source) != len(target):
            return []
        runs: list[list[list[int]]] = []
        last = -2
        for i, (wrong, right) in enumerate(zip(source, target, strict=True)):
            if wrong != right:
                cells = self.cells(source, target, i)
                if cells is not None:
                    if i == last + 1 and runs:
                        runs[-1].append(cells)
                    else:
                        runs.append([cells])
                    last = i
        return runs


def root(changed: int) -> float:
    """Return the exponent of the kernel's `rooted` for so many changed characters."""
    return 1.0 if changed < 2 else 0.5 if changed == 2 else 0.25


def table(codes: Codes, pairs: list[tuple[str, ...]]) -> tuple[csr_matrix, list[str]]:
    """Return the cells of every run of substitutions [N, cells + mains], and each run's target."""
    rows, columns, values, targets = [], [], [], []
    for source, target, *_ in pairs:
        for run in codes.groups(source, target):
            for cells in run:
                rows += [len(targets)] * len(cells)
                columns += cells
                values += [root(len(run))] * len(cells)
            rows.append(len(targets))
            columns.append(SIZE * 256 + min(len(run), 4) * 16)
            values.append(1.0)
            targets.append(target)
    return csr_matrix((values, (rows, columns)), shape=(len(targets), CELLS)) @ mains(), targets


def drawn(targets: list[str], recipe: str, copies: int) -> list[tuple[str, str, str]]:
    """Return `copies` draws of every target, one proposal each: source, target and operator."""
    config = replace(load(recipe), copies=copies, seed=5, proposals=1, mixed=0.0)
    text = pa.array(targets, pa.string())
    origin = pa.array(["real"] * len(targets), pa.string())
    batch = pa.RecordBatch.from_arrays([id_column(text), text, origin], schema=SENTENCE)
    pairs = Perturber.calibrated(config, text).pairs(batch).table
    columns = (pairs[name].to_pylist() for name in ("source", "target", "operator"))
    return list(zip(*columns, strict=True))


def factors_of(
    held: dict[str, np.ndarray], pairs: list[tuple[str, str]], recipe: str, strength: float
) -> np.ndarray:
    """Return the logarithms of the factors, from a conditional logit over each target's proposals.

    Only the proposals enter the denominator. Errors chosen among them then have the same
    distribution of cells as the real ones, as far as proposals with these cells exist.
    """
    codes = Codes(held)
    real = [pair for pair in pairs if pair[0] != pair[1]]
    targets = list(dict.fromkeys(target for _, target in real))
    proposals = drawn(targets, recipe, COPIES)
    one, of_one = table(codes, real)
    many, of_many = table(codes, proposals)
    first = {target: position for position, target in reversed(list(enumerate(of_many)))}
    begin = np.array(sorted(first.values()))
    block = {of_many[position]: number for number, position in enumerate(begin)}
    kept = np.array([target in block for target in of_one])
    one, of = one[kept], np.array([block[target] for target in of_one if target in block])
    inside = np.repeat(np.arange(len(begin)), np.diff(np.r_[begin, many.shape[0]]))
    print(f"{one.shape[0]:,} real, {many.shape[0]:,} drawn", file=sys.stderr)
    weak = np.r_[np.ones(CELLS), np.full(MAINS, 0.1)] * strength

    real_cells = np.asarray(one.sum(axis=0)).ravel()

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        a, b = one @ w, many @ w
        top = np.maximum.reduceat(b, begin)
        odds = np.exp(b - top[inside])
        total = np.bincount(inside, odds, len(begin))
        value = ((np.log(total) + top)[of] - a).sum() + 0.5 * (weak * w**2).sum()
        share = np.bincount(of, minlength=len(begin)) / total
        return value, many.T @ (odds * share[inside]) - real_cells + weak * w

    start = np.zeros(CELLS + MAINS)
    best = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 300})
    print(f"{best.message}; {best.fun / one.shape[0]:.4f} an error", file=sys.stderr)
    w = mains() @ best.x  # the sum of effects for each cell
    new_priors(codes, proposals, recipe, w)
    return w.reshape(TABLES, 16, 16)


def mains() -> csr_matrix:
    """Return the matrix [cells, cells + mains] that sums a cell's own, row and column effects."""
    cell = np.arange(CELLS)
    table, a, b = cell // 256, cell // 16 % 16, cell % 16
    columns = np.concatenate([cell, CELLS + table * 32 + a, CELLS + table * 32 + 16 + b])
    ones, rows = np.ones(3 * CELLS), np.tile(cell, 3)
    return csr_matrix((ones, (rows, columns)), shape=(CELLS, CELLS + MAINS))


def new_priors(
    codes: Codes, proposals: list[tuple[str, str, str]], recipe: str, w: np.ndarray
) -> None:
    """Print for each operator its prior and how often it is chosen by the factors, and drawn.

    Scale the priors by chosen / drawn if operators should be drawn as often as they are chosen.
    """
    by_target: dict[str, list[tuple[str, float]]] = {}
    for source, target, operator in proposals:
        for run in codes.groups(source, target):
            score = sum(w[cells].sum() for cells in run) * root(len(run))
            score += w[SIZE * 256 + min(len(run), 4) * 16]
            by_target.setdefault(target, []).append((operator, score))
    chosen: dict[str, float] = {}
    drawn_: dict[str, float] = {}
    for rows in by_target.values():
        scores = np.exp(np.array([score for _, score in rows]))
        for (operator, _), share in zip(rows, scores / scores.sum(), strict=True):
            chosen[operator] = chosen.get(operator, 0) + share / len(by_target)
            drawn_[operator] = drawn_.get(operator, 0) + 1 / len(rows) / len(by_target)
    for name, prior in load(recipe).prior.items():
        shares = f"chosen {chosen.get(name, 0):.4f}, drawn {drawn_.get(name, 0):.4f}"
        print(f"{name} = {prior}: {shares}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("pairs", "factors"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--errors", type=Path)
    parser.add_argument("--recipe", default="context")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--strength", type=float, default=STRENGTH)
    asked = parser.parse_args()
    about: dict[str, object] = {}
    if asked.what == "pairs":
        held = pairs_of(asked.file)
        held["confused"], held["confusion"] = confusions()
        held["sounds"] = sounds()
        print(f"{len(held['key']):,} pairs")
        held["factors"] = np.ones((TABLES, 16, 16), np.float32)
    else:
        _, held = arrays.load(asked.file, KIND, "")
        w = factors_of(held, list(read_pairs(asked.errors)), asked.recipe, asked.strength)
        factors = np.exp(w).astype(np.float32)
        factors[[LEFT, RIGHT], VARIANT, VARIANT] = 0.0  # one spelling for the other is no error
        held = dict(held) | {"factors": factors}
        about = {"errors_sha256": sha256_of(asked.errors).sha256}
    arrays.save(asked.out, KIND, about, held)
    print(f"{asked.out}: {asked.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
