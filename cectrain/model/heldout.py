"""Greedy corrections of held-out sentences, and what they score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cecbench.metrics import behaviour
from cecbench.metrics.rows import Row
from cecbench.scorers import score
from cecdata.common import durable
from cecdata.common.codec import decode as decode_record
from cecdata.common.codec import encode
from cecdata.common.errors import VerificationError
from cecdata.common.seal import sealed, unsealed
from cectrain.corrector import speculative
from cectrain.corrector.loading import batches_by_length
from cectrain.corrector.policy import Policy, decode, prompt_ids
from cectrain.data.shards import Pair

if TYPE_CHECKING:
    import torch

_BATCH = 64
_ROOM = 12  # tokens that a correction may be longer than its source


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Scores on held-out pairs; rates are fractions, None where nothing can be divided.

    exact: erroneous sentences corrected to the letter. copied: erroneous ones left as they were.
    over_correction: clean sentences changed. f1: CSCD-NS sentence-level correction F1, rows of
    other length reverted. by_operator: exact by what struck the source.
    """

    rows: int
    exact: float | None
    copied: float | None
    over_correction: float | None
    length_differs: float | None
    f1: float | None
    by_operator: dict[str, float]
    samples: tuple[tuple[str, ...], ...]  # source, answer, target
    answers: tuple[str, ...] = ()  # of all sentences, the pairs' first, then the clean ones'


def write_held_out(path: Path, found: HeldOut) -> None:
    """Keep the scores for a run that goes on, sealed: they end in its summary."""
    plain = encode(found)
    assert isinstance(plain, dict)
    durable.write_bytes(path, sealed(plain))


def read_held_out(path: Path) -> HeldOut:
    """The scores that `write_held_out` kept; VerificationError where they are damaged."""
    try:
        found = decode_record(HeldOut, unsealed(path.read_bytes()), str(path))
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if any(len(row) != 3 for row in found.samples):
        raise _damaged(path, "a sample is a source, an answer and a target")
    return found


def _damaged(path: Path, why: str) -> VerificationError:
    return VerificationError(
        f"{path}: damaged ({why}): remove it, and the same command evaluates again"
    )


def shown(found: HeldOut, count: int = 3) -> list[str]:
    """A few samples, a line each: source, answer, and the target where that is another.

    >>> found = HeldOut(1, 0.0, 0.0, None, 0.0, None, {}, (("己经", "己经", "已经"),))
    >>> shown(found)
    ['  己经 → 己经  ✗ 已经']
    """
    lines = []
    for source, answer, target in found.samples[:count]:
        mark = "✓" if answer == target else f"✗ {target}"
        lines.append(f"  {source} → {answer}  {mark}")
    return lines


def evaluate(policy: Policy, pairs: Sequence[Pair], clean: Sequence[str]) -> HeldOut:
    """Corrects the pairs' sources and the clean sentences, greedily, and counts."""
    sources = [*(pair.source for pair in pairs), *clean]
    answers = list(corrections(policy, sources))
    targets = [*(pair.target for pair in pairs), *clean]
    rows = [
        Row(str(n), s, t, a)
        for n, (s, t, a) in enumerate(zip(sources, targets, answers, strict=True))
    ]
    sums = dict(zip(behaviour.FIELDS, behaviour.count(rows).sum(axis=0).tolist(), strict=True))
    rates = behaviour.report(sums)
    wrong = [row for row in rows if row.source != row.target]
    exact = [answer == pair.target for pair, answer in zip(pairs, answers, strict=False)]
    return HeldOut(
        rows=len(rows),
        exact=_share([row.prediction == row.target for row in wrong]),
        copied=_share([row.prediction == row.source for row in wrong]),
        over_correction=_number(rates["over_correction_rate"]),
        length_differs=_number(rates["length_violation_rate"]),
        f1=_f1(rows),
        by_operator=exact_by_operator(pairs, exact),
        samples=tuple((row.source, row.prediction, row.target) for row in wrong[:5]),
        answers=tuple(answers),
    )


def exact_by_operator(pairs: Sequence[Pair], exact: Sequence[bool]) -> dict[str, float]:
    """Return the share of exact answers to the erroneous sources of each operator."""
    hits: dict[str, list[bool]] = {}
    for pair, hit in zip(pairs, exact, strict=True):
        if pair.source != pair.target:
            hits.setdefault(pair.operator, []).append(hit)
    return {name: sum(some) / len(some) for name, some in sorted(hits.items())}


def corrections(policy: Policy, sources: Sequence[str], batch: int = _BATCH) -> Iterator[str]:
    """One greedy answer a source, in their order; no generator is drawn from."""
    import torch

    asked = [prompt_ids(policy, source) for source in sources]
    write = _drafted if speculative.supported(policy.model) else _greedy
    answers: dict[int, str] = {}
    was_training = policy.model.training
    policy.model.eval()
    try:
        with torch.no_grad():
            for chosen in batches_by_length([len(ids) for ids in asked], batch):
                told = [sources[i] for i in chosen]
                written = write(policy, [asked[i] for i in chosen], told)
                answers.update(zip(chosen, decode(policy, written), strict=True))
    finally:
        policy.model.train(was_training)
    return (answers[place].strip() for place in range(len(sources)))


def fits(policy: Policy, source: str) -> bool:
    """Whether a source is no longer than the policy can correct.

    A policy over characters copies what is longer than its training's sentences into garbage: those
    of the run that it comes from, or of its pretraining. Of all the question and its answer must
    fit the context.
    """
    if policy.max_chars is not None and len(source) > policy.max_chars:
        return False
    limit = int(getattr(policy.model.config, "max_position_embeddings", 0) or 0)
    return not limit or 2 * len(prompt_ids(policy, source)) + _ROOM <= limit


def special_token(policy: Policy, source: str) -> str:
    """The first special token that a source holds as text; empty where it holds none."""
    known = policy.tokenizer
    special = {number for number, token in known.added_tokens_decoder.items() if token.special}
    special = (special | set(known.all_special_ids)) - {known.unk_token_id}
    ids = known.encode(source, add_special_tokens=False)
    return next((str(known.convert_ids_to_tokens(i)) for i in ids if i in special), "")


def _drafted(
    policy: Policy, asked: Sequence[Sequence[int]], sources: Sequence[str]
) -> list[list[int]]:
    """The same as token by token, in a few passes: an answer is nearly its source."""
    drafts = policy.tokenizer(list(sources), add_special_tokens=False).input_ids
    found = speculative.write(
        policy.model,
        asked,
        drafts,
        1,
        end=int(policy.tokenizer.eos_token_id),
        stops=_stops(policy),
        longest=max(map(len, asked)) + _ROOM,
        temperature=None,
    )
    return [one.tokens for one in found]


def _stops(policy: Policy) -> list[int]:
    named = policy.model.generation_config.eos_token_id
    return list(named) if isinstance(named, (list, tuple)) else [int(named)] if named else []


def _greedy(
    policy: Policy,
    asked: Sequence[Sequence[int]],
    sources: Sequence[str],  # noqa: ARG001 - the other way needs them
) -> list[list[int]]:
    import torch

    model, pad = policy.model, int(policy.tokenizer.pad_token_id)
    width = max(len(ids) for ids in asked)
    rows = [[pad] * (width - len(ids)) + list(ids) for ids in asked]
    mask = [[0] * (width - len(ids)) + [1] * len(ids) for ids in asked]
    output: torch.Tensor = model.generate(
        input_ids=torch.tensor(rows, device=model.device),
        attention_mask=torch.tensor(mask, device=model.device),
        max_new_tokens=width + _ROOM,
        do_sample=False,
        temperature=None,
        top_p=None,
        top_k=None,
        pad_token_id=pad,
    )
    rows_out: list[list[int]] = output[:, width:].tolist()
    return rows_out


def _f1(rows: Sequence[Row]) -> float | None:
    percent = _number(score(rows, "cscd").values.get("S_C_f1"))
    return None if percent is None else percent / 100


def _share(hits: Sequence[bool]) -> float | None:
    return sum(hits) / len(hits) if hits else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
