"""Names from outside are checked in one place before they become paths; links are not followed."""

from __future__ import annotations

import json
import shutil

import pytest
from click.testing import CliRunner

from cecdata.cli import cli
from cecdata.common.durable import files as names
from cecdata.common.errors import InputError

OUTSIDE = ["/etc/x", "../x", "a/../../x", "a/..", "..", "", "a//b", "/", "a/", "./a", "a\\b",
           "..\\x", "C:/x", "c:x", "a\0b"]  # fmt: skip


@pytest.fixture
def secret(tmp_path):
    """A file of the user's outside of every dataset."""
    path = tmp_path / "private" / "thesis.md"
    path.parent.mkdir()
    path.write_text("kept\nand no line feed at the end")
    return path


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_name_that_could_lead_out_is_refused(tmp_path, name):
    """Absolute names, `..`, empty parts, backslashes, drives and NUL name no file below a root."""
    with pytest.raises(ValueError, match="name"):
        names.inside(name)
    with pytest.raises(ValueError, match="name"):
        names.below(tmp_path, name)


def test_a_plain_name_passes(tmp_path):
    """Names of shards, and any letters, spaces, dots or colons inside, are names below the root."""
    for name in ("data/train-0.parquet", "a b/…/.x", "文件/..a", "ab:c/d"):
        assert names.inside(name) == name
        assert names.below(tmp_path, name) == tmp_path / name


def test_a_link_in_any_part_is_refused(tmp_path, secret):
    """Also a link to a folder half-way, whether or not its target exists."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").symlink_to(secret.parent)
    (root / "b").symlink_to(tmp_path / "nothing")
    for name in ("a", "a/thesis.md", "b", "b/c"):
        with pytest.raises(ValueError, match="is a link"):
            names.below(root, name)


@pytest.mark.parametrize("name", ["report.html", ".cecdata", ".cecdata/journal.jsonl"])
@pytest.mark.parametrize("to", [(), ("--out", "DATASET")])
def test_report_writes_through_no_link(dataset, secret, name, to):
    """A link that came with a dataset is refused before anything behind it is touched."""
    path = dataset / name
    before = secret.read_bytes()
    if name == ".cecdata":
        shutil.copytree(path, secret.parent / "state")
        (secret.parent / "state" / "journal.jsonl").write_bytes(before)
        shutil.rmtree(path)
        path.symlink_to(secret.parent / "state")
    else:
        path.unlink(missing_ok=True)
        path.symlink_to(secret)
    words = [str(dataset) if word == "DATASET" else word for word in to]
    done = CliRunner().invoke(cli, ["report", str(dataset), *words])
    assert done.exit_code == 5, done.output
    assert "is a link" in done.output
    for file in secret.parent.rglob("*"):
        assert file.name not in ("thesis.md", "journal.jsonl") or file.read_bytes() == before


@pytest.mark.parametrize("name", ["/../../../x", "../up", "a//b", "a\0b", ""])
def test_figures_stay_in_their_folder(tmp_path, name):
    """A study's name out of a JSON that names another place is refused; no file is made there."""
    from experiments.figures import redraw

    folder = tmp_path / "in" / "deep" / "st"
    folder.mkdir(parents=True)
    study = {"study": name, "rows": [{"name": "a", "values": {"F1": [0.5]}}]}
    (folder / "STUDY.json").write_text(json.dumps(study))
    with pytest.raises(InputError, match=r"STUDY\.json"):
        redraw([folder], tmp_path / "in" / "deep" / "out")
    assert not list(tmp_path.rglob("*.svg"))
