"""Scores rows or a file with one of the published scorers.

`SCORERS` names them. `score` keeps the counts of every sentence, for intervals and breakdowns;
`score_file` keeps their sums alone, so that a file of any length takes the same memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cecbench.cherrant.costs import NO_DICTIONARIES, Dictionaries
from cecbench.metrics.base import Options, Report, Scorer
from cecbench.metrics.cherrant import Cherrant
from cecbench.metrics.cllm import Cllm
from cecbench.metrics.cscd import Cscd
from cecbench.metrics.lemon import Lemon
from cecbench.metrics.positions import IntArray
from cecbench.metrics.pycorrector import Pycorrector
from cecbench.metrics.rows import (
    Row,
    SeenIds,
    check_distinct,
    chunks,
    hashes_of,
    parse,
    read_blocks,
    read_raw,
)
from cecbench.metrics.sighan import Sighan
from cecbench.resampling import DRAWS, Interval, check_counts, check_draws, interval_of
from cecbench.signature import Signature
from cecbench.tally import Tally
from cecdata.common.errors import InputError, UsageError

if TYPE_CHECKING:
    from cecbench.metrics.scan import Scan


__all__ = ["SCORERS", "Options", "Score", "find_scorer", "score", "score_file"]

#: name → class. A further scorer is one new module in `cecbench.metrics` and one entry here.
SCORERS: Mapping[str, type[Scorer]] = {
    scorer.name: scorer for scorer in (Cscd, Lemon, Sighan, Pycorrector, Cllm, Cherrant)
}
#: From here on a file is scanned: quicker by the row, after half a second and 100 MB for loading.
SCAN_FROM_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Score:
    """The counts of every scored sentence and what the published script makes of their sums.

    counts: int64, shape (rows_scored, len(scorer.fields)); ids in the same order.
    values: the published numbers, keys joined with dots, as `score_file` gives them.
    """

    scorer: Scorer
    ids: tuple[str, ...]
    counts: IntArray
    values: Report
    signature: Signature

    @property
    def headline(self) -> float | None:
        """The scorer's headline number, as printed; None where the script prints none."""
        value = self.values.get(self.scorer.headline)
        return None if value is None else float(str(value))

    def interval(self, draws: int = DRAWS) -> Interval:
        """Return the bootstrap interval of the headline, as a fraction."""
        check_counts(self.counts, draws)
        triples = self.counts[:, list(self.scorer.headline_columns)]
        kinds, times = np.unique(triples, axis=0, return_counts=True)
        return interval_of(kinds, times, beta=self.scorer.beta, draws=draws)


def find_scorer(name: str, options: Options) -> Scorer:
    """The scorer of that name; an unknown name or an option it does not take is a UsageError."""
    if name not in SCORERS:
        near = get_close_matches(name, SCORERS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UsageError(f"unknown scorer {name!r}; {hint}available: {', '.join(SCORERS)}")
    for taker in SCORERS.values():
        for option in taker.takes:
            if getattr(options, option) is not None and option not in SCORERS[name].takes:
                raise UsageError(f"--{option} is for the scorer {taker.name}, not for {name}")
    scorer = SCORERS[name](options)
    if options.policy is not None and options.policy not in scorer.policies:
        raise UsageError(
            f"scorer {name} has no policy {options.policy!r};"
            f" available: {', '.join(scorer.policies)}"
        )
    return scorer


def score(
    rows: Iterable[tuple[str, str, str, str]],
    scorer: str,
    policy: str | None = None,
    *,
    options: Options | None = None,
    benchmark: str = "rows",
) -> Score:
    """Scores (id, source, target, prediction) and keeps the counts of every sentence.

    >>> rows = [("1", "他己经来了", "他已经来了", "他已经来了"), ("2", "你好", "你好", "您好")]
    >>> result = score(rows, "cscd", "revert")
    >>> result.values["S_C_p"], result.values["S_C_r"], result.headline
    (50.0, 100.0, 66.667)
    >>> result.counts[:, :3].tolist()  # S_D: tp, predicted, gold
    [[1, 1, 1], [0, 1, 0]]
    """
    found = find_scorer(scorer, replace(options or Options(), policy=policy))
    tally = Tally(found, policy)
    seen = SeenIds()
    read: list[Row] = []
    ids: list[str] = []
    counted = [np.zeros((0, len(found.fields)), dtype=np.int64)]
    for block in chunks(rows):
        seen.add(hashes_of(block))
        read.extend(block)
        kept, counts = tally.take(block)
        ids.extend(row.id for row in kept)
        counted.append(counts)
    if seen.suspects():
        check_distinct(lambda: [read], "rows")
    signature = tally.signature(benchmark)
    return Score(
        scorer=found,
        ids=tuple(ids),
        counts=np.concatenate(counted),
        values=tally.values(signature),
        signature=signature,
    )


def score_file(
    path: Path,
    scorer: str,
    policy: str | None = None,
    projection: str | None = None,
    mode: str | None = None,
    *,
    dictionaries: Dictionaries | None = None,
    benchmark: str | None = None,
    bootstrap: int = 0,
) -> Report:
    """Scores a file (id, source, target, prediction; tabs; no header) in constant memory.

    Gives the object that `cecbench score --json` prints: the golden files' keys joined with
    dots, rates of behaviour, the policy in words, the signature, and with so many `bootstrap`
    draws the headline's `interval`. A file that cannot be read is an InputError naming the line,
    an unknown name a UsageError.
    """
    options = Options(policy, projection, mode, dictionaries or NO_DICTIONARIES)
    found = find_scorer(scorer, options)
    check_draws(bootstrap)
    tally = Tally(found, policy, triples=bootstrap > 0)
    seen = SeenIds()
    for block, hashes in _blocks(path, scanned=found.scans):
        seen.add(hashes)
        if isinstance(block, list):
            tally.take(block)
        else:
            tally.take_scan(block)
    if tally.read == 0:
        raise InputError(f"{path}: no rows; a file with id, source, target, prediction is expected")
    if seen.suspects():
        check_distinct(lambda: read_blocks(path), str(path))
    if not bootstrap or not tally.kept:
        return tally.values(tally.signature(benchmark or "file"))
    interval = interval_of(*tally.triples(), beta=found.beta, draws=bootstrap)
    signature = tally.signature(benchmark or "file", interval.signature)
    return {**tally.values(signature), "interval": interval.as_dict(found.headline)}


def _blocks(path: Path, *, scanned: bool) -> Iterator[tuple[list[Row] | Scan, NDArray[np.int64]]]:
    """The blocks of a file with hashes of their ids: scanned where that pays, else parsed."""
    if not scanned or not _pays(path):
        for rows in read_blocks(path):
            yield rows, hashes_of(rows)
        return
    from cecbench.metrics import scan

    done = 0
    for raw in read_raw(path):
        block = scan.scan(raw)
        if block is not None:
            yield block, block.ids
            done += len(block)
            continue
        rows = parse(raw, done, path)
        yield rows, scan.hashes_of([row.id for row in rows])
        done += len(rows)


def _pays(path: Path) -> bool:
    """Whether a file is large, or the compiled scan's packages are loaded already."""
    return "numba" in sys.modules or (path.is_file() and path.stat().st_size >= SCAN_FROM_BYTES)
