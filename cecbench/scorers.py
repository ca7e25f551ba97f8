"""Scoring of rows or a file with one of the published scorers.

`SCORERS` names them. `score` keeps the counts of every sentence, for intervals and breakdowns;
`score_file` keeps only their sums (`Tally`), so that its memory does not depend on the file.
"""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cecbench.metrics.base import (
    BEHAVIOUR_FIELDS,
    MEANING,
    Options,
    Report,
    Scorer,
    apply_policy,
    count_behaviour,
    flatten,
    report_behaviour,
)
from cecbench.metrics.cherrant import Cherrant
from cecbench.metrics.cscd import Cllm, Cscd
from cecbench.metrics.lemon import Lemon
from cecbench.metrics.pycorrector import Pycorrector
from cecbench.metrics.rows import (
    IntArray,
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
from cecbench.signature import UNNAMED, Signature, package_version
from cecbench.tables import is_json, named, read_table, read_texts
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
    benchmark: str = UNNAMED,
) -> Score:
    """Score rows (id, source, target, prediction) and keep the counts of every sentence.

    >>> rows = [("1", "他己经来了", "他已经来了", "他已经来了"), ("2", "你好", "你好", "您好")]
    >>> result = score(rows, "cscd", "revert")
    >>> result.values["S_C_p"], result.values["S_C_r"], result.headline
    (50.0, 100.0, 66.667)
    >>> result.counts[:, :3].tolist()  # S_D: tp, predicted, gold
    [[1, 1, 1], [0, 1, 0]]
    """
    rules = find_scorer(scorer, _with_policy(options, policy))
    tally = Tally(rules)
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
        check_distinct([read], "rows")
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
    *,
    options: Options | None = None,
    benchmark: str = UNNAMED,
    bootstrap: int = 0,
) -> Report:
    """Score a file of id, source, target and prediction.

    A plain table of tabs is read in constant memory; JSON, a header line and quoted cells are
    read as well (`cecbench.tables`).

    Return the object that `cecbench score --json` prints: the published numbers, with nested keys
    joined by dots; rates of behaviour; the policy in words; the signature; and, if `bootstrap` is
    the number of draws, the headline's `interval`. Raise InputError, which names the line, for a
    file that cannot be read, and UsageError for an unknown name.
    """
    rules = find_scorer(scorer, _with_policy(options, policy))
    check_draws(bootstrap)
    tally = Tally(rules, triples=bootstrap > 0)
    plain = _is_plain(path)
    seen = SeenIds()
    other = ((rows, hashes_of(rows)) for rows in _other_rows(path))
    for block, hashes in _blocks(path, scanned=rules.scans) if plain else other:
        seen.add(hashes)
        if isinstance(block, list):
            tally.take(block)
        else:
            tally.take_scan(block)
    if tally.read == 0:
        raise InputError(f"{path}: no rows; a file with id, source, target, prediction is expected")
    if seen.suspects():
        check_distinct(read_blocks(path) if plain else _other_rows(path), str(path))
    if not bootstrap or not tally.kept:
        return tally.values(tally.signature(benchmark))
    interval = interval_of(*tally.triples(), beta=rules.beta, draws=bootstrap)
    signature = tally.signature(benchmark, interval.signature)
    return {**tally.values(signature), "interval": interval.as_dict(rules.headline)}


def _with_policy(options: Options | None, policy: str | None) -> Options:
    options = options or Options()
    return replace(options, policy=policy or options.policy)


def _blocks(path: Path, *, scanned: bool) -> Iterator[tuple[list[Row] | Scan, NDArray[np.int64]]]:
    """Yield the blocks of a plain table, scanned or parsed, each with the hashes of its ids."""
    look: Callable[[bytes], Scan | None] | None = None
    hashed: Callable[[Sequence[Row]], NDArray[np.int64]] = hashes_of
    if scanned and _pays(path):
        from cecbench.metrics import scan

        look, hashed = scan.scan, lambda rows: scan.hashes_of([row.id for row in rows])
    done = 0
    for raw in read_raw(path):
        block = look(raw) if look else None
        if block is not None:
            yield block, block.ids
            done += len(block)
            continue
        rows = parse(raw, done, path)
        yield rows, hashed(rows)
        done += len(rows)


_FOUR = ("id", "source", "target", "prediction")


def _other_rows(path: Path) -> Iterator[list[Row]]:
    """Yield the rows of JSON, or of a table with a header or with quoted cells, in lists."""
    texts = read_texts(path, _FOUR[1:], {4: _FOUR})
    return chunks(
        (row.get("id") or f"{path.stem}-{number}", row["source"], row["target"], row["prediction"])
        for number, _, row in texts
    )


def _is_plain(path: Path) -> bool:
    """Return whether a file has tabs, no header and no quoted cells."""
    if path.suffix.lower() == ".csv" or not path.is_file():
        return not path.is_file()  # the error of `read_raw` names it
    first = next(read_raw(path), b"")
    head = first.partition(b"\n")[0].decode("utf-8", "replace").split("\t")
    if first.startswith((b"\xff\xfe", b"\xfe\xff")) or named(head, _FOUR[1:]) or is_json(path):
        return False
    quotes = any(raw[:1] == b'"' or b'\t"' in raw or b'\n"' in raw for raw in read_raw(path))
    return not quotes or not read_table(path).quoted


def _pays(path: Path) -> bool:
    """Return whether a file is large, or the packages of the compiled scan are already loaded."""
    return "numba" in sys.modules or (path.is_file() and path.stat().st_size >= SCAN_FROM_BYTES)


_BASE = 1 << 20  # of the number that encodes a sentence's three counts; each count is below it


class Tally:
    """Sums of the rows taken so far, a digest of them and, optionally, their triples.

    A triple is (tp, predicted, gold) of the headline in one sentence. A bootstrap needs only how
    often each occurs, and there are few different ones, however many sentences there are.
    """

    def __init__(self, scorer: Scorer, *, triples: bool = False) -> None:
        self.scorer = scorer
        self.policy = scorer.policy
        self.read = 0
        self.kept = 0
        self._counts = np.zeros(len(scorer.fields), dtype=np.int64)
        self._behaviour = np.zeros(len(BEHAVIOUR_FIELDS), dtype=np.int64)
        self._triples: Counter[int] | None = Counter() if triples else None
        self._digest = hashlib.sha256()
        self._stopped = False

    def take(self, block: Sequence[Row]) -> tuple[list[Row], IntArray]:
        """Add rows; return those that are scored, and their counts, shape (rows, fields)."""
        identity = "\n".join(["\t".join(row[:3]) for row in block])
        self._digest.update((identity + "\n").encode("utf-8", "surrogatepass"))
        kept = apply_policy(block, self._policy(stops=self.scorer.stops(block)))
        counts = self.scorer.count(kept) if kept else self._none()
        self._add(len(block), counts, count_behaviour(block))
        return kept, counts

    def take_scan(self, block: Scan) -> None:
        """Add a scanned block, of which no rows were built; for scorers that count facts."""
        from cecbench.metrics.scan import behaviour_of, lengths_differ, under_policy

        self._digest.update(block.identity.data)
        policy = self._policy(stops=bool(self.scorer.stop_error) and lengths_differ(block))
        counts = self.scorer.count_facts(*under_policy(block, policy))
        self._add(len(block), counts, behaviour_of(block))

    def triples(self) -> tuple[IntArray, IntArray]:
        """Return the distinct triples in order, shape (kinds, 3), and how often each occurs."""
        assert self._triples is not None
        keys = np.array(sorted(self._triples), dtype=np.int64)
        times = np.array([self._triples[key] for key in keys.tolist()], dtype=np.int64)
        return np.column_stack((keys // _BASE**2, keys // _BASE % _BASE, keys % _BASE)), times

    def signature(self, benchmark: str, bootstrap: str = "none") -> Signature:
        """Return the signature; the digest of ids, sources and targets is added to the name."""
        scorer = self.scorer
        return Signature(
            benchmark=f"{benchmark}@{self._digest.hexdigest()[:8]}",
            rows_scored=self.kept,
            rows_read=self.read,
            scorer=scorer.name,
            level=scorer.headline,
            policy=scorer.fallback if self._stopped else self.policy,
            normalisation=scorer.normalisation,
            opencc=scorer.details.get("opencc", "none"),
            beta=scorer.beta,
            bootstrap=bootstrap,
            version=package_version(),
        )

    def values(self, signature: Signature) -> Report:
        """Return the published script's numbers, the rates of behaviour, and the signature."""
        scorer = self.scorer
        used = scorer.fallback if self._stopped else self.policy
        values: Report = {
            "scorer": scorer.name,
            "policy": self.policy,
            "scored_policy": used,
            "policy_means": MEANING[used],
            "rows": self.read if self._stopped else self.kept,
            "rows_scored": self.kept,
            "rows_read": self.read,
            **scorer.details,
        }
        if self._stopped:
            values["error"] = scorer.stop_error
            values["error_because"] = (
                "the published script stops where source, target and prediction are not of one"
                f" length; the numbers here are those of policy {used}"
            )
        if self.kept == 0:
            values.setdefault("error", "no rows")
            values["error_because"] = f"policy {used} left out every row"
        else:
            sums = dict(zip(scorer.fields, self._counts.tolist(), strict=True))
            values.update(flatten(scorer.report(sums)))
        if self.read:
            sums = dict(zip(BEHAVIOUR_FIELDS, self._behaviour.tolist(), strict=True))
            values.update(flatten(report_behaviour(sums), "behaviour."))
        named = {f"signature.{name}": value for name, value in signature.as_dict().items()}
        return {**values, "signature": signature.short(), **named}

    def _policy(self, *, stops: bool) -> str:
        """Return the policy of a block: strict becomes the fallback if the script can stop."""
        if self.policy != "strict" or not self.scorer.stop_error:
            return self.policy
        # Rows on which the published script does not stop are the same under both policies.
        self._stopped |= stops
        return self.scorer.fallback

    def _add(self, read: int, counts: IntArray, behaved: IntArray) -> None:
        self.read += read
        self.kept += len(counts)
        self._counts += counts.sum(axis=0)
        self._behaviour += behaved.sum(axis=0)
        if self._triples is None:
            return
        tp, predicted, gold = counts[:, list(self.scorer.headline_columns)].T
        keys, times = np.unique((tp * _BASE + predicted) * _BASE + gold, return_counts=True)
        self._triples.update(dict(zip(keys.tolist(), times.tolist(), strict=True)))

    def _none(self) -> IntArray:
        return np.zeros((0, len(self.scorer.fields)), dtype=np.int64)
