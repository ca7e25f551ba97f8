"""The correctors of cectrain as systems of cecbench."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cecbench.cli import cli as cecbench
from cectrain.cli import cli as cectrain

pytest.importorskip("torch", reason="the extra `train` is not installed")
import tiny_models

from cecbench.systems import table
from cecdata.common.errors import InputError
from cecdata.lm.ngrams import read
from cectrain import bench_systems
from cectrain.corrector.folder import WEIGHTS


def test_the_package_registers_its_correctors():
    """The names under `cecbench.systems` in pyproject.toml lead to kinds of these names."""
    import tomllib

    text = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    points = tomllib.loads(text)["project"]["entry-points"][table.GROUP]
    for name, value in points.items():
        module, _, attribute = value.partition(":")
        assert module == bench_systems.__name__
        assert getattr(bench_systems, attribute).name == name
    assert {"policy", "channel", "combined", "corrector"} == set(points)


def test_the_policy_is_read_with_the_prompt_of_its_training(tmp_path):
    """policy:DIR reads the model's folder and the prompt version in it."""
    folder = tmp_path / "train"
    folder.mkdir()
    tiny_models.qwen3(folder / "model")
    made = table.make_system(f"policy:{folder}")
    assert str(made.identity["prompt"]).startswith("1@")
    tiny_models.prompt_file(folder / "model", "2")
    made = table.make_system(f"policy:{folder}")
    assert str(made.identity["prompt"]).startswith("2@")
    with pytest.raises(InputError, match="no such folder"):
        table.make_system(f"policy:{tmp_path}/nothing")


def test_the_policy_that_ships_has_a_name(tmp_path, monkeypatch):
    """policy:builtin names the shipped weights, and ./builtin a folder."""
    system = table.make_system("policy:builtin")
    assert (system.name, system.identity["checkpoint"]) == ("policy:builtin", WEIGHTS.name)
    tiny_models.qwen3(tmp_path / "builtin")
    monkeypatch.chdir(tmp_path)
    assert table.make_system("policy:./builtin").identity["checkpoint"] == "builtin"


def test_two_folders_have_two_names(tmp_path, monkeypatch):
    """A system is called by its kind and its folder, the run's where `model` lies in it."""
    names = []
    for folder in ("one", "two/model"):
        tiny_models.qwen3(tmp_path / folder)
        names.append(table.make_system(f"policy:{tmp_path / folder}").name)
    monkeypatch.chdir(tmp_path / "two")
    systems = ("policy:.", "channel", "corrector:channel")
    names += [table.make_system(system).name for system in systems]
    assert names == ["policy:one", "policy:two", "policy:two", "channel", "corrector:channel"]


ARPA = """\\data\\
ngram 1=6
ngram 2=2

\\1-grams:
-4\t<unk>\t0
-2\t他\t-0.1
-2\t已经\t-0.1
-3\t己\t-0.1
-3\t经\t-0.1
-2\t来了\t-0.1

\\2-grams:
-0.5\t他 已经
-0.5\t已经 来了

\\end\\
"""


@pytest.fixture
def arpa(tmp_path: Path) -> Path:
    path = tmp_path / "m.arpa"
    path.write_text(ARPA, "utf-8")
    return path


def _correct(*words: str) -> Result:
    return CliRunner().invoke(cectrain, ["correct", "--model", "channel", *words])


def test_a_table_corrects_as_the_file_that_it_was_compiled_from(arpa: Path) -> None:
    """Both forms give the same correction."""
    table = arpa.with_suffix(".ngram")
    read(arpa).save(table)
    answers = [_correct("--lm", str(path), "--json", "他己经来了") for path in (arpa, table)]
    assert answers[0].stdout == answers[1].stdout
    assert json.loads(answers[0].stdout)["target"] == "他已经来了"


def test_the_channel_is_a_system_of_cecbench(arpa: Path, tmp_path: Path) -> None:
    """`cecbench run --system channel` scores what `correct` answers."""
    rows = tmp_path / "b.tsv"
    rows.write_text("source\ttarget\n他己经来了\t他已经来了\n他已经来了\t他已经来了\n", "utf-8")
    words = ["run", "--system", "channel", "--lm", str(arpa), "--benchmark", str(rows), "--json"]
    done = CliRunner().invoke(cecbench, words)
    assert done.exit_code == 0, done.output
    assert '"S_C_f1": 100.0' in done.stdout


def test_protected_names_stay(arpa: Path, tmp_path: Path) -> None:
    """Names of --protect FILE are not changed; a missing file, or one that is no text, is named."""
    (tmp_path / "names.txt").write_text("\n他己经\n", "utf-8")
    (tmp_path / "names.bin").write_bytes(b"\xff\xfe\xfa")
    assert "nowhere.lm" in _correct("--lm", str(tmp_path / "nowhere.lm"), "他来了").output
    words = ("--lm", str(arpa), "--json", "他己经来了")
    assert json.loads(_correct(*words).stdout)["target"] == "他已经来了"
    kept = json.loads(_correct("--protect", str(tmp_path / "names.txt"), *words).stdout)
    assert (kept["target"], kept["kept"][0]["reason"]) == ("他己经来了", "protected")
    refused = _correct("--protect", str(tmp_path / "names.bin"), *words)
    assert refused.exit_code != 0
    assert "names.bin" in refused.output
