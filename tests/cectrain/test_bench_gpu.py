"""The GPU benchmark runs here in a toy's size, so that it works when a GPU is there."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="the extra `train` is not installed")

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bench_train_gpu.py"


def script():
    spec = importlib.util.spec_from_file_location("bench_train_gpu", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_figure_comes_out():
    """Tokens/s, floors and shares of generation, forward pass and training are all above 0."""
    found = script().main(
        ["--device", "cpu", "--tiny", "--groups", "2", "--candidates", "2", "--chars", "6",
         "--rounds", "1", "--no-bf16", "--micro", "2"]
    )  # fmt: skip
    for work in ("writing", "forward", "training"):
        for figure in ("tokens/s", "floor tokens/s", "share of the rate"):
            assert found[f"{work}, {figure}"] > 0


def test_floating_operations_are_those_of_the_architecture():
    """Qwen3-0.6B has 0.60 billion parameters, and 2 operations per parameter and token besides
    attention."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    bench = script()
    with torch.device("meta"):
        model = Qwen3ForCausalLM(Qwen3Config(**bench.QWEN3_06B))
    assert bench.parameters(model) == pytest.approx(0.596e9, rel=0.01)
    assert bench.flops(model, 0, 1) == pytest.approx(2 * bench.parameters(model), rel=0.01)


def test_without_a_gpu_it_says_so(capsys):
    """Without a GPU and without --tiny the script refuses, because its figures would mean nothing.
    """
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(SystemExit):
        script().main([])
    assert "no GPU found" in capsys.readouterr().err
