"""Real errors in pairs of source and target, and the scores of a recipe on them.

A recipe's substitutions have the probability P(wrong | right).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from cecdata.common.errors import InputError, UsageError
from cecdata.corpus.pairs import ALIKE, PAIRS, read_texts
from cecdata.hanzi.characters import find_frequency, is_han, make_slots, standard_characters
from cecdata.hanzi.edits import Corruption, align
from cecdata.operators import OPERATORS, Operator
from cecdata.operators.base import CharConfusions, ConfusionSet, reweigh

# The tail that keeps the bits of every error finite: with the probability TAIL, the wrong character
# is any of ALPHABET characters.
TAIL, ALPHABET = 0.01, 8104
Weights = Mapping[str, Mapping[str, float]]  # by operator, what a recipe changes


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of a file.

    `substitutions` (right, wrong) and `others` (kind) count tokens; two neighbours that changed
    places count as one `swapped` and no substitution. `neighbouring` counts substitutions next to
    another one, which suggest a wrong word rather than a wrong character; `words` counts the runs
    of two or more of these.
    """

    pairs: int = 0
    wrong_pairs: int = 0
    neighbouring: int = 0
    substitutions: Counter[tuple[str, str]] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    words: int = 0

    @property
    def tokens(self) -> int:
        """Return the number of characters that were replaced by another one."""
        return self.substitutions.total()


def read_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (source, target) of every row of a table or of JSON.

    Without a first line that names the columns, a table has two, or a label or an id before them.
    Raises InputError, with the line's number, for any other row.
    """
    for row in read_texts(path, ("source", "target"), PAIRS):
        yield row.texts["source"], row.texts["target"]


def read_errors(path: Path) -> Errors:
    """Read all errors of a file of pairs; raise InputError if there is none."""
    pairs = list(read_pairs(path))
    errors = count_errors(iter(pairs))
    unlike = sum(Levenshtein.normalized_similarity(*pair) < ALIKE for pair in pairs)
    if 2 * unlike > len(pairs):
        raise InputError(
            f"{path}: in {unlike:,} of {len(pairs):,} pairs, more than half of the characters "
            "differ. Check that source and target belong together"
        )
    if not errors.tokens and not errors.others:
        raise InputError(f"{path}: none of the {errors.pairs} pairs has an error")
    return errors


def count_errors(pairs: Iterator[tuple[str, str]]) -> Errors:
    """Return the errors of the pairs, by minimal alignment.

    >>> errors = count_errors(iter([("我门去公圆。", "我们去公园。")]))
    >>> sorted(errors.substitutions)
    [('们', '门'), ('园', '圆')]
    """
    substitutions: Counter[tuple[str, str]] = Counter()
    others: Counter[str] = Counter()
    count = wrong = neighbouring = words = 0
    for source, target in pairs:
        count += 1
        if source == target:
            continue
        wrong += 1
        edits, swaps = _remove_swaps(align(source, target), target)
        others["swapped"] += swaps
        positions = {edit.start for edit in edits if _is_one_han(edit)}
        neighbouring += sum(at - 1 in positions or at + 1 in positions for at in positions)
        # a run of neighbours is counted at its first position
        words += sum(at - 1 not in positions and at + 1 in positions for at in positions)
        for edit in edits:
            if _is_one_han(edit):
                substitutions[edit.target, edit.source] += 1
            else:
                others[name_other_kind(edit, target)] += 1
    return Errors(count, wrong, neighbouring, substitutions, +others, words)


def _remove_swaps(edits: Sequence[Corruption], target: str) -> tuple[list[Corruption], int]:
    """Return the edits without swaps of two neighbours, and the number of these swaps."""
    remaining: list[Corruption] = []
    swaps = 0
    for edit in edits:
        if remaining and _is_swap(remaining[-1], edit, target):
            remaining.pop()
            swaps += 1
        else:
            remaining.append(edit)
    return remaining, swaps


def _is_swap(first: Corruption, second: Corruption, target: str) -> bool:
    """Return whether two edits are a swap, as 典字 for 字典."""
    if _is_one_han(first) and _is_one_han(second):
        mutual = (first.target, first.source) == (second.source, second.target)
        return mutual and first.end == second.start
    # one character was left out on one side of another, and written on its other side
    moved_back = not first.source and not second.target and first.target == second.source
    moved_ahead = not first.target and not second.source and first.source == second.target
    moved, between = first.target or first.source, target[first.end : second.start]
    return (moved_back or moved_ahead) and len(between) == len(moved) == 1


def _is_one_han(edit: Corruption) -> bool:
    single = len(edit.target) == len(edit.source) == 1
    return single and is_han(ord(edit.target)) and is_han(ord(edit.source))


def name_other_kind(edit: Corruption, target: str) -> str:
    """Return the kind of an edit that does not replace one Han character by another."""
    from cecdata.hanzi.components import list_splits

    old, new = edit.target, edit.source
    if not any(is_han(ord(sign)) for sign in old + new):
        return "symbol"
    if not new:
        return "missing"
    if not old:
        beside = target[max(0, edit.start - len(new)) : edit.start], target[edit.end :][: len(new)]
        return "repeated" if new in beside else "redundant"
    if len(old) == 1 and any(split.parts == new for split in list_splits(old)):
        return "split"
    if len(new) == 1 and any(split.parts == old for split in list_splits(new)):
        return "merged"
    if sorted(old) == sorted(new):
        return "swapped"
    return "rewritten"


@dataclass(frozen=True, slots=True)
class Choices:
    """The C substitutions that a recipe makes.

    A key is the number of the right character among the standard ones, times the number of these,
    plus that of the wrong one.
    """

    key: NDArray[np.int64]  # [C], sorted
    chance: NDArray[np.float64]  # [C] P(wrong | right)

    def find_chance(self, right: str, wrong: str) -> float:
        """Return P(wrong | right), or 0 if the wrong character is no candidate."""
        slots = make_slots()
        row, column = int(slots[ord(right)]) - 1, int(slots[ord(wrong)]) - 1
        key = row * len(standard_characters()) + column
        at = int(np.searchsorted(self.key, key))
        is_listed = min(row, column) >= 0 and at < len(self.key) and self.key[at] == key
        return float(self.chance[at]) if is_listed else 0.0

    def mean_candidates(self) -> float:
        """Return the mean number of candidates of a character of running text."""
        count = len(standard_characters())
        per_character = np.bincount(self.key // count, minlength=count)
        return float(np.average(per_character, weights=_read_frequencies()))


def bits_per_error(chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return -log2 of the chance of each error, [E], lowered to leave some for all others."""
    return np.asarray(-np.log2((1 - TAIL) * chance + TAIL / ALPHABET))


def choose_substituting(
    prior: Mapping[str, float],
    weights: Weights | None = None,
    known: Mapping[str, Operator] = OPERATORS,
) -> dict[str, CharConfusions]:
    """Return the confusions, by operator, of single characters, with the recipe's weights."""
    confusions = {}
    for name, operator in known.items():
        if prior.get(name, 0) > 0 and isinstance(operator.confusions, CharConfusions):
            reweighed = reweigh(operator, (weights or {}).get(name, {})).confusions
            assert isinstance(reweighed, CharConfusions)
            confusions[name] = reweighed
    if not confusions:
        raise UsageError(
            "the recipe has no operator that substitutes characters: set the prior of one, for "
            "example homophone, above 0"
        )
    return confusions


def gather_choices(
    prior: Mapping[str, float],
    weights: Weights | None = None,
    known: Mapping[str, Operator] = OPERATORS,
) -> Choices:
    """Return the choices of a recipe, of these operators.

    An operator edits all positions that it can edit equally often: its rate at such a position of
    running text is proportional to its prior divided by the share of the text that it can edit.
    """
    count, parts = len(standard_characters()), []
    for name, confusions in choose_substituting(prior, weights, known).items():
        table = confusions.build()
        right = np.repeat(np.arange(count, dtype=np.int64), np.diff(table.bounds))
        weight = table.weight * prior[name] / measure_editable_share(table)
        parts.append((right * count + table.replacement, weight))
    keys, key_weights = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((-key_weights, keys))
    keys, key_weights = keys[order], key_weights[order]
    # the weights of equal keys are added up, then the chances of each right character add up to 1
    first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    sums, right = np.add.reduceat(key_weights, first), keys[first] // count
    return Choices(keys[first], sums / np.bincount(right, sums, count)[right])


@dataclass(frozen=True, slots=True)
class Score:
    """The scores of one recipe on the errors."""

    coverage: float
    bits_per_error: float
    mean_candidates: float


def score_recipe(choices: Choices, errors: Errors) -> Score:
    """Return the coverage and bits over all tokens; both are 0 without errors."""
    items = list(errors.substitutions.items())
    chance = np.array([choices.find_chance(*pair) for pair, _ in items])
    counts = np.array([count for _, count in items], np.float64)
    total = max(counts.sum(), 1.0)
    return Score(
        coverage=float(counts[chance > 0].sum() / total) if items else 0.0,
        bits_per_error=float((counts * bits_per_error(chance)).sum() / total) if items else 0.0,
        mean_candidates=choices.mean_candidates(),
    )


def measure_editable_share(table: ConfusionSet) -> float:
    """Return the share of running text that an operator with this set can replace."""
    return max(float(np.average(np.diff(table.bounds) > 0, weights=_read_frequencies())), 1e-9)


def _read_frequencies() -> NDArray[np.float64]:
    """Return the frequency of each standard character, [C]."""
    return np.array([find_frequency(sign) for sign in standard_characters()])
