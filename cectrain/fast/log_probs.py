"""Log-probabilities of candidates by the lean forward pass, for the clipped objective."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from cectrain.fast.qwen3_forward import ROWS, final_states, norm_and_head

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


def log_probs_and_entropies(
    model: PreTrainedModel,
    ids: torch.Tensor,
    mask: torch.Tensor,
    written: int,
    temperature: float,
    dtype: torch.dtype,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the log-probabilities and entropies of the last `written` columns, [rows, written].

    `ids` and `mask` are [rows, places], with prompts padded on the left and candidates on the
    right, as TRL has them. Padding gets arbitrary finite values. Entropies have no gradient.
    """
    import torch

    rows, places = ids.shape
    # The lean pass supports padding on the right only, so each row is shifted to the left edge.
    before = mask.argmax(dim=1, keepdim=True)
    moved = (torch.arange(places) + before).clamp(max=places - 1)
    states = final_states(model, ids.gather(1, moved), dtype)
    at = places - written - 1 + torch.arange(written) - before
    hidden = states.gather(1, at[:, :, None].expand(-1, -1, states.shape[2]))
    last = model.model.norm
    hidden = norm_and_head()[0].apply(hidden, last.weight, last.variance_epsilon)
    log_probs, entropies = _head().apply(
        hidden.flatten(0, 1),
        model.lm_head.weight.to(dtype),
        ids[:, places - written :].flatten(),
        temperature,
    )
    return log_probs.view(rows, written), entropies.view(rows, written)


@cache
def _head() -> type[torch.autograd.Function]:
    """Return the head as a function with its own gradient: states → a log-probability a token."""
    import torch

    class Head(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx, states, head, wanted, temperature):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN205
            log_probs, entropies = torch.empty(len(wanted)), torch.empty(len(wanted))
            chances = torch.empty(len(wanted), len(head), dtype=states.dtype)
            for start in range(0, len(wanted), ROWS):
                part = slice(start, start + ROWS)
                logits = (states[part] @ head.t()).float().div_(temperature)
                total = logits.logsumexp(-1)
                log_probs[part] = logits.gather(1, wanted[part, None])[:, 0] - total
                likely = (logits - total[:, None]).exp_()
                chances[part] = likely
                entropies[part] = total - likely.mul_(logits).sum(-1)
            ctx.save_for_backward(states, head, wanted, chances)
            ctx.temperature = temperature
            ctx.mark_non_differentiable(entropies)
            return log_probs, entropies

        @staticmethod
        def backward(ctx, gradient, _entropies):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN205
            states, head, wanted, slope = ctx.saved_tensors
            factor = (gradient / ctx.temperature).to(slope.dtype)[:, None]
            slope = slope * -factor
            slope.scatter_add_(1, wanted[:, None], factor)
            return slope @ head, slope.t() @ states, None, None

    return Head
