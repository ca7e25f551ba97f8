"""Speculative decoding with the source as the draft: candidates in a few forward passes.

A correction is nearly equal to its source, so the source's own tokens serve as the draft. One pass
gives the policy's distributions along the draft. A draft token is accepted with the probability
that the policy gives it; if it is rejected, another one is drawn from the rest of the distribution
(Leviathan et al. 2023, eq. 1, with a draft of probability 1). The candidates have exactly the
policy's distribution; the draft only affects the number of passes. The L candidates of a source
share its passes until they diverge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cecdata.models.loading import name_cache

if TYPE_CHECKING:
    import torch

KNOWN = ("llama", "qwen2", "qwen3")  # model types whose cache keeps every position
_WINDOW = 6  # fewest draft tokens per pass; more after many were accepted
_CELLS = 2**27  # most logits of the first pass; later ones have fewer tokens of more candidates
_LIKELY = 64  # tokens that nearly always contain the nucleus; sorting all costs much more


@dataclass(frozen=True, slots=True)
class Written:
    """A candidate: its tokens with the end token, and their log-probabilities when drawn."""

    tokens: list[int]
    log_probs: list[float]


@dataclass(slots=True)
class _Branch:
    """Candidates with equal tokens so far, and the draft that is tried next for them."""

    row: int  # of the cache after the previous pass
    uncached: list[int]  # tokens that are not in the cache yet
    source: Sequence[int]
    window: int  # number of draft tokens in the pass
    kept: int = 0  # number of tokens of the previous pass that were accepted
    at: int = 0  # position of the first token that is not in the cache
    place: int = 0  # of the next draft token in the source
    skipped: int = -1  # the source token that was replaced last
    members: list[int] = field(default_factory=list)  # the numbers of the candidates

    def make_draft(self) -> list[int]:
        """Return the draft tokens of the pass."""
        return list(self.source[self.place : self.place + self.window])

    def list_proposed(self, end: int) -> list[int]:
        """Return the tokens to accept or reject: the draft of the pass and the token after it."""
        after = self.source[self.place : self.place + self.window + 1]
        return [*after, end][: self.window + 1]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The tokens that a pass adds to one candidate; if `rejected`, the last one was drawn anew."""

    member: int
    row: int
    tokens: list[int]
    log_probs: list[float]
    rejected: bool


@dataclass(slots=True)
class _Seen:
    """Keys and values of all passes, which of them are valid, and the width of the last pass."""

    keys: Any = None
    mask: Any = None  # [rows, positions]
    width: int = 0


def is_supported(model: Any) -> bool:
    """Return whether the model is a decoder with full attention and a cache as used here."""
    model, config = _unwrap(model), model.config
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if config.model_type not in KNOWN or kinds != {"full_attention"}:
        return False
    return getattr(model, "lm_head", None) is not None


@contextmanager
def pause_training(model: Any) -> Iterator[None]:
    """Let the model compute without gradients and dropout inside."""
    import torch

    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)


def _unwrap(model: Any) -> Any:
    """Return the model without an adapter's wrapper; the adapter stays in its layers."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def write_answers(
    model: Any,
    prompts: Sequence[Sequence[int]],
    drafts: Sequence[Sequence[int]],
    size: int,
    *,
    end: int,
    longest: int,
    temperature: float | None = 1.0,
    top_p: float = 1.0,
    stops: Collection[int] = (),
) -> list[Written]:
    """Return `size` continuations of each prompt, those of the first prompt first.

    Each has at most `longest` tokens, with their log-probabilities. drafts: a likely continuation
    of each prompt, without the token `end`, which ends a continuation, as do `stops`. Draws from
    torch's generator; `temperature=None` takes the most likely token instead. `top_p` below 1 draws
    from the nucleus; log-probabilities are then those within it.
    """
    model, ends = _unwrap(model), frozenset((end, *stops))
    widest = max((len(draft) for draft in drafts), default=0) + 1
    at_once = max(1, _CELLS // (widest * int(model.config.vocab_size)))
    written: list[Written] = []
    with pause_training(model):
        for start in range(0, len(prompts), at_once):
            rows = slice(start, start + at_once)
            branches = _make_branches(prompts[rows], drafts[rows], size)
            written += _write_branches(
                model, branches, size, end, ends, longest, (temperature, top_p)
            )
    return written


def _make_branches(
    prompts: Sequence[Sequence[int]], drafts: Sequence[Sequence[int]], size: int
) -> list[_Branch]:
    """Return a branch for each prompt, with the numbers of its candidates and its whole draft."""
    members = [list(range(first, first + size)) for first in range(0, len(prompts) * size, size)]
    return [
        _Branch(row, list(prompt), draft, window=len(draft), members=members[row])
        for row, (prompt, draft) in enumerate(zip(prompts, drafts, strict=True))
    ]


def _write_branches(
    model: Any,
    branches: list[_Branch],
    size: int,  # candidates of a branch
    end: int,  # the token behind a draft
    ends: frozenset[int],  # tokens that end a candidate
    longest: int,  # most tokens of a candidate
    sampling: tuple[float | None, float],  # temperature and top_p
) -> list[Written]:
    """Return the candidates of all branches, which split where candidates differ."""
    candidates = [Written([], []) for _ in range(len(branches) * size)]
    seen = _Seen()
    while branches:
        logits = _run_pass(model, branches, seen)
        verdicts = _judge_drafts(logits, branches, end, *sampling)
        next_branches: dict[tuple[int, int, int], _Branch] = {}
        for verdict in verdicts:
            written = candidates[verdict.member]
            room = longest - len(written.tokens)
            written.tokens.extend(verdict.tokens[:room])
            written.log_probs.extend(verdict.log_probs[:room])
            if len(verdict.tokens) >= room or verdict.tokens[-1] in ends:
                continue
            # of one branch, as many tokens with the same last one are the same tokens
            key = (verdict.row, len(verdict.tokens), verdict.tokens[-1])
            if key not in next_branches:
                next_branches[key] = _move_on(branches[verdict.row], verdict)
            next_branches[key].members.append(verdict.member)
        branches = list(next_branches.values())
    return candidates


def _run_pass(model: Any, branches: Sequence[_Branch], seen: _Seen) -> torch.Tensor:
    """Return the logits of each proposed token, [branches, widest, V], and extend the cache."""
    import torch

    fed = [branch.uncached + branch.make_draft() for branch in branches]
    width = max(map(len, fed))
    places = torch.arange(width)
    new = places < torch.tensor([len(tokens) for tokens in fed])[:, None]
    mask = torch.cat([_mask_cached(branches, seen), new], dim=1)
    if seen.keys is not None:
        seen.keys.batch_select_indices(torch.tensor([b.row for b in branches]).to(model.device))
    ids = torch.tensor([tokens + [0] * (width - len(tokens)) for tokens in fed])
    starts = torch.tensor([branch.at for branch in branches])
    cache = name_cache(model.model)
    output = model.model(
        input_ids=ids.to(model.device),
        attention_mask=mask.long().to(model.device),
        position_ids=(starts[:, None] + places).to(model.device),
        use_cache=True,
        **{cache: seen.keys},
    )
    seen.keys, seen.mask, seen.width = output[cache], mask, width
    # The head, a third of a small model's work, computes only positions of proposed tokens.
    first = torch.tensor([len(branch.uncached) - 1 for branch in branches])
    offsets = torch.arange(max(len(branch.make_draft()) for branch in branches) + 1)
    at = (first[:, None] + offsets).clamp(max=width - 1).to(model.device)
    rows = torch.arange(len(branches), device=model.device)[:, None]
    return model.lm_head(output.last_hidden_state[rows, at]).float()


def _mask_cached(branches: Sequence[_Branch], seen: _Seen) -> torch.Tensor:
    """Return which cached positions belong to each branch, [branches, positions] bool."""
    import torch

    if seen.mask is None:
        return torch.zeros(len(branches), 0, dtype=torch.bool)
    mask: torch.Tensor = seen.mask[[branch.row for branch in branches]]
    accepted = torch.tensor([branch.kept for branch in branches])
    mask[:, mask.shape[1] - seen.width :] &= torch.arange(seen.width) < accepted[:, None]
    return mask


def _judge_drafts(
    logits: torch.Tensor,
    branches: Sequence[_Branch],
    end: int,
    temperature: float | None,
    top_p: float,
) -> list[_Verdict]:
    """Accept or reject the proposed tokens, and draw one in place of each rejected token."""
    import torch

    proposed = [branch.list_proposed(end) for branch in branches]
    width = logits.shape[1]
    drafts = torch.tensor([row + [end] * (width - len(row)) for row in proposed]).to(logits.device)
    # C candidates, as `members` lists them; each has its branch's logits and draws of its own
    branch_of = torch.tensor([n for n, branch in enumerate(branches) for _ in branch.members])
    draft_sizes = torch.tensor([len(row) for row in proposed])[branch_of]
    logp = torch.log_softmax(logits / (temperature or 1.0), dim=-1)
    if top_p < 1 and temperature is not None:
        logp = keep_nucleus(logp, top_p)
    draft_log_probs = logp.gather(2, drafts[:, :, None]).squeeze(2)
    if temperature is None:
        accepted = (logp.argmax(dim=-1) == drafts).cpu()[branch_of]
    else:
        accepted = torch.rand(len(branch_of), width).log() < draft_log_probs.cpu()[branch_of]
    accepted &= torch.arange(width) < draft_sizes[:, None]
    count = accepted.long().cumprod(dim=1).sum(dim=1)  # of the accepted tokens before a rejection
    at = count.clamp(max=width - 1)
    others = _redraw(logp[branch_of, at], drafts[branch_of, at], temperature)
    log_probs_of_others = logp[branch_of, at, others.to(logp.device)].tolist()
    log_probs_of_branches, verdicts = draft_log_probs.tolist(), []
    members = [member for branch in branches for member in branch.members]
    rows, counts = branch_of.tolist(), count.tolist()
    for number, (member, row, length) in enumerate(zip(members, rows, counts, strict=True)):
        tokens, log_probs = proposed[row][:length], log_probs_of_branches[row][:length]
        rejected = length < len(proposed[row])
        if rejected:
            tokens.append(int(others[number]))
            log_probs.append(log_probs_of_others[number])
        verdicts.append(_Verdict(member, row, tokens, log_probs, rejected))
    return verdicts


def keep_nucleus(logp: torch.Tensor, top_p: float) -> torch.Tensor:
    """Return log-probabilities [..., V] of the nucleus alone, renormalised; −∞ outside it.

    The nucleus is the smallest set of most likely tokens with a mass of at least `top_p` (Holtzman
    et al. 2020); of tokens equally likely at its border all are kept.
    """
    import torch

    likely = logp.topk(min(_LIKELY, logp.shape[-1]), dim=-1).values
    if not bool((likely.logsumexp(-1).exp() >= top_p).all()):
        likely = logp.sort(dim=-1, descending=True).values
    before = likely.exp().cumsum(-1) - likely.exp()  # mass of the tokens that are likelier
    least = likely.masked_fill(before >= top_p, torch.inf).amin(-1, keepdim=True)
    inside = logp.masked_fill(logp < least, -torch.inf)
    return inside - inside.logsumexp(-1, keepdim=True)


def _redraw(logp: torch.Tensor, rejected: torch.Tensor, temperature: float | None) -> torch.Tensor:
    """Draw a token in place of each rejected one [N], from p [N, V] without it, renormalised."""
    import torch

    if temperature is None:
        return logp.argmax(dim=-1).cpu()
    others = logp.exp().scatter(1, rejected[:, None], 0.0)
    # A row of zeros after rounding had all its mass on a token that was accepted.
    others += (others.sum(dim=1, keepdim=True) <= 0).to(others)
    return torch.multinomial(others, 1).squeeze(1).cpu()


def _move_on(branch: _Branch, verdict: _Verdict) -> _Branch:
    """Return the branch after these tokens, with its draft aligned to the source again."""
    source, tokens = branch.source, verdict.tokens
    place, skipped = branch.place + len(tokens), -1
    if verdict.rejected:
        old = place - 1  # of the rejected token
        if tokens[-1] in source[old + 1 : old + 2]:  # the next token of the source, if any
            place = old + 2  # the rejected token was deleted
        elif len(tokens) == 1 and tokens[-1] == branch.skipped:
            place = old  # the token before it was inserted, not replaced
        elif old < len(source):
            skipped = source[old]
    place = min(place, len(source))
    cached = len(branch.uncached) + len(tokens) - 1  # the last token is not in the cache
    window = min(len(source) - place, 2 * len(tokens) + _WINDOW)
    begin = branch.at + cached
    return _Branch(verdict.row, tokens[-1:], source, window, cached, begin, place, skipped)
