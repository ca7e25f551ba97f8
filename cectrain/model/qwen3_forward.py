"""Qwen3's forward pass and loss for training on a CPU, with the model's own weights.

It computes the same as `transformers` (a test compares them), several times as fast on short rows:
bf16 products over fp32 weights, one pass for each norm, plain attention (the flash kernel's
backward pass dominates below 100 tokens), the head on answers only, and the gradient of its
log-probabilities prepared while the probabilities are still in the cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from cecdata.models.loading import multiplies_bfloat16

if TYPE_CHECKING:
    from transformers import PreTrainedModel


ROWS = 128  # tokens whose probabilities over the vocabulary are computed together
_NEVER = -1e9  # added to the attention scores of later positions


class Norm(torch.autograd.Function):  # type: ignore[misc]
    """The RMS norm with a gradient of its own."""

    @staticmethod
    def forward(ctx, states, weight, epsilon):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN205
        """Return states [..., width] divided by their root mean square, times the weight."""
        wide = states.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)
        unit = wide * scale
        ctx.save_for_backward(unit.to(states.dtype), scale, weight)
        return (unit * weight).to(states.dtype)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN205
        """Return the gradients of the states and of the weight."""
        unit, scale, weight = ctx.saved_tensors
        of_output, unit = gradient.float(), unit.float()
        of_weight = (of_output * unit).reshape(-1, unit.shape[-1]).sum(0)
        of_unit = of_output * weight
        # less the part along the state, whose length does not change the output
        of_states = scale * (of_unit - unit * (of_unit * unit).mean(-1, keepdim=True))
        return of_states.to(gradient.dtype), of_weight, None


class Head(torch.autograd.Function):  # type: ignore[misc]
    """The log-probability and the entropy of each token, with a gradient of the former."""

    @staticmethod
    def forward(ctx, states, head, wanted, temperature):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN205
        """Return log-probabilities [rows] of the tokens `wanted`, and entropies."""
        log_probs, entropies = torch.empty(len(wanted)), torch.empty(len(wanted))
        # of −log-probability by each logit, before the temperature: p − 1 at the token, p elsewhere
        slope = torch.empty(len(wanted), len(head), dtype=states.dtype)
        for start in range(0, len(wanted), ROWS):
            part, tokens = slice(start, start + ROWS), wanted[start : start + ROWS, None]
            logits = (states[part] @ head.t()).float().div_(temperature)
            total = logits.logsumexp(-1, keepdim=True)
            log_probs[part] = (logits.gather(1, tokens) - total)[:, 0]
            chances = (logits - total).exp_()
            entropies[part] = total[:, 0] - logits.mul_(chances).sum(-1)
            # p − 1 before it is rounded: in bf16 a p of 0.999 is 1.
            slope[part] = chances.scatter_add_(1, tokens, torch.full(tokens.shape, -1.0))
        ctx.save_for_backward(states, head, slope)
        ctx.temperature = temperature
        ctx.mark_non_differentiable(entropies)
        return log_probs, entropies

    @staticmethod
    def backward(ctx, gradient, _entropies):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN205
        """Return the gradients of the states and of the head."""
        states, head, slope = ctx.saved_tensors
        factor = (gradient / -ctx.temperature).to(slope.dtype)[:, None]  # minus, as in `slope`
        return (slope @ head) * factor, slope.t() @ (states * factor), None, None


def is_supported(model: PreTrainedModel) -> bool:
    """Return whether the model is a plain Qwen3 on a CPU with all weights in fp32 and trained."""
    config = model.config
    return (
        type(model).__name__ == "Qwen3ForCausalLM"
        and model.device.type == "cpu"
        and model.dtype.itemsize == 4
        and all(parameter.requires_grad for parameter in model.parameters())
        and not config.attention_bias
        and not config.attention_dropout
        and config.hidden_act == "silu"
        and set(config.layer_types) == {"full_attention"}
        and config.rope_parameters["rope_type"] == "default"
    )


def pick_dtype() -> torch.dtype:
    """Return bf16 if this CPU has instructions for it, otherwise fp32."""
    return torch.bfloat16 if multiplies_bfloat16() else torch.float32


def answer_loss(
    model: PreTrainedModel, ids: torch.Tensor, labels: torch.Tensor, dtype: torch.dtype
) -> torch.Tensor:
    """Return the mean cross entropy of the labelled tokens.

    `ids` and `labels` are [rows, longest], padded on the right. A label is at its own token's
    position, negative without one, as in `transformers`.
    """
    hidden, wanted = split_at_answers(model, ids, labels, dtype)
    log_probs, _ = Head.apply(hidden, model.lm_head.weight.to(dtype), wanted, 1.0)
    return -log_probs.mean()


def answer_log_probs(
    model: PreTrainedModel,
    ids: torch.Tensor,
    labels: torch.Tensor,
    dtype: torch.dtype,
    temperature: float,
) -> torch.Tensor:
    """Return the log-probability of each row's answer at this temperature, [rows], no gradient."""
    with torch.no_grad():
        hidden, wanted = split_at_answers(model, ids, labels, dtype)
        head = model.lm_head.weight.to(dtype)
        log_probs, _ = Head.apply(hidden, head, wanted, temperature)
        rows = (labels[:, 1:] >= 0).nonzero(as_tuple=True)[0]  # of each labelled token
        return torch.zeros(len(ids)).index_add_(0, rows, log_probs)


def split_at_answers(
    model: PreTrainedModel, ids: torch.Tensor, labels: torch.Tensor, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the normed states of the tokens before labels [tokens, width], and the labels."""
    states = run_layers(model, ids, dtype)
    positions = (labels[:, 1:] >= 0).nonzero(as_tuple=True)
    hidden = states[:, :-1][positions]
    last = model.model.norm
    normed = Norm.apply(hidden, last.weight, last.variance_epsilon)
    return normed, labels[:, 1:][positions]


def run_layers(model: PreTrainedModel, ids: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the residual stream after the last layer, [rows, longest, width]."""
    length = ids.shape[1]
    states = functional.embedding(ids, model.model.embed_tokens.weight).to(dtype)
    angles = _compute_angles(model, length, dtype)
    later = torch.full((length, length), _NEVER).triu(1).to(dtype)
    for layer in model.model.layers:
        before = layer.input_layernorm
        normed = Norm.apply(states, before.weight, before.variance_epsilon)
        states = states + _attend_to_keys(model, layer.self_attn, normed, angles, later)
        after = layer.post_attention_layernorm
        normed = Norm.apply(states, after.weight, after.variance_epsilon)
        gate, up, down = (
            getattr(layer.mlp, f"{name}_proj").weight.to(dtype) for name in ("gate", "up", "down")
        )
        inner = functional.silu(functional.linear(normed, gate)) * functional.linear(normed, up)
        states = states + functional.linear(inner, down)
    return states


def _attend_to_keys(
    model: PreTrainedModel,
    layer: torch.nn.Module,
    states: torch.Tensor,
    angles: tuple[torch.Tensor, torch.Tensor],
    later: torch.Tensor,
) -> torch.Tensor:
    """Return the grouped-query attention of one layer, [rows, length, width] as `states`.

    `later` is added to the scores [length, length] of each position: it hides those behind it.
    """
    config, (rows, length, _), dtype = model.config, states.shape, states.dtype
    # each head of keys and values is shared by several of queries
    heads, shared = config.num_attention_heads, config.num_key_value_heads
    size = config.head_dim
    weight = torch.cat([layer.q_proj.weight, layer.k_proj.weight, layer.v_proj.weight]).to(dtype)
    projected = functional.linear(states, weight).view(rows, length, heads + 2 * shared, size)
    query, key, value = projected.split([heads, shared, shared], 2)
    epsilon = layer.q_norm.variance_epsilon
    query = Norm.apply(query, layer.q_norm.weight, epsilon).transpose(1, 2)
    key = Norm.apply(key, layer.k_norm.weight, epsilon).transpose(1, 2)
    query = (_rotate(query, angles) * size**-0.5).reshape(rows, shared, -1, size)
    scores = query @ _rotate(key, angles).transpose(-1, -2)
    scores = scores.view(rows, shared, heads // shared, length, length) + later
    chances = torch.softmax(scores, -1).view(rows, shared, -1, length)
    mixed = (chances @ value.transpose(1, 2)).view(rows, heads, length, size)
    joined = mixed.transpose(1, 2).reshape(rows, length, heads * size)
    return functional.linear(joined, layer.o_proj.weight.to(dtype))


def _compute_angles(
    model: PreTrainedModel, length: int, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the cosines and sines of the rotary positions, [length, head size]."""
    turns = torch.arange(length, dtype=torch.float32)[:, None] * model.model.rotary_emb.inv_freq
    angles = torch.cat([turns, turns], -1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def _rotate(states: torch.Tensor, angles: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Return states turned by the cosines and sines of `angles`."""
    first, second = states.chunk(2, -1)
    return states * angles[0] + torch.cat([-second, first], -1) * angles[1]


def log_probs_and_entropies(
    model: PreTrainedModel,
    ids: torch.Tensor,
    mask: torch.Tensor,
    written: int,
    temperature: float,
    dtype: torch.dtype,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the log-probabilities and entropies of the last `written` columns, [rows, written].

    `ids` and `mask` are [rows, positions], with prompts padded on the left and candidates on the
    right, as TRL has them. Padding gets arbitrary finite values. Entropies have no gradient.
    """
    rows, positions = ids.shape
    # `run_layers` supports padding on the right only, so each row is shifted to the left edge.
    padding = mask.argmax(dim=1, keepdim=True)
    shifted = (torch.arange(positions) + padding).clamp(max=positions - 1)
    states = run_layers(model, ids.gather(1, shifted), dtype)
    # the state that predicts a token is that of the token before
    predicting = positions - written - 1 + torch.arange(written) - padding
    hidden = states.gather(1, predicting[:, :, None].expand(-1, -1, states.shape[2]))
    last = model.model.norm
    hidden = Norm.apply(hidden, last.weight, last.variance_epsilon)
    log_probs, entropies = Head.apply(
        hidden.flatten(0, 1),
        model.lm_head.weight.to(dtype),
        ids[:, positions - written :].flatten(),
        temperature,
    )
    return log_probs.view(rows, written), entropies.view(rows, written)
