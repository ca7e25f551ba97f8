"""Scores rows or a file with one of the published scorers.

`SCORERS` names them. `score` keeps the counts of every sentence, for intervals and breakdowns;
`score_file` keeps their sums alone, so that a file of any length takes the same memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from cecbench.cherrant.costs import NO_DICTIONARIES, Dictionaries
from cecbench.metrics import behaviour
from cecbench.metrics.cherrant import make_cherrant
from cecbench.metrics.cllm import make_cllm
from cecbench.metrics.cscd import make_cscd
from cecbench.metrics.lemon import make_lemon
from cecbench.metrics.policies import MEANING, apply_policy
from cecbench.metrics.positions import IntArray
from cecbench.metrics.pycorrector import make_pycorrector
from cecbench.metrics.rows import Row, SeenIds, check_distinct, chunks, read_blocks, read_tsv
from cecbench.metrics.sighan import make_sighan
from cecbench.metrics.table import Report, Scorer, flatten
from cecbench.signature import Signature, package_version
from cecdata.errors import InputError, UsageError


@dataclass(frozen=True, slots=True)
class Options:
    """What a scorer may be told beside its policy; None is the scorer's own default."""

    policy: str | None = None
    projection: str | None = None
    mode: str | None = None
    dictionaries: Dictionaries = NO_DICTIONARIES


#: name → the scorer for these options. A further scorer is one new file and one entry here.
SCORERS: Mapping[str, Callable[[Options], Scorer]] = {
    "cscd": lambda options: make_cscd(options.policy or "revert"),
    "lemon": lambda _: make_lemon(),
    "sighan": lambda _: make_sighan(),
    "pycorrector": lambda _: make_pycorrector(),
    "cllm": lambda options: make_cllm(options.projection, options.dictionaries),
    "cherrant": lambda options: make_cherrant(options.mode, options.dictionaries),
}
_TAKES = {"projection": "cllm", "mode": "cherrant"}


@dataclass(frozen=True, slots=True)
class Score:
    """The counts of every scored sentence and what the published script makes of their sums.

    counts: int64, shape (rows_scored, len(scorer.fields)); ids in the same order.
    behaviour: int64, shape (rows_read, len(behaviour.FIELDS)), before the policy.
    values: the published numbers, keys joined with dots, as `score_file` gives them.
    """

    scorer: Scorer
    ids: tuple[str, ...]
    counts: IntArray
    behaviour: IntArray
    values: Report
    signature: Signature

    @property
    def headline(self) -> float | None:
        """The scorer's headline number, as printed; None where the script prints none."""
        value = self.values.get(self.scorer.headline)
        return None if value is None else float(str(value))


@dataclass(slots=True)
class _Sums:
    """Running state of one pass over the rows."""

    scorer: Scorer
    policy: str
    read: int = 0
    kept: int = 0
    counts: IntArray | None = None
    behaviour: IntArray | None = None
    stopped: bool = False


def find_scorer(name: str, options: Options) -> Scorer:
    """The scorer of that name; an unknown name or an option it does not take is a UsageError."""
    if name not in SCORERS:
        near = get_close_matches(name, SCORERS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UsageError(f"unknown scorer {name!r}; {hint}available: {', '.join(SCORERS)}")
    for option, taker in _TAKES.items():
        if getattr(options, option) is not None and name != taker:
            raise UsageError(f"--{option} is for the scorer {taker}, not for {name}")
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
    settings = replace(options or Options(), policy=policy)
    found = find_scorer(scorer, settings)
    state = _Sums(found, policy or found.default_policy)
    digest = hashlib.sha256()
    seen = SeenIds()
    read: list[Row] = []
    ids: list[str] = []
    counted: list[IntArray] = []
    behaved: list[IntArray] = []
    for block in chunks(rows):
        seen.add(block)
        read.extend(block)
        kept, counts, behaviour_counts = _take(state, block, digest)
        ids.extend(row.id for row in kept)
        counted.append(counts)
        behaved.append(behaviour_counts)
    check_distinct(seen, read, "rows")
    signature = _signature(state, f"{benchmark}@{digest.hexdigest()[:8]}")
    return Score(
        scorer=found,
        ids=tuple(ids),
        counts=_joined(counted, len(found.fields)),
        behaviour=_joined(behaved, len(behaviour.FIELDS)),
        values=_values(state, signature),
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
) -> Report:
    """Scores a file (id, source, target, prediction; tabs; no header) in constant memory.

    Gives the object that `cecbench score --json` prints: the golden files' keys joined with
    dots, rates of behaviour, the policy in words, and the signature. A file that cannot be read
    is an InputError naming the line, an unknown name a UsageError.
    """
    options = Options(policy, projection, mode, dictionaries or NO_DICTIONARIES)
    found = find_scorer(scorer, options)
    state = _Sums(found, policy or found.default_policy)
    digest = hashlib.sha256()
    seen = SeenIds()
    for block in read_blocks(path):
        seen.add(block)
        _take(state, block, digest)
    if state.read == 0:
        raise InputError(f"{path}: no rows; a file with id, source, target, prediction is expected")
    check_distinct(seen, read_tsv(path), str(path))
    name = benchmark or "file"
    return _values(state, _signature(state, f"{name}@{digest.hexdigest()[:8]}"))


def _take(
    state: _Sums, block: list[Row], digest: hashlib._Hash
) -> tuple[list[Row], IntArray, IntArray]:
    """Counts one block and adds its sums to the state."""
    identity = "\n".join(["\t".join(row[:3]) for row in block])
    digest.update((identity + "\n").encode("utf-8", "surrogatepass"))
    policy = state.policy
    if state.scorer.stops is not None and policy == "strict":
        # Rows on which the published script does not stop are the same under both policies.
        state.stopped |= state.scorer.stops(block)
        policy = state.scorer.fallback
    kept = apply_policy(block, policy)
    counts = state.scorer.count(kept) if kept else _empty(len(state.scorer.fields))
    behaved = behaviour.count(block)
    state.read += len(block)
    state.kept += len(kept)
    state.counts = _plus(state.counts, counts)
    state.behaviour = _plus(state.behaviour, behaved)
    return kept, counts, behaved


def _plus(sums: IntArray | None, counts: IntArray) -> IntArray:
    added: IntArray = counts.sum(axis=0)
    return added if sums is None else sums + added


def _empty(width: int) -> IntArray:
    return np.zeros((0, width), dtype=np.int64)


def _joined(blocks: list[IntArray], width: int) -> IntArray:
    return np.concatenate(blocks) if blocks else _empty(width)


def _values(state: _Sums, signature: Signature) -> Report:
    scorer = state.scorer
    used = scorer.fallback if state.stopped else state.policy
    values: Report = {
        "scorer": scorer.name,
        "policy": state.policy,
        "scored_policy": used,
        "policy_means": MEANING[used],
        "rows": state.read if state.stopped else state.kept,
        "rows_scored": state.kept,
        "rows_read": state.read,
        **scorer.details,
    }
    if state.stopped:
        values["error"] = scorer.stop_error
        values["error_because"] = (
            "the published script stops where source, target and prediction are not of one"
            f" length; the numbers here are those of policy {used}"
        )
    if state.kept == 0:
        values.setdefault("error", "no rows")
        values["error_because"] = f"policy {used} left out every row"
    elif state.counts is not None:
        sums = dict(zip(scorer.fields, state.counts.tolist(), strict=True))
        values.update(flatten(scorer.report(sums)))
    if state.behaviour is not None:
        sums = dict(zip(behaviour.FIELDS, state.behaviour.tolist(), strict=True))
        values.update(flatten(behaviour.report(sums), "behaviour."))
    return {**values, "signature": signature.short(), **_prefixed(signature)}


def _prefixed(signature: Signature) -> Report:
    return {f"signature.{name}": value for name, value in signature.as_dict().items()}


def _signature(state: _Sums, benchmark: str) -> Signature:
    scorer = state.scorer
    return Signature(
        benchmark=benchmark,
        rows_scored=state.kept,
        rows_read=state.read,
        scorer=scorer.name,
        level=scorer.headline,
        policy=scorer.fallback if state.stopped else state.policy,
        normalisation=scorer.normalisation,
        opencc=scorer.details.get("opencc", "none"),
        beta=scorer.beta,
        version=package_version(),
    )
