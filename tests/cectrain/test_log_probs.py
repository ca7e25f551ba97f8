"""The lean pass gives the log-probabilities, entropies and gradients of the model's own pass."""

import pytest

pytest.importorskip("transformers", reason="the extra `train` is not installed")

import torch

from cectrain.model.qwen3_forward import log_probs_and_entropies, norm_and_head


def layout():
    """Two prompts padded on the left, with two candidates padded on the right."""
    ids = torch.tensor([[0, 1, 500, 2, 501, 3, 0], [1, 600, 601, 2, 600, 602, 3]])
    mask = torch.tensor([[0, 1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1, 1]])
    return ids, mask


def test_as_the_model_itself(small_policy):
    """In fp32 both passes agree, and so does the gradient of a weighted sum."""
    model = small_policy(hidden=64, layers=2).model
    ids, mask = layout()
    weight = torch.tensor([[0.5, -1.0, 0.0], [1.0, 0.25, -0.5]])

    def gradient(logps):
        model.zero_grad()
        (logps * weight).sum().backward()
        return torch.cat([p.grad.flatten() for p in model.parameters()])

    places = (mask.cumsum(1) - 1).clamp(min=0)
    logits = model(input_ids=ids, attention_mask=mask, position_ids=places).logits[:, 3:-1] / 0.8
    all_logps = logits.log_softmax(-1)
    slow = all_logps.gather(2, ids[:, 4:, None]).squeeze(2)
    fast, entropies = log_probs_and_entropies(model, ids, mask, 3, 0.8, torch.float32)
    own = mask[:, 4:].bool()
    torch.testing.assert_close(fast[own], slow[own], rtol=1e-4, atol=1e-5)
    of_slow = -(all_logps.exp() * all_logps).sum(-1)
    torch.testing.assert_close(entropies[own], of_slow[own], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(gradient(fast), gradient(slow), rtol=2e-3, atol=1e-6)


def test_bf16_keeps_the_gradient_of_a_sure_token():
    """1 − p is taken before it is rounded: p = 0.999 is 1 in bf16, and would have no gradient."""
    head = torch.tensor([[7.0, 0.0], [0.0, 0.0]])
    slopes = []
    for dtype in (torch.float32, torch.bfloat16):
        states = torch.tensor([[1.0, 0.0]], dtype=dtype, requires_grad=True)
        log_probs, _ = norm_and_head()[1].apply(states, head.to(dtype), torch.tensor([0]), 1.0)
        log_probs.sum().backward()
        slopes.append(states.grad.float())
    assert slopes[0][0, 0] > 0.006
    torch.testing.assert_close(slopes[1], slopes[0], rtol=0.02, atol=1e-6)
