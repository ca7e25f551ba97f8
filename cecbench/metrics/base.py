"""The base of the scorers: named counts per sentence, and a report that their sums make.

Beside it: what is done with rows whose lengths differ, and the rates that do not depend on the
scorer (over-correction, other lengths, copies).
"""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
from rapidfuzz.distance import Levenshtein

from cecbench.metrics.rows import BoolArray, IntArray, Row, differ
from cecdata.common.settings import option


def _revert_unequal(rows: Sequence[Row]) -> list[Row]:
    """Return rows whose target fits; a prediction of another length becomes its source."""
    return [
        row if len(row.prediction) == len(row.source) else row._replace(prediction=row.source)
        for row in rows
        if len(row.target) == len(row.source)
    ]


#: name → function that returns the scored rows; the scorer `cllm` itself projects predictions
UNEQUAL_LENGTH: dict[str, Callable[[Sequence[Row]], list[Row]]] = {
    "strict": list,
    "revert": _revert_unequal,
    "drop": lambda rows: [r for r in rows if len(r.source) == len(r.target) == len(r.prediction)],
    # The published pipeline has no block for an empty answer.
    "project": lambda rows: [
        r for r in rows if len(r.source) == len(r.target) and r.prediction.strip()
    ],
    "revert_ignore_punct": _revert_unequal,
}

#: name → description for reports
MEANING = {
    "strict": "every row as it is",
    "revert": "rows whose target changes the length are left out; a prediction of another length"
    " than its source counts as the source",
    "drop": "rows where any length differs are left out",
    "project": "rows whose target changes the length or whose prediction is empty are left out;"
    " predictions are projected on the source's length",
    "revert_ignore_punct": "as revert, but positions where the source has a punctuation mark do not"
    " count",
}


def any_length_differs(rows: Sequence[Row]) -> bool:
    """Return whether the three strings of some row have different lengths."""
    return any(not len(s) == len(t) == len(p) for _, s, t, p in rows)


Totals = Mapping[str, int]
Report = dict[str, object]


class Flags(NamedTuple):
    """Comparisons of whole strings, one for each row."""

    error: BoolArray  # source ≠ target
    changed: BoolArray  # source ≠ prediction
    right: BoolArray  # prediction = target


#: the fields of which precision, recall and F are made: hits, what was predicted, what was wrong
Ratio = tuple[str, str, str]


@dataclass(frozen=True)
class Options:
    """Options of every scorer; a scorer with more of them has a subclass. None: its own default.

    Each field is an option of the command line, too.
    """

    unequal_length: str | None = option(
        None,
        "What to do with rows whose texts differ in length: "
        f"{', '.join(UNEQUAL_LENGTH)}. Each scorer has its own default.",
    )


class Metric(ABC):
    """Base of the published scorers; a subclass is one scorer.

    name: as in `--scorer`.
    fields: the names of its counts, which add up over sentences.
    ratios: the keys of its report that can be resampled, with their fields.
    headline: one of these keys.
    unequal_lengths: what it can do with rows of unequal lengths; the first is its default.
    options_type: the dataclass of its options.
    beta: of the headline's F.
    stop_error: the published script's error for rows whose lengths differ, if it stops there;
        `fallback` is what we do with them to go on.
    """

    name: ClassVar[str]
    fields: ClassVar[tuple[str, ...]]
    ratios: ClassVar[Mapping[str, Ratio]]
    headline: ClassVar[str]
    unequal_lengths: ClassVar[tuple[str, ...]]
    options_type: ClassVar[type[Options]] = Options
    beta: ClassVar[float] = 1.0
    stop_error: ClassVar[str] = ""
    fallback: ClassVar[str] = "revert"

    def __init__(self, options: Options) -> None:
        self.options = options
        self.normalisation = "none"  # for the signature
        self.details: dict[str, str] = {}  # for the score

    @abstractmethod
    def count(self, rows: Sequence[Row]) -> IntArray:
        """Return the counts of each row, int64, shape (rows, len(fields))."""

    @abstractmethod
    def report(self, sums: Totals) -> Report:
        """Return the published numbers from the sums by field, nested as in the golden files."""

    def stops(self, rows: Sequence[Row]) -> bool:
        """Return whether the published script stops on some of these rows, taken as they are."""
        return bool(self.stop_error) and any_length_differs(rows)

    @classmethod
    def takes(cls) -> frozenset[str]:
        """Return the names of its options."""
        return frozenset(field.name for field in fields(cls.options_type))

    @property
    def unequal_length(self) -> str:
        """What is done with rows of unequal lengths: as was asked, or the scorer's default."""
        return self.options.unequal_length or self.unequal_lengths[0]

    @property
    def headline_columns(self) -> tuple[int, int, int]:
        """The columns of the headline's hits, predictions and errors."""
        tp, predicted, gold = (self.fields.index(name) for name in self.ratios[self.headline])
        return tp, predicted, gold


def stack_columns(*values: IntArray | BoolArray) -> IntArray:
    """Return the arrays, one per field, as columns: shape (sentences, fields)."""
    return np.array(values, dtype=np.int64).T


def flag_rows(rows: Sequence[Row]) -> Flags:
    """Return how the source, the target and the prediction of each row compare."""
    _, source, target, prediction = ([row[at] for row in rows] for at in range(4))
    return Flags(differ(source, target), differ(source, prediction), ~differ(prediction, target))


def flatten_keys(report: Mapping[str, object], prefix: str = "") -> Report:
    """Return nested keys joined with dots; `counts_tp_pred_gold` also stays one object."""
    flat: Report = {}
    for key, value in report.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            if key == "counts_tp_pred_gold":
                flat[name] = dict(value)
            flat.update(flatten_keys(value, f"{name}."))
        else:
            flat[name] = value
    return flat


BEHAVIOUR_FIELDS = (
    "rows",
    *("clean", "clean_changed", "clean_chars", "clean_edits"),
    *("length_differs", "copied", "empty"),
    *("blank_ends", "other_width"),
)
# What the same key gives in the other width, where Unicode does not say so.
_NARROW = str.maketrans("。、", ".,")


def count_behaviour(rows: Sequence[Row]) -> IntArray:
    """Return the counts of each row that was read, shape (rows, fields of BEHAVIOUR_FIELDS).

    clean: source and target are equal. clean_edits: Levenshtein distance of such a source to its
    prediction, in code points. length_differs: prediction and source have different lengths.
    blank_ends: only by white space at their ends. other_width: the prediction, which is not right,
    has a character in another width than the source.
    """
    error, changed, right = flag_rows(rows)
    clean, copied = ~error, ~changed
    _, sources, _, predictions = zip(*rows, strict=True)
    chars, answer = _count_characters(sources), _count_characters(predictions)
    edits = np.zeros(len(rows), dtype=np.int64)
    for index in np.flatnonzero(clean & ~copied).tolist():
        edits[index] = Levenshtein.distance(rows[index].source, rows[index].prediction)
    suspects = {index: rows[index] for index in np.flatnonzero(~copied & ~right).tolist()}
    blank, width = np.zeros((2, len(rows)), dtype=np.bool_)
    blank[[i for i, row in suspects.items() if _differs_by_blanks(row)]] = True
    width[[i for i, row in suspects.items() if _has_other_width(row)]] = True
    return stack_columns(
        np.ones(len(rows), dtype=np.int64),
        clean,
        clean & ~copied,
        chars * clean,
        edits,
        chars != answer,
        copied,
        answer == 0,
        blank,
        width,
    )


def _differs_by_blanks(row: Row) -> bool:
    """Return whether a prediction has another length only by white space at its ends."""
    source, prediction = row.source, row.prediction
    whole = len(source) != len(prediction)
    return whole and len(source.strip()) == len(prediction.strip()) > 0


def _has_other_width(row: Row) -> bool:
    """Return whether a prediction writes a character in another width than the source."""
    if len(row.source) != len(row.prediction):
        return False
    pairs = zip(row.source, row.prediction, strict=True)
    return any(_fold_width(a) == _fold_width(b) for a, b in pairs if a != b)


def _fold_width(character: str) -> str:
    return unicodedata.normalize("NFKC", character).translate(_NARROW)


def _count_characters(texts: Sequence[str]) -> IntArray:
    return np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))


def report_behaviour(sums: Totals) -> Report:
    """Return rates as fractions; None where the denominator is 0."""
    return {
        "over_correction_rate": _divide(sums["clean_changed"], sums["clean"]),
        "over_correction_per_1000_chars": _divide(1000 * sums["clean_edits"], sums["clean_chars"]),
        "length_violation_rate": _divide(sums["length_differs"], sums["rows"]),
        "copy_rate": _divide(sums["copied"], sums["rows"]),
        "empty_rate": _divide(sums["empty"], sums["rows"]),
        "blank_ends_rate": _divide(sums["blank_ends"], sums["rows"]),
        "other_width_rate": _divide(sums["other_width"], sums["rows"]),
    }


def describe_behaviour(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is suspicious about the predictions, which may be of a file and not of a model."""
    read = int(values["rows_read"])

    def count(name: str) -> int:
        return round(read * (values.get(f"behaviour.{name}") or 0))

    if differ := count("length_violation_rate"):
        blanks = count("blank_ends_rate")
        only = f", {blanks:,} only by white space at an end" if blanks else ""
        yield f"{differ:,} of {read:,} predictions differ in length from their source{only}"
    if width := count("other_width_rate"):
        what = "write a character in another width than their source (such as , for ，)"
        yield f"{width:,} of {read:,} predictions {what}"


def _divide(part: int, whole: int) -> float | None:
    return part / whole if whole else None
