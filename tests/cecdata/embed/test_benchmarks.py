"""The benchmarks of this room run, at a size that says nothing about speed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


def run(name, arguments, monkeypatch, capsys):
    """The script's main, with these arguments; what it printed."""
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    spec.loader.exec_module(module)
    module.main()
    return capsys.readouterr().out


@pytest.mark.filterwarnings("ignore")  # of torch and its kin, none ours
def test_the_gpu_benchmark_runs_without_one(tmp_path, monkeypatch, capsys):
    """The measure of an encoder on a GPU is tried out on the CPU with a tiny model."""
    reason = "sentence-transformers is missing: pip install -e '.[embed]'"
    pytest.importorskip("sentence_transformers", reason=reason, exc_type=ImportError)
    (tmp_path / "corpus.txt").write_text("他的病情已经好转。\n今天天气很好。\n" * 20, "utf-8")
    given = [str(tmp_path / "corpus.txt"), "--device", "cpu", "--tiny", "--rounds", "1"]
    said = run("bench_encoder_gpu", given, monkeypatch, capsys)
    assert "40 sentences of 10.0 tokens" in said
    assert "of the rate (goal 40 %)" in said
    assert "through cecdata's encoder" in said
