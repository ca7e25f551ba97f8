"""The command for a GPU runs here in a toy's size, so that it works when a GPU is there."""

import argparse
import importlib.util
import json
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of torch and libraries that build on it
    pytest.mark.skipif(
        importlib.util.find_spec("sentence_transformers") is None,  # seconds to import
        reason="the extra `embed` is not installed",
    ),
]

ROOT = Path(__file__).parents[2]


def script(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def measure_gpu():
    """The script, which brings in all of trl."""
    return script(ROOT / "benchmarks" / "measure_gpu.py")


@pytest.mark.slow
def test_every_figure_comes_out_and_fills_the_page(measure_gpu, dataset_path, tmp_path):
    """Every figure is above 0 and on the page."""
    out = tmp_path / "gpu.json"
    measure_gpu.main(["--device", "cpu", "--tiny", "--data", str(dataset_path), "--out", str(out)])
    found = json.loads(out.read_text("utf-8"))
    assert not found["missing"]
    names = [figure.__name__ for figure, _ in measure_gpu.FIGURES]
    assert [*found["figures"], *found["missing"]] == names
    assert all(value > 0 for part in found["figures"].values() for value in part.values())
    fill = script(ROOT / "tools" / "fill_gpu_page.py")
    page = fill.filled(fill.PAGE.read_text("utf-8"), found)
    assert all(f"| {name} |" in page for name in names)
    assert fill.filled(page, found) == page


def test_figures_that_do_not_fit_into_the_time_are_named(measure_gpu, tmp_path):
    """Without a minute left every figure is missing, with the seconds that it needs."""
    out = tmp_path / "gpu.json"
    measure_gpu.main(["--device", "cpu", "--tiny", "--minutes", "0", "--out", str(out)])
    missing = json.loads(out.read_text("utf-8"))["missing"]
    assert len(missing) == len(measure_gpu.FIGURES)
    assert all("and 0 were left" in reason for reason in missing.values())


def test_floating_operations_are_those_of_the_architecture(measure_gpu, tmp_path):
    """Qwen3-0.6B has 0.60 billion parameters, and 2 operations per parameter and token besides
    attention."""
    options = argparse.Namespace(device="meta", tiny=False, data=tmp_path)
    with measure_gpu.torch.device("meta"):
        model = measure_gpu.Bench(options, tmp_path).qwen(measure_gpu.VOCABULARY)
    parameters = sum(weights.numel() for weights in model.parameters())
    assert parameters == pytest.approx(0.596e9, rel=0.01)
    assert measure_gpu.flops(model, 0, 1) == pytest.approx(2 * parameters, rel=0.01)


def test_without_a_gpu_it_says_so(measure_gpu, capsys):
    """Without a GPU and without --tiny the script refuses: its figures would mean nothing."""
    if measure_gpu.torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(SystemExit):
        measure_gpu.main([])
    assert "no GPU found" in capsys.readouterr().err
