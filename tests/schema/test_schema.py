"""Every version's files are read by today's readers; files of a later version are refused."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from cecbench.results import read_run, rescore_run
from cecdata.common.durable import Journal
from cecdata.common.errors import CecError, InputError, VerificationError
from cecdata.shards.export import export
from cecdata.shards.reader import open_dataset
from cecdata.shards.verify import verify
from cectrain import checkpoints

HERE = Path(__file__).parent
VERSIONS = sorted(path for path in HERE.glob("v*") if path.is_dir())


def having(part: str) -> pytest.MarkDecorator:
    """Run a test for every version that changed this part."""
    folders = [path for path in VERSIONS if (path / part).exists()]
    return pytest.mark.parametrize("version", folders, ids=lambda path: path.name)


@pytest.fixture
def expected(version):
    """What was in the files when they were written."""
    return json.loads((version / "expected.json").read_text("utf-8"))


def rows_of(folder: Path) -> dict[str, list[dict[str, object]]]:
    found = open_dataset(folder)
    return {
        split: [row for batch in found.batches(split) for row in batch.to_pylist()]
        for split in found.manifest.outputs
    }


@having("expected.json")
def test_the_fixtures_are_as_they_were(version, expected):
    """No file of a version was ever rewritten, and all of them stay small."""
    files = {
        path.relative_to(version).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(version.rglob("*"))
        if path.is_file() and path.name != "expected.json"
    }
    assert files == expected["sha256"]
    assert sum(path.stat().st_size for path in version.rglob("*") if path.is_file()) < 300_000


@having("dataset")
def test_a_dataset(version, expected):
    """Rows, counts and run facts come out to the letter, and `verify` finds nothing."""
    folder = version / "dataset"
    assert rows_of(folder) == expected["rows"]
    manifest = open_dataset(folder).manifest
    assert [manifest.rows.read, manifest.rows.kept, manifest.pairs.kept] == expected["counts"]
    assert verify(folder).ok
    assert json.loads((folder / "run.json").read_text("utf-8"))["cpus"] >= 0


@having("dataset")
def test_every_way_to_read_a_dataset(version, expected, tmp_path):
    """Batches, Polars and an export give one signed id to a row."""
    folder = version / "dataset"
    ids = [row["id"] for row in rows_of(folder)["train"]]
    assert any(number < 0 for number in ids)
    assert ids == [row["id"] for row in expected["rows"]["train"]]
    assert open_dataset(folder).scan("train").collect()["id"].to_list() == ids
    export(folder, "train", tmp_path / "train.jsonl")
    lines = (tmp_path / "train.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == ids


@having("dataset")
def test_datasets_reads_a_dataset(version, expected, tmp_path):
    """`datasets` takes the shards of every version as they are."""
    import datasets

    found = datasets.load_dataset(str(version / "dataset"), cache_dir=str(tmp_path), split="train")
    assert list(found["id"]) == [row["id"] for row in expected["rows"]["train"]]


@having("run")
def test_predictions(version, expected):
    """The rows of a run, and the same headline when they are scored again."""
    run = read_run(version / "run")
    assert [list(row) for row in run.rows] == expected["predictions"]
    assert rescore_run(run).headline == expected["headline"]


@having("checkpoints")
def test_checkpoints(version, expected):
    """The newest whole checkpoint, with what it says of itself."""
    from safetensors.numpy import load_file

    found = checkpoints.find_newest(version / "checkpoints")
    assert found is not None
    assert (found[0].name, found[1]) == ("checkpoint-7", 7)
    assert load_file(found[0] / "model.safetensors")["a"].tolist() == expected["tensor"]


@having("training")
def test_a_training_run(version, expected):
    """Held-out scores, the log, the summary and the prompt of a run."""
    from cectrain.corrector.folder import read_prompt
    from cectrain.run.heldout import read_held_out
    from cectrain.run.metrics_log import FILE, read_kept_lines
    from cectrain.run.results import read_summary

    folder = version / "training"
    assert read_held_out(folder / "after_sft.json").exact == expected["exact"]
    assert len(read_kept_lines(folder / FILE, 0, 1).splitlines()) == 2
    assert read_summary(folder)["seeds"] == [42]
    assert read_prompt(str(folder)) == "1"


@having("workspace")
def test_a_journal(version, tmp_path):
    """The steps of a run."""
    root = shutil.copytree(version / "workspace", tmp_path / "w")
    journal = Journal(root / "state" / "journal.jsonl")
    assert journal.get("chunk", "00000") is not None


def later(path: Path, pattern: str) -> None:
    """Raise the version in a file to one that does not exist yet."""
    text = path.read_text("utf-8")
    edited, count = re.subn(pattern, lambda m: f"{m[1]}{int(m[2]) + 1000}", text, count=1)
    assert count
    path.write_text(edited, "utf-8")


@pytest.fixture
def copied(version, tmp_path):
    """A version's files, to be edited."""
    return shutil.copytree(version, tmp_path / "later")


@having("dataset")
def test_a_later_dataset_is_refused(copied):
    """A manifest of a later schema names its version and says what to install."""
    later(copied / "dataset" / "manifest.json", r'("schema_version": )(\d+)')
    with pytest.raises(VerificationError, match=r"schema version 100[12].*Install a newer"):
        open_dataset(copied / "dataset")


@having("run")
def test_a_later_score_is_refused(copied):
    """A score of a later format names it and says what to install."""
    later(copied / "run" / "score.json", r'("format": )(\d+)')
    with pytest.raises(InputError, match=r"format 1003.*upgrade"):
        read_run(copied / "run")


@having("checkpoints")
def test_an_edited_checkpoint_is_passed_over(copied):
    """A proof that was edited proves nothing."""
    path = copied / "checkpoints" / "checkpoint-7" / "checkpoint.json"
    later(path, r'("step": )(\d+)')
    assert checkpoints.find_newest(copied / "checkpoints") is None


@pytest.mark.parametrize(
    ("read", "name"), [(open_dataset, "v2/dataset/manifest.json"), (read_run, "v3/run/score.json")]
)
def test_every_error_names_its_file(read, name, tmp_path):
    """What is refused is named, whichever file it is."""
    folder = shutil.copytree((HERE / name).parent, tmp_path / "edited")
    (folder / Path(name).name).write_text("{}\n")
    with pytest.raises(CecError, match=Path(name).name):
        read(folder)


def test_a_form_that_no_release_wrote_is_refused(tmp_path):
    """An unpublished schema and score format are named, and what makes the file anew."""
    dataset = shutil.copytree(HERE / "v2" / "dataset", tmp_path / "dataset")
    manifest = dataset / "manifest.json"
    text = manifest.read_text("utf-8")
    manifest.write_text(text.replace('"schema_version": 2', '"schema_version": 1'))
    with pytest.raises(VerificationError, match=r"schema version 1, .*rebuild an older dataset"):
        open_dataset(dataset)
    run = shutil.copytree(HERE / "v3" / "run", tmp_path / "run")
    score = run / "score.json"
    score.write_text(score.read_text("utf-8").replace('"format": 3', '"format": 2'))
    with pytest.raises(InputError, match=r"format 2, .*run `cecbench run` again"):
        read_run(run)
