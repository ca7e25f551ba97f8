"""Scoring of rows or a file with one of the published scorers.

`SCORERS` names them. `score` keeps the counts of every sentence, for intervals and breakdowns;
`score_file` keeps only their sums, so that its memory does not depend on the file's length.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cecbench.benchmarks.readers import REFERENCE_NAMES, SOURCE_NAMES
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
from cecbench.resampling import DRAWS, Interval, check_draws, interval_of
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
#: Files from this size on are scanned, which is faster, but takes 0.5 s and 100 MB for loading.
SCAN_FROM_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Score:
    """The counts of every scored sentence, and the published numbers that their sums give.

    counts: int64, shape (rows_scored, len(scorer.fields)), in the order of `ids`.
    values: the object that `score_file` returns.
    """

    scorer: Scorer
    ids: tuple[str, ...]
    counts: IntArray
    values: Report
    signature: Signature

    @property
    def headline(self) -> float | None:
        """The scorer's headline number, as printed; None if the script prints none."""
        value = self.values.get(self.scorer.headline)
        return None if value is None else float(str(value))

    def interval(self, draws: int = DRAWS) -> Interval:
        """Return the bootstrap interval of the headline, as a fraction."""
        triples = self.counts[:, list(self.scorer.headline_columns)]
        kinds, times = np.unique(triples, axis=0, return_counts=True)
        return interval_of(kinds, times, beta=self.scorer.beta, draws=draws)


def find_scorer(name: str, options: Options) -> Scorer:
    """Return a scorer; raise UsageError for an unknown name or an option that it does not take."""
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
    """Score rows (id, source, target, prediction) and keep the counts of every sentence.

    >>> rows = [("1", "他己经来了", "他已经来了", "他已经来了"), ("2", "你好", "你好", "您好")]
    >>> result = score(rows, "cscd", "revert")
    >>> result.values["S_C_p"], result.values["S_C_r"], result.headline
    (50.0, 100.0, 66.667)
    >>> result.counts[:, :3].tolist()  # S_D: tp, predicted, gold
    [[1, 1, 1], [0, 1, 0]]
    """
    rules = find_scorer(scorer, replace(options or Options(), policy=policy))
    tally = Tally(rules, policy)
    seen = SeenIds()
    read: list[Row] = []
    ids: list[str] = []
    counted = [np.zeros((0, len(rules.fields)), dtype=np.int64)]
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
        scorer=rules,
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
    """Score a file (id, source, target, prediction; tabs; no header) in constant memory.

    Return the object that `cecbench score --json` prints: the published numbers, with nested keys
    joined by dots; rates of behaviour; the policy in words; the signature; and, if `bootstrap` is
    the number of draws, the headline's `interval`. Raise InputError, which names the line, for a
    file that cannot be read, and UsageError for an unknown name.
    """
    options = Options(policy, projection, mode, dictionaries or NO_DICTIONARIES)
    rules = find_scorer(scorer, options)
    check_draws(bootstrap)
    tally = Tally(rules, policy, triples=bootstrap > 0)
    seen = SeenIds()
    for block, hashes in _blocks(path, scanned=rules.scans):
        if tally.read == 0:
            _refuse_header(path, block[0][1:] if isinstance(block, list) else block.texts(0))
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
    interval = interval_of(*tally.triples(), beta=rules.beta, draws=bootstrap)
    signature = tally.signature(benchmark or "file", interval.signature)
    return {**tally.values(signature), "interval": interval.as_dict(rules.headline)}


def _refuse_header(path: Path, first: Sequence[str]) -> None:
    """Raise InputError if the source and the target of the first row are names of columns."""
    source, target, _ = (cell.strip().lower() for cell in first)
    if source in SOURCE_NAMES and target in REFERENCE_NAMES:
        raise InputError(
            f"{path}, line 1 names columns ({', '.join(first)}), and the file is read without a "
            "header: remove the line, for example with `tail -n +2`"
        )


def _blocks(path: Path, *, scanned: bool) -> Iterator[tuple[list[Row] | Scan, NDArray[np.int64]]]:
    """Yield the blocks of a file, scanned or parsed, each with the hashes of its ids."""
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
    """Return whether a file is large, or the packages of the compiled scan are already loaded."""
    return "numba" in sys.modules or (path.is_file() and path.stat().st_size >= SCAN_FROM_BYTES)
