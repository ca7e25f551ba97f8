"""Log-probabilities of candidates by the lean forward pass: what the clipped objective asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cectrain.lean import final_states, norm_and_head

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


def logps_and_entropies(
    model: PreTrainedModel,
    ids: torch.Tensor,
    mask: torch.Tensor,
    written: int,
    temperature: float,
    dtype: torch.dtype,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability and entropy of the last `written` columns, both [rows, written].

    `ids` and `mask` are [rows, places], questions padded on the left and candidates on the right,
    as TRL lays them out. What is padding gets some finite value. Entropies carry no gradient.
    """
    import torch

    rows, places = ids.shape
    # The lean pass knows padding on the right alone: each row is moved to the left edge.
    before = mask.argmax(dim=1, keepdim=True)
    moved = (torch.arange(places) + before).clamp(max=places - 1)
    states = final_states(model, ids.gather(1, moved), dtype)
    at = places - written - 1 + torch.arange(written) - before
    hidden = states.gather(1, at[:, :, None].expand(-1, -1, states.shape[2]))
    last = model.model.norm
    hidden = norm_and_head()[0].apply(hidden, last.weight, last.variance_epsilon)
    logits = hidden @ model.lm_head.weight.to(dtype).t()
    logp = torch.log_softmax(logits.float() / temperature, dim=-1)
    of_written = logp.gather(2, ids[:, places - written :, None]).squeeze(2)
    with torch.no_grad():
        entropies = -(logp.exp() * logp).sum(dim=-1)
    return of_written.view(rows, written), entropies
