"""Candidates by draft and check: what a policy writes, in a few forward passes instead of many.

A correction is nearly its source. So the source's own tokens are the draft: one pass gives the
policy's distribution along all of it, a draft token is accepted with the probability that the
policy gives it, and where it is refused another one is drawn from what is left of the distribution
(speculative sampling, Leviathan et al. 2023, eq. 1, with a draft that is certain of itself). What
comes out has exactly the policy's distribution, whatever the draft; only the number of passes
depends on it. The L candidates of a source share its passes up to the place where they part.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

KNOWN = ("llama", "qwen2", "qwen3")  # model types whose cache holds every position
_WINDOW = 6  # draft tokens that are tried at least; more where many were accepted
_CELLS = 2**27  # logits that are held at once


@dataclass(frozen=True, slots=True)
class Written:
    """One candidate: its tokens with the end token, and their log-probabilities as drawn."""

    tokens: list[int]
    log_probs: list[float]


@dataclass(slots=True)
class _Branch:
    """Candidates that have written the same so far, and what is tried next for them."""

    row: int  # of the cache, as the pass before left it
    kept: int  # how many tokens fed in that pass are truly theirs
    given: list[int]  # tokens whose keys the cache lacks
    at: int  # position of the first of them
    source: Sequence[int]
    place: int  # in the source: the next draft token
    window: int  # how many draft tokens are fed
    skipped: int = -1  # the source token that was written over last
    members: list[int] = field(default_factory=list)

    def draft(self) -> list[int]:
        """The draft tokens that are fed."""
        return list(self.source[self.place : self.place + self.window])

    def wanted(self, end: int) -> list[int]:
        """What is accepted or refused: the fed draft and the token after it."""
        after = self.source[self.place : self.place + self.window + 1]
        return [*after, end][: self.window + 1]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What a pass gave one candidate; the last token was drawn anew where one was refused."""

    member: int
    row: int
    tokens: list[int]
    log_probs: list[float]
    refused: bool


@dataclass(slots=True)
class _Seen:
    """Keys and values of all passes, which of them count, and how many the last pass added."""

    keys: Any = None
    mask: Any = None  # [rows, positions]
    width: int = 0


def supported(model: Any) -> bool:
    """Whether the model is a decoder whose cache and head are reached as here."""
    model, config = _plain(model), model.config
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if config.model_type not in KNOWN or kinds != {"full_attention"}:
        return False
    head = getattr(model, "lm_head", None)
    # Shards of FSDP are gathered when the whole model is called, not its parts as here.
    return head is not None and not hasattr(head.weight, "full_tensor")


def _plain(model: Any) -> Any:
    """The model in an adapter's wrapping; the adapter stays in its layers."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def write(
    model: Any,
    prompts: Sequence[Sequence[int]],
    drafts: Sequence[Sequence[int]],
    size: int,
    *,
    end: int,
    longest: int,
    temperature: float | None = 1.0,
    stops: Collection[int] = (),
) -> list[Written]:
    """`size` continuations of each prompt, of at most `longest` tokens, group after group.

    `drafts` are what the continuations probably are, without the token `end` that should follow;
    it ends a continuation, and so do `stops`. Draws from torch's generator; `temperature=None`
    draws nothing and takes the likeliest token each time.
    """
    import torch

    model, ends = _plain(model), frozenset((end, *stops))
    widest = max((len(draft) for draft in drafts), default=0) + 1
    part = max(1, _CELLS // (widest * int(model.config.vocab_size)))
    was_training = model.training
    model.eval()
    made: list[Written] = []
    try:
        with torch.no_grad():
            for start in range(0, len(prompts), part):
                chosen = slice(start, start + part)
                found = _start(prompts[chosen], drafts[chosen], size)
                made += _write(model, found, size, end, ends, longest, temperature)
    finally:
        model.train(was_training)
    return made


def _start(
    prompts: Sequence[Sequence[int]], drafts: Sequence[Sequence[int]], size: int
) -> list[_Branch]:
    return [
        _Branch(
            row, 0, list(prompt), 0, draft, 0, len(draft),
            members=list(range(row * size, (row + 1) * size)),
        )
        for row, (prompt, draft) in enumerate(zip(prompts, drafts, strict=True))
    ]  # fmt: skip


def _write(
    model: Any,
    branches: list[_Branch],
    size: int,
    end: int,
    ends: frozenset[int],
    longest: int,
    temperature: float | None,
) -> list[Written]:
    made = [Written([], []) for _ in range(len(branches) * size)]
    seen = _Seen()
    while branches:
        logits = _forward(model, branches, seen)
        verdicts = _judge(logits, branches, end, temperature)
        going: dict[tuple[int, int, int], _Branch] = {}
        for verdict in verdicts:
            written = made[verdict.member]
            room = longest - len(written.tokens)
            written.tokens.extend(verdict.tokens[:room])
            written.log_probs.extend(verdict.log_probs[:room])
            if len(verdict.tokens) >= room or verdict.tokens[-1] in ends:
                continue
            key = (verdict.row, len(verdict.tokens), verdict.tokens[-1])
            if key not in going:
                going[key] = _next(branches[verdict.row], verdict)
            going[key].members.append(verdict.member)
        branches = list(going.values())
    return made


def _forward(model: Any, branches: Sequence[_Branch], seen: _Seen) -> torch.Tensor:
    """Logits before each wanted token, [branches, widest, V]; the cache grows by the pass."""
    import torch

    fed = [branch.given + branch.draft() for branch in branches]
    width = max(map(len, fed))
    places = torch.arange(width)
    new = places < torch.tensor([len(tokens) for tokens in fed])[:, None]
    mask = torch.cat([_old_mask(branches, seen), new], dim=1)
    if seen.keys is not None:
        seen.keys.batch_select_indices(torch.tensor([b.row for b in branches]).to(model.device))
    ids = torch.tensor([tokens + [0] * (width - len(tokens)) for tokens in fed])
    starts = torch.tensor([branch.at for branch in branches])
    found = model.model(
        input_ids=ids.to(model.device),
        attention_mask=mask.long().to(model.device),
        position_ids=(starts[:, None] + places).to(model.device),
        past_key_values=seen.keys,
        use_cache=True,
    )
    seen.keys, seen.mask, seen.width = found.past_key_values, mask, width
    # Only what follows the last given token is asked of the head, a third of a small model's work.
    first = torch.tensor([len(branch.given) - 1 for branch in branches])
    asked = torch.arange(max(len(branch.draft()) for branch in branches) + 1)
    at = (first[:, None] + asked).clamp(max=width - 1).to(model.device)
    rows = torch.arange(len(branches), device=model.device)[:, None]
    logits: torch.Tensor = model.lm_head(found.last_hidden_state[rows, at]).float()
    return logits


def _old_mask(branches: Sequence[_Branch], seen: _Seen) -> torch.Tensor:
    """Which cached places are a branch's own, [branches, positions] bool."""
    import torch

    if seen.mask is None:
        return torch.zeros(len(branches), 0, dtype=torch.bool)
    mask: torch.Tensor = seen.mask[[branch.row for branch in branches]]
    kept = torch.tensor([branch.kept for branch in branches])
    mask[:, mask.shape[1] - seen.width :] &= torch.arange(seen.width) < kept[:, None]
    return mask


def _judge(
    logits: torch.Tensor, branches: Sequence[_Branch], end: int, temperature: float | None
) -> list[_Verdict]:
    """Accept or refuse the drafts, and draw what stands in the refused one's place."""
    import torch

    wanted = [branch.wanted(end) for branch in branches]
    width = logits.shape[1]
    target = torch.tensor([row + [end] * (width - len(row)) for row in wanted]).to(logits.device)
    owner = torch.tensor([n for n, branch in enumerate(branches) for _ in branch.members])
    lengths = torch.tensor([len(row) for row in wanted])[owner]
    logp = torch.log_softmax(logits / (temperature or 1.0), dim=-1)
    of_target = logp.gather(2, target[:, :, None]).squeeze(2)
    if temperature is None:
        accepted = (logp.argmax(dim=-1) == target).cpu()[owner]
    else:
        accepted = torch.rand(len(owner), width).log() < of_target.cpu()[owner]
    accepted &= torch.arange(width) < lengths[:, None]
    count = accepted.long().cumprod(dim=1).sum(dim=1)  # leading acceptances
    at = count.clamp(max=width - 1)
    others = _others(logp[owner, at], target[owner, at], temperature)
    logps_of_others = logp[owner, at, others.to(logp.device)].tolist()
    lines, found = of_target.tolist(), []
    members = [member for branch in branches for member in branch.members]
    for number, (member, row, kept) in enumerate(
        zip(members, owner.tolist(), count.tolist(), strict=True)
    ):
        tokens, logps = wanted[row][:kept], lines[row][:kept]
        refused = kept < len(wanted[row])
        if refused:
            tokens.append(int(others[number]))
            logps.append(logps_of_others[number])
        found.append(_Verdict(member, row, tokens, logps, refused))
    return found


def _others(
    logp_N_V: torch.Tensor,  # noqa: N803 - axes stand in the name
    refused_N: torch.Tensor,  # noqa: N803
    temperature: float | None,
) -> torch.Tensor:
    """The token in the refused one's place, [N]: from p without it, made a whole again."""
    import torch

    if temperature is None:
        return logp_N_V.argmax(dim=-1).cpu()
    left = logp_N_V.exp().scatter(1, refused_N[:, None], 0.0)
    # Where rounding left nothing the refused one had all of the mass, and was accepted.
    left += (left.sum(dim=1, keepdim=True) <= 0).to(left)
    return torch.multinomial(left, 1).squeeze(1).cpu()


def _next(branch: _Branch, verdict: _Verdict) -> _Branch:
    """The branch that these tokens lead to, its draft lined up with the source again."""
    source, tokens = branch.source, verdict.tokens
    place, skipped = branch.place + len(tokens), -1
    if verdict.refused:
        old = place - 1  # of the token that was refused
        if tokens[-1] in source[old + 1 : old + 2]:
            place = old + 2  # it was left out
        elif len(tokens) == 1 and tokens[-1] == branch.skipped:
            place = old  # the one before it was put in, not put over
        elif old < len(source):
            skipped = source[old]
    place = min(place, len(source))
    kept = len(branch.given) + len(tokens) - 1  # the last token is not in the cache
    window = min(len(source) - place, 2 * len(tokens) + _WINDOW)
    return _Branch(verdict.row, kept, tokens[-1:], branch.at + kept, source, place, window, skipped)
