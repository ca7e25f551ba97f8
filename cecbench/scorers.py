"""Scoring of rows or a file with one of the published scorers.

`SCORERS` names them. `score` keeps the counts of every sentence, for intervals and breakdowns;
`score_file` keeps only their sums (`Tally`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from cecbench.metrics import base
from cecbench.metrics.cherrant import Cherrant
from cecbench.metrics.cscd import Cllm, Cscd
from cecbench.metrics.lemon import Lemon
from cecbench.metrics.pycorrector import Pycorrector
from cecbench.metrics.rows import IntArray, Row, chunk_rows
from cecbench.metrics.sighan import Sighan
from cecbench.resampling import Interval, Triples
from cecbench.signature import UNNAMED, Signature
from cecdata.common.errors import InputError, UsageError
from cecdata.common.machine import __version__
from cecdata.common.settings import require_known
from cecdata.corpus.pairs import read_texts

#: name → class. A further scorer is one new module in `cecbench.metrics` and one entry here.
SCORERS: Mapping[str, type[base.Metric]] = {
    scorer.name: scorer for scorer in (Cscd, Lemon, Sighan, Pycorrector, Cllm, Cherrant)
}
#: the options of all scorers, by name
OPTIONS: Mapping[str, Field[Any]] = {
    field.name: field for scorer in SCORERS.values() for field in fields(scorer.options_type)
}
_FOUR = ("id", "source", "target", "prediction")
_Four = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Score:
    """The counts of every scored sentence, and the published numbers that their sums give.

    counts: int64, shape (rows_scored, len(scorer.fields)), in the order of `ids`.
    values: the object that `score_file` returns.
    """

    scorer: base.Metric
    ids: tuple[str, ...]
    counts: IntArray
    values: base.Report
    signature: Signature

    def __str__(self) -> str:
        """Return what one pastes into a paper: the headline, what to know of it, the signature."""
        named = f"{self.scorer.headline} {self.values.get(self.scorer.headline)}"
        return "\n".join([named, *base.describe_behaviour(self.values), self.signature.short()])

    @property
    def headline(self) -> float | None:
        """The scorer's headline number, as printed; None if the script prints none."""
        value = self.values.get(self.scorer.headline)
        return None if value is None else float(str(value))

    def interval(self) -> Interval:
        """Return the bootstrap interval of the headline, as a fraction."""
        triples = Triples()
        triples.add(self.counts[:, list(self.scorer.headline_columns)].tolist())
        return triples.interval(self.scorer.beta)


def find_scorer(name: str, options: Mapping[str, object] | None = None) -> base.Metric:
    """Return a scorer with its options, of which None means the scorer's own default.

    Raises UsageError for an unknown name or an option that the scorer does not take.
    """
    require_known("scorer", name, SCORERS)
    values: dict[str, Any] = {k: v for k, v in (options or {}).items() if v is not None}
    for option in values:
        takers = [metric.name for metric in SCORERS.values() if option in metric.takes()]
        if name in takers:
            continue
        whose = f"works with the scorer {' or '.join(takers)}, not with {name}"
        flag = option.replace("_", "-")
        raise UsageError(f"--{flag} {whose if takers else 'is unknown'}")
    scorer = SCORERS[name](SCORERS[name].options_type(**values))
    known = scorer.unequal_lengths
    require_known(f"--unequal-length of the scorer {name}", scorer.unequal_length, known)
    return scorer


def score(
    rows: Iterable[_Four],
    scorer: str,
    options: Mapping[str, object] | None = None,
    *,
    benchmark: str = UNNAMED,
) -> Score:
    """Score rows (id, source, target, prediction) and keep the counts of every sentence.

    >>> rows = [("1", "他己经来了", "他已经来了", "他已经来了"), ("2", "你好", "你好", "您好")]
    >>> result = score(rows, "cscd", {"unequal_length": "revert"})
    >>> result.values["S_C_p"], result.values["S_C_r"], result.headline
    (50.0, 100.0, 66.667)
    >>> result.counts[:, :3].tolist()  # S_D: tp, predicted, gold
    [[1, 1, 1], [0, 1, 0]]
    """
    rules = find_scorer(scorer, options)
    tally = Tally(rules)
    ids: list[str] = []
    counted = [np.zeros((0, len(rules.fields)), dtype=np.int64)]
    placed = ((f"rows, line {number}", row) for number, row in enumerate(rows, start=1))
    for block in chunk_rows(_check_rows(placed)):
        scored_rows, counts = tally.add_block(block)
        ids.extend(row.id for row in scored_rows)
        counted.append(counts)
    signature = tally.signature(benchmark)
    return Score(
        scorer=rules,
        ids=tuple(ids),
        counts=np.concatenate(counted),
        values=tally.values(signature),
        signature=signature,
    )


def score_file(
    path: Path,
    scorer: str,
    options: Mapping[str, object] | None = None,
    *,
    benchmark: str = UNNAMED,
) -> base.Report:
    """Score a file of id, source, target and prediction.

    A table of tabs, JSON, a header line and quoted cells are read (`cecdata.corpus.pairs`).

    Return the object that `cecbench score --json` prints: the published numbers, with nested keys
    joined by dots; rates of behaviour; what is done with unequal lengths; the signature; and the
    headline's `interval`. Raise InputError, which names the line, for a file that cannot be read,
    and UsageError for an unknown name.
    """
    rules = find_scorer(scorer, options)
    tally = Tally(rules)
    for block in chunk_rows(read_rows(path)):
        tally.add_block(block)
    if tally.read == 0:
        raise InputError(f"{path} has no rows: each needs id, source, target and prediction")
    if not tally.kept:
        return tally.values(tally.signature(benchmark))
    interval = tally.triples.interval(rules.beta)
    signature = tally.signature(benchmark, interval.signature)
    return {**tally.values(signature), "interval": interval.as_dict(rules.headline)}


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a table or of JSON; raise InputError, which names the line."""
    return _check_rows(_place_rows(path))


def _place_rows(path: Path) -> Iterator[tuple[str, _Four]]:
    """Yield (place for messages, row) for each row of a file; raise InputError for an empty id."""
    for number, where, row in read_texts(path, _FOUR[1:], {4: _FOUR}):
        name = row.get("id", f"{path.stem}-{number}")
        if not name or not row["source"]:
            missing = "source" if name else "id"
            raise InputError(f"{where}: the {missing} is empty, but every row needs one")
        yield where, (name, row["source"], row["target"], row["prediction"])


def _check_rows(rows: Iterable[tuple[str, _Four]]) -> Iterator[Row]:
    """Yield the rows without their places; raise InputError for an id that occurs twice."""
    places: dict[str, str] = {}
    for where, row in rows:
        if not all(isinstance(text, str) for text in row):
            raise InputError(f"{where}: id, source, target and prediction must be texts, not {row}")
        first = places.setdefault(row[0], where)
        if first is not where:
            raise InputError(
                f"{where}: id {row[0]!r} is also the id of {first.rpartition(', ')[2]}: give every "
                "sentence its own id"
            )
        yield Row._make(row)


class Tally:
    """Sums of the rows taken so far, a digest of them, and the triples of the headline."""

    def __init__(self, scorer: base.Metric) -> None:
        self.scorer = scorer
        self.read = 0
        self.kept = 0
        self._counts = np.zeros(len(scorer.fields), dtype=np.int64)
        self._behaviour = np.zeros(len(base.BEHAVIOUR_FIELDS), dtype=np.int64)
        self.triples = Triples()
        self._digest = hashlib.sha256()
        self._stopped = False

    def add_block(self, block: Sequence[Row]) -> tuple[list[Row], IntArray]:
        """Add rows; return those that are scored, and their counts, shape (rows, fields)."""
        identity = "\n".join(["\t".join(row[:3]) for row in block])
        self._digest.update((identity + "\n").encode("utf-8", "surrogatepass"))
        scorer, treatment = self.scorer, self.scorer.unequal_length
        if treatment == "strict" and scorer.stop_error:
            # Rows on which the published script does not stop are the same either way.
            treatment = scorer.fallback
            self._stopped |= scorer.stops(block)
        scored_rows = base.UNEQUAL_LENGTH[treatment](block)
        counts = scorer.count(scored_rows)
        self.read += len(block)
        self.kept += len(counts)
        self._counts += counts.sum(axis=0)
        self._behaviour += base.count_behaviour(block).sum(axis=0)
        self.triples.add(counts[:, list(scorer.headline_columns)].tolist())
        return scored_rows, counts

    def signature(self, benchmark: str, bootstrap: str = "none") -> Signature:
        """Return the signature; the digest of ids, sources and targets is added to the name."""
        scorer = self.scorer
        return Signature(
            benchmark=f"{benchmark}@{self._digest.hexdigest()[:8]}",
            rows_scored=self.kept,
            rows_read=self.read,
            scorer=scorer.name,
            level=scorer.headline,
            unequal_length=scorer.fallback if self._stopped else scorer.unequal_length,
            normalisation=scorer.normalisation,
            opencc=scorer.details.get("opencc", "none"),
            beta=scorer.beta,
            bootstrap=bootstrap,
            version=__version__,
        )

    def values(self, signature: Signature) -> base.Report:
        """Return the published script's numbers, the rates of behaviour, and the signature."""
        scorer = self.scorer
        used = scorer.fallback if self._stopped else scorer.unequal_length
        values: base.Report = {
            "scorer": scorer.name,
            "unequal_length": scorer.unequal_length,
            "scored_unequal_length": used,
            "unequal_length_means": base.MEANING[used],
            "rows": self.read if self._stopped else self.kept,  # what the script had to score
            "rows_scored": self.kept,
            "rows_read": self.read,
            **scorer.details,
        }
        if self._stopped:
            values["error"] = scorer.stop_error
            values["error_because"] = (
                "the published script stops where source, target and prediction differ in"
                f" length; the numbers here are those of --unequal-length {used}"
            )
        if self.kept == 0:
            values.setdefault("error", "no rows")
            values["error_because"] = f"--unequal-length {used} left out every row"
        else:
            sums = dict(zip(scorer.fields, self._counts.tolist(), strict=True))
            values.update(base.flatten_keys(scorer.report(sums)))
        if self.read:
            sums = dict(zip(base.BEHAVIOUR_FIELDS, self._behaviour.tolist(), strict=True))
            values.update(base.flatten_keys(base.report_behaviour(sums), "behaviour."))
        named = {f"signature.{name}": value for name, value in asdict(signature).items()}
        return {**values, "signature": signature.short(), **named}
