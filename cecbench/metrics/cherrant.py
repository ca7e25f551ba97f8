"""ChERRANT's scores: counts of edits at four levels and by type, with F0.5.

Hits and misses count as often as the reference has the edit, false positives as often as the
hypothesis has it. The level says which edits are equal: cs compares span and text; ds the span; dt
each character of the span (for an insertion, the character to its right); cse span, text and type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from cecbench.cherrant.costs import Dictionaries, read_opencc_version, remove_whitespace, simplify
from cecbench.cherrant.edits import NOT_ANNOTATABLE, Annotation, SpanEdit, annotate
from cecbench.metrics.base import Metric, Options, Ratio, Report, Totals
from cecbench.metrics.rows import IntArray, Row
from cecdata.common.settings import option, require_known

#: the tiers: first letters of the edits' types; N is that of 无法标注 (NA)
TYPES = ("M", "N", "R", "S", "W")
Counts = tuple[int, int, int]

#: level → the keys of an edit, by which edits are equal
LEVELS: dict[str, Callable[[SpanEdit], Iterable[Hashable]]] = {
    "cs": lambda edit: [(edit.start, edit.end, edit.text)],
    "ds": lambda edit: [(edit.start, edit.end)],
    # an insertion has one place; that of an annotation without a place is −1
    "dt": lambda edit: range(edit.start, max(edit.end, edit.start + 1)),
    "cse": lambda edit: [edit],
}


def compare_edits(
    hypothesis: tuple[SpanEdit, ...], reference: tuple[SpanEdit, ...], level: str
) -> Counts:
    """Return tp, fp, fn at a level."""
    keys = LEVELS[level]
    said = Counter(key for edit in hypothesis if edit.kind != "noop" for key in keys(edit))
    meant = Counter(key for edit in reference if edit.kind != "noop" for key in keys(edit))
    tp = sum(times for key, times in meant.items() if key in said)
    fp = sum(times for key, times in said.items() if key not in meant)
    return tp, fp, sum(meant.values()) - tp


def compare_types(
    hypothesis: tuple[SpanEdit, ...], reference: tuple[SpanEdit, ...]
) -> dict[str, Counts]:
    """Return tp, fp, fn of level cs by type; a hit counts under the reference's type."""
    said = {key for edit in hypothesis if edit.kind != "noop" for key in LEVELS["cs"](edit)}
    meant = {key for edit in reference if edit.kind != "noop" for key in LEVELS["cs"](edit)}
    hits, missed, wrong = Counter[str](), Counter[str](), Counter[str]()  # by type
    for edit in reference:
        (key,) = LEVELS["cs"](edit)  # there is one
        outcome = hits if key in said else missed
        outcome[edit.kind[0]] += 1
    for edit in hypothesis:
        (key,) = LEVELS["cs"](edit)
        wrong[edit.kind[0]] += key not in meant
    return {name: (hits[name], wrong[name], missed[name]) for name in TYPES}


#: default: every cheapest alignment, target simplified; first: one alignment; nosimp: unsimplified
MODES = ("default", "first", "nosimp")
_PARTS = ("tp", "fp", "fn")
FIELDS = (
    *(f"{level}_{part}" for level in LEVELS for part in _PARTS),
    *(f"{name}_{part}" for name in TYPES for part in _PARTS),
    "cs_pred",
    "cs_gold",
    "capped",
)
RATIOS: dict[str, Ratio] = {"cs.F": ("cs_tp", "cs_pred", "cs_gold")}


def annotate_rows(
    rows: Sequence[Row], mode: str, dictionaries: Dictionaries
) -> list[tuple[Annotation, Annotation]]:
    """Return per row: annotations of target and prediction."""
    # Whitespace is removed first, as published: OpenCC knows the word 乾坤, but not 乾 坤.
    targets = [remove_whitespace(row.target) for row in rows]
    predictions = [remove_whitespace(row.prediction) for row in rows]
    if mode != "nosimp":
        targets, predictions = simplify(targets), simplify(predictions)
    first = mode == "first"
    done: list[tuple[Annotation, Annotation]] = []
    for row, target, prediction in zip(rows, targets, predictions, strict=True):
        source = remove_whitespace(row.source)
        reference = hypothesis = annotate(source, target, dictionaries, first_only=first)
        if prediction != target:
            hypothesis = annotate(source, prediction, dictionaries, first_only=first)
        done.append((reference, hypothesis))
    return done


def _count_pair(reference: Annotation, hypothesis: Annotation) -> tuple[int, ...]:
    """Return the counts of a sentence, in the order of FIELDS."""
    levels = [compare_edits(hypothesis.edits, reference.edits, level) for level in LEVELS]
    kinds = compare_types(hypothesis.edits, reference.edits)
    tp, fp, fn = levels[0]
    flat = [value for counts in (*levels, *kinds.values()) for value in counts]
    return (*flat, tp + fp, tp + fn, int(reference.capped or hypothesis.capped))


def _read_counts(sums: Totals, name: str) -> Counts:
    """Return tp, fp and fn of a level or a type from the sums."""
    return sums[f"{name}_tp"], sums[f"{name}_fp"], sums[f"{name}_fn"]


def _format_counts(counts: Counts, beta: float) -> Report:
    """Return counts with P, R and F as the script prints them."""
    rates = zip("PRF", compute_f_beta(*counts, beta), strict=True)
    printed = {name: str(round(rate, 4)) for name, rate in rates}
    return {**dict(zip(_PARTS, counts, strict=True)), **printed}


def compute_f_beta(tp: int, fp: int, fn: int, beta: float) -> tuple[float, float, float]:
    """Return precision, recall and F; P is 1 without false positives, R without misses."""
    precision = tp / (tp + fp) if fp else 1.0
    recall = tp / (tp + fn) if fn else 1.0
    below = beta**2 * precision + recall
    return precision, recall, (1 + beta**2) * precision * recall / below if below else 0.0


@dataclass(frozen=True)
class DictionaryOptions(Options):
    """Options of scorers that align by ChERRANT's costs."""

    cilin: str | None = option(
        None,
        "File of the thesaurus Cilin, with which cherrant weighs substitutions.",
        type=click.Path(),
    )
    confusion: str | None = option(
        None,
        "File of confused characters, with which cherrant weighs substitutions.",
        type=click.Path(),
    )

    @property
    def dictionaries(self) -> Dictionaries:
        """The files, of which either may be missing."""
        files = (self.cilin, self.confusion)
        return Dictionaries(*(None if path is None else Path(path) for path in files))


@dataclass(frozen=True)
class CherrantOptions(DictionaryOptions):
    """Options of ChERRANT."""

    mode: str | None = option(None, f"Alignment mode of the scorer cherrant: {', '.join(MODES)}.")


class Cherrant(Metric):
    """The ChERRANT scorer in one of its modes."""

    name = "cherrant"
    fields = FIELDS
    ratios = RATIOS
    headline = "cs.F"
    unequal_lengths = ("strict", "revert", "drop")
    options_type = CherrantOptions
    beta = 0.5

    def __init__(self, options: CherrantOptions) -> None:
        super().__init__(options)
        mode = options.mode or MODES[0]
        dictionaries = self._dictionaries = options.dictionaries
        require_known("ChERRANT mode", mode, MODES)
        self._mode = mode
        simplified = "none" if mode == "nosimp" else "target:t2s"
        self.normalisation = f"whitespace;{simplified};costs:{dictionaries.name};{mode}"
        self.details = {
            "mode": mode,
            "dictionaries": dictionaries.name,
            **dictionaries.details,
            "opencc": "none" if mode == "nosimp" else read_opencc_version(),
        }

    def count(self, rows: Sequence[Row]) -> IntArray:
        counts = np.zeros((len(rows), len(FIELDS)), dtype=np.int64)
        annotated = annotate_rows(rows, self._mode, self._dictionaries)
        for index, (reference, hypothesis) in enumerate(annotated):
            # A sentence whose reference is 无法标注 is skipped, as published.
            if reference.said == NOT_ANNOTATABLE or (hypothesis.unchanged and reference.unchanged):
                continue
            counts[index] = _count_pair(reference, hypothesis)
        return counts

    def report(self, sums: Totals) -> Report:
        """Return P, R and F of every level as printed, to four decimals."""
        table: Report = {level: _format_counts(_read_counts(sums, level), 0.5) for level in LEVELS}
        table["cs_beta1"] = _format_counts(_read_counts(sums, "cs"), 1.0)
        by_type = {name: _read_counts(sums, name) for name in TYPES}
        table["op_tier"] = {
            name: _format_counts(counts, 0.5) for name, counts in by_type.items() if any(counts)
        }
        table["tp_fp_fn"] = list(_read_counts(sums, "cs"))
        if sums["capped"]:
            table["capped"] = sums["capped"]
        return table
