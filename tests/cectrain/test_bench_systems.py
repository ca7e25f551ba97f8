"""The correctors of cectrain as systems of cecbench."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the extra `train` is not installed")
sys.path.insert(0, str(Path(__file__).parents[1] / "cecbench"))

import tiny_models

from cecbench.systems import table
from cecbench.systems.base import LocalOptions
from cecdata.common.errors import InputError
from cectrain import bench_systems
from cectrain.corrector.folder import WEIGHTS

ON_CPU = LocalOptions(device="cpu", batch=2)


def test_the_package_registers_its_correctors():
    """The names under `cecbench.systems` in pyproject.toml lead to kinds of these names."""
    import tomllib

    text = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    points = tomllib.loads(text)["project"]["entry-points"][table.GROUP]
    for name, value in points.items():
        module, _, attribute = value.partition(":")
        assert module == bench_systems.__name__
        assert getattr(bench_systems, attribute).name == name
    assert {"policy", "builtin", "channel", "combined"} == set(points)


def test_the_policy_is_read_with_the_prompt_of_its_training(tmp_path):
    """policy:DIR reads the model's folder and the prompt version in it."""
    folder = tmp_path / "train"
    folder.mkdir()
    tiny_models.qwen3(folder / "model")
    made = bench_systems.policy(str(folder), ON_CPU)
    assert str(made.identity["prompt"]).startswith("1@")
    tiny_models.prompt_file(folder / "model", "2")
    made = bench_systems.policy(str(folder), ON_CPU)
    assert str(made.identity["prompt"]).startswith("2@")
    with pytest.raises(InputError, match=r"config\.json"):
        bench_systems.policy(str(tmp_path / "nothing"), ON_CPU)


def test_the_policy_that_ships_has_a_name(tmp_path, monkeypatch):
    """policy:builtin names the shipped weights, and ./builtin a folder."""
    system = bench_systems.policy("builtin", ON_CPU)
    assert (system.name, system.identity["checkpoint"]) == ("builtin", WEIGHTS.name)
    tiny_models.qwen3(tmp_path / "builtin")
    monkeypatch.chdir(tmp_path)
    assert bench_systems.policy("./builtin", ON_CPU).name == "policy"
