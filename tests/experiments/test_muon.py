# ruff: noqa: E402 - what is not installed is asked first
"""Muon against torch's: the same bits in bf16, nearly the same steps in fp32."""

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from experiments.pretraining import muon

SHAPES = ((12, 8), (8, 12), (8, 8))


def stepped(kind, steps=3):
    """Return what `steps` steps of a kind of Muon add to random matrices."""
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(shape, generator=generator) for shape in SHAPES]
    weights = [torch.nn.Parameter(value.clone()) for value in start]
    optimizer = kind(weights, 0.02, weight_decay=0.01)
    for _ in range(steps):
        for weight in weights:
            weight.grad = torch.randn(weight.shape, generator=generator)
        optimizer.step()
    return [w.detach() - value for w, value in zip(weights, start, strict=True)]


def test_steps_in_bf16_have_the_bits_of_torch(monkeypatch):
    monkeypatch.setattr(muon, "fast_dtype", lambda: torch.bfloat16)
    pairs = zip(stepped(muon.Muon), stepped(torch.optim.Muon), strict=True)
    assert all(torch.equal(ours, theirs) for ours, theirs in pairs)


def test_steps_in_fp32_differ_only_by_the_rounding_of_bf16(monkeypatch):
    monkeypatch.setattr(muon, "fast_dtype", lambda: torch.float32)
    pairs = zip(stepped(muon.Muon), stepped(torch.optim.Muon), strict=True)
    for ours, theirs in pairs:
        assert not torch.equal(ours, theirs)
        assert (ours - theirs).norm() < 0.02 * theirs.norm()
