"""The lean pass, and a batch without rows of advantage 0, give the model's own gradients."""

import pytest

pytest.importorskip("transformers", reason="the extra `train` is not installed")

import torch

from cectrain.model.qwen3_forward import Head, log_probs_and_entropies


def drop_zero_advantages(*given):
    from cectrain.run.batches import drop_zero_advantages  # brings in all of trl

    return drop_zero_advantages(*given)


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
        log_probs, _ = Head.apply(states, head.to(dtype), torch.tensor([0]), 1.0)
        log_probs.sum().backward()
        slopes.append(states.grad.float())
    assert slopes[0][0, 0] > 0.006
    torch.testing.assert_close(slopes[1], slopes[0], rtol=0.02, atol=1e-6)


PROMPTS = [[1, 500, 600, 2], [1, 700, 800, 900, 2]]
ANSWERS = [[500, 601, 3], [500, 3], [700, 3], [700, 801, 900, 3]]
ROWS = [(0, 0), (0, 0), (0, 1), (0, 1), (1, 2), (1, 2), (1, 2), (1, 3)]


def padded(rows, side):
    width = max(map(len, rows)) + 1  # one column more than needed
    empty = [[0] * (width - len(row)) for row in rows]
    ones = [[1] * len(row) for row in rows]
    if side == "left":
        ids, mask = ([e + r for e, r in zip(empty, x, strict=True)] for x in (rows, ones))
    else:
        ids, mask = ([r + e for e, r in zip(empty, x, strict=True)] for x in (rows, ones))
    return torch.tensor(ids), torch.tensor(mask)


def batch(advantages):
    prompt_ids, prompt_mask = padded([PROMPTS[p] for p, _ in ROWS], "left")
    completion_ids, completion_mask = padded([ANSWERS[a] for _, a in ROWS], "right")
    return {
        "prompt_ids": prompt_ids, "prompt_mask": prompt_mask, "completion_ids": completion_ids,
        "completion_mask": completion_mask, "advantages": torch.tensor(advantages),
        "num_items_in_batch": torch.tensor(9.0),
        "old_per_token_logps": torch.full(completion_ids.shape, -9.0),
    }  # fmt: skip


def gradient(model, out):
    """The gradient of the clipped objective, a mean over rows of means over tokens."""
    ids = torch.cat([out["prompt_ids"], out["completion_ids"]], dim=1)
    mask = torch.cat([out["prompt_mask"], out["completion_mask"]], dim=1)
    logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1]
    logps = logits.log_softmax(-1).gather(2, ids[:, 1:, None]).squeeze(2)
    width = out["completion_ids"].shape[1]
    logps, own = logps[:, -width:], out["completion_mask"]
    ratio = (logps - out["old_per_token_logps"]).clamp(max=1).exp()
    weight = out["advantages"][:, None]
    loss = -torch.min(ratio * weight, ratio.clamp(0.95, 1.05) * weight)
    model.zero_grad()
    ((loss * own).sum(1) / own.sum(1)).mean().backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


@pytest.mark.parametrize("passes", [1, 2, 4])
def test_the_gradient_is_the_same(small_policy, passes):
    """Leaving out rows of advantage 0 and merging equal candidates changes only the cost."""
    model = small_policy().model
    whole = batch([0.5, 0.5, -0.5, -0.5, 0.0, 0.0, 0.0, 0.0])
    less = drop_zero_advantages(whole, passes)
    assert len(less["advantages"]) == max(2, passes)
    assert less["completion_ids"].shape[1] <= whole["completion_ids"].shape[1]
    torch.testing.assert_close(gradient(model, less), gradient(model, whole), rtol=1e-4, atol=1e-7)


def test_opposite_signs_stay_apart():
    """The clip takes the smaller product, so advantages of two signs are not added."""
    less = drop_zero_advantages(batch([0.4, -0.1, 0.0, 0.0, 0.3, 0.3, 0.3, -0.9]), 1)
    values = sorted(round(float(v) * 8 / 4, 6) for v in less["advantages"])
    assert values == pytest.approx([-0.9, -0.1, 0.4, 0.9])


def test_a_batch_without_advantage_stays_a_batch():
    """If all advantages are 0, one row per pass is kept, with advantage 0."""
    less = drop_zero_advantages(batch([0.0] * 8), 2)
    assert less["advantages"].tolist() == [0.0, 0.0]
    assert float(less["num_items_in_batch"]) == 9.0
