"""Files from elsewhere: no path or name leads out, no link is followed, nothing in them runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import pickle
import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pickled import Bomb

from cecdata.builds.place import Done, Place
from cecdata.cli import cli
from cecdata.common.codec import seal_object
from cecdata.common.durable import Workspace
from cecdata.common.durable import files as names
from cecdata.common.errors import CecError, InputError, RefusedError, VerificationError
from cecdata.config import load
from cecdata.corpus.reading import read_corpus
from cecdata.shards.manifest import File, decode_manifest
from cecdata.shards.reader import open_dataset
from cecdata.shards.verify import verify

SENTENCE = "他的病情已经好转，明天就能出院。"


def resealed(data: bytes, old: bytes, new: bytes) -> bytes:
    """A manifest edited by somebody who knows how its seal is made."""
    assert old in data
    bare = re.sub(rb'"seal": "[0-9a-f]{64}"', b'"seal": "' + b"0" * 64 + b'"', data)
    bare = bare.replace(old, new)
    seal = hashlib.sha256(bare).hexdigest().encode()
    return bare.replace(b'"seal": "' + b"0" * 64, b'"seal": "' + seal)


@pytest.mark.parametrize(
    "place",
    [
        "../secret.parquet", "/etc/passwd", "data/../../secret", "C:/x", "c:/x", "a\\b", "data/\0",
        "",
    ],
)  # fmt: skip
def test_no_path_out_of_a_manifest(made, place):
    """A manifest may name only what lies inside its folder, even where its seal is right."""
    data = (made / "manifest.json").read_bytes()
    name = re.search(rb'"path": "(data/train-[^"]+)"', data)
    with pytest.raises(VerificationError, match=r"points outside|empty part|NUL"):
        decode_manifest(resealed(data, b'"' + name[1] + b'"', json.dumps(place).encode()))


@pytest.mark.parametrize("path", ["../outside.arrow", "/etc/passwd", "a/../../outside.arrow"])
def test_no_path_out_of_a_marker(tmp_path, path):
    """A task whose marker names a file elsewhere is done again, even where its seal is right."""
    place = Place(str(tmp_path / "out"))
    (tmp_path / "outside.arrow").write_bytes(b"x")
    file = File(path, hashlib.sha256(b"x").hexdigest(), 1, 1)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "inside").write_bytes(b"x")
    place.mark(Done("read/00000", "build", (replace(file, path="inside"),)))
    assert place.find_marker("read/00000", "build") is not None
    place.mark(Done("read/00001", "build", (file,)))
    assert place.find_marker("read/00001", "build") is None


def test_a_link_among_the_shards_gives_nothing_else(dataset, tmp_path):
    """A shard that is a link to other bytes is refused like any other damage."""
    shard = next((dataset / "data").glob("train-*"))
    elsewhere = tmp_path / "elsewhere.parquet"
    pq.write_table(pa.table({"text": ["geheim"]}), elsewhere)
    shard.unlink()
    shard.symlink_to(elsewhere)
    assert not verify(dataset).ok
    with pytest.raises(VerificationError, match=shard.name):
        open_dataset(dataset)


def test_no_writing_through_a_link(tmp_path):
    """A workspace with a link that leads out of it writes, publishes and removes nothing there."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").write_text("kept")
    with Workspace(tmp_path / "out", {"x": 1}) as work:
        (work.root / "data").symlink_to(outside)
        for name in ("data/kept.txt", "../outside/kept.txt", str(outside / "kept.txt")):
            with pytest.raises(RefusedError, match="points outside"):
                work.write_bytes(name, b"other")
    with Workspace(tmp_path / "out", {"x": 2}, overwrite=True):
        pass
    assert (outside / "kept.txt").read_text() == "kept"


@pytest.mark.parametrize(
    "name", ["", "/lock", "/journal.jsonl", "/fingerprint.json", "/tmp", "/pool", "/ppo/answers"]
)
@pytest.mark.parametrize("overwrite", [False, True])
def test_no_link_inside_the_state_is_followed(tmp_path, name, overwrite):
    """A link at `.cecdata` or anywhere in it is refused before anything behind it is touched."""
    outside = tmp_path / "outside"
    (outside / "docs").mkdir(parents=True)
    (outside / "docs" / "thesis.txt").write_text("no line feed at the end")
    before = sorted(outside.rglob("*"))
    link = tmp_path / "out" / f".cecdata{name}"
    link.parent.mkdir(parents=True)
    is_file = name.endswith(("lock", "jsonl", "json"))
    link.symlink_to(outside / "docs" / "thesis.txt" if is_file else outside)
    with (
        pytest.raises(RefusedError, match="is a link"),
        Workspace(tmp_path / "out", {"x": 1}, overwrite=overwrite),
    ):
        pass
    assert sorted(outside.rglob("*")) == before
    assert (outside / "docs" / "thesis.txt").read_text() == "no line feed at the end"


@pytest.mark.parametrize(
    "entry",
    [
        {"step": "file", "key": "../up", "facts": {}},
        {"step": "publish", "key": "../up", "facts": {"names": ["x"]}},
        {"step": "publish", "key": "data", "facts": {"names": ["../../x"]}},
    ],
)
def test_no_path_out_of_a_journal(tmp_path, entry):
    """Nothing is removed that a journal names outside its folder, seal or no seal."""
    with Workspace(tmp_path / "out", {"x": 1}) as work:
        work.journal.path.write_bytes(seal_object(entry, indent=None))
    with (
        pytest.raises(RefusedError, match="points outside"),
        Workspace(tmp_path / "out", {"x": 1}, overwrite=True),
    ):
        pass


def test_no_path_out_of_a_checkpoint(tmp_path):
    """A checkpoint whose list names a file elsewhere is not whole."""
    from cectrain.checkpoints import read_step

    (tmp_path / "secret").write_bytes(b"x")
    folder = tmp_path / "checkpoint-1"
    folder.mkdir()
    files = {"../secret": [hashlib.sha256(b"x").hexdigest(), 1]}
    (folder / "checkpoint.json").write_text(json.dumps({"files": files, "step": 1}))
    assert read_step(folder) is None


def everything(path) -> list[str]:
    return [text for rows in read_corpus([str(path)]) for text in rows.batch["text"].to_pylist()]


def test_pickled_columns_stay_bytes(tmp_path):
    """A column of pickled objects beside the text is never opened."""
    bomb = pickle.dumps(Bomb(tmp_path / "mark"))
    table = pa.table({"text": [SENTENCE], "object": pa.array([bomb], pa.binary())})
    pq.write_table(table, tmp_path / "a.parquet")
    assert everything(tmp_path / "a.parquet") == [SENTENCE]
    assert not (tmp_path / "mark").exists()


@pytest.mark.filterwarnings("ignore")  # Arrow says that it does not know the type
def test_an_extension_type_does_not_run(tmp_path):
    """Arrow's old extension type of pickled Python, in a file from elsewhere, stays unread."""
    bomb = pickle.dumps(Bomb(tmp_path / "mark"))
    label = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": bomb}
    field = pa.field("text", pa.string(), metadata=label)
    table = pa.table([pa.array([SENTENCE])], schema=pa.schema([field]))
    pq.write_table(table, tmp_path / "a.parquet")
    with contextlib.suppress(InputError):
        everything(tmp_path / "a.parquet")
    assert not (tmp_path / "mark").exists()


def test_a_pickled_array_does_not_run(tmp_path):
    """The pool's counts as an array of objects are refused, not unpickled."""
    from cecdata.builds.distinct import sum_histograms
    from cecdata.builds.place import Place

    counts = np.array([Bomb(tmp_path / "mark")] * 2, dtype=object)
    np.save(tmp_path / "places.npy", counts, allow_pickle=True)
    pool = SimpleNamespace(counts=("places.npy",))
    with pytest.raises(ValueError, match="allow_pickle"):
        sum_histograms(Place(str(tmp_path)), pool, load())
    assert not (tmp_path / "mark").exists()


RECIPES = [
    'seed = 1\n__class__ = "os"\n', 'encoder = "$(touch mark)"\n', 'encoder = "; touch mark"\n',
    'text_column = "{0.__class__}"\n', "[prior]\nnoise = \"__import__('os').mkdir('mark')\"\n",
    "seed = !!python/object/apply:os.mkdir [mark]\n",
]  # fmt: skip


@pytest.mark.parametrize("text", RECIPES)
def test_a_recipe_runs_nothing(tmp_path, monkeypatch, text):
    """A TOML recipe is values: whatever they spell, nothing is evaluated, run or imported."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.toml"
    path.write_text(text + "copies = 1\n" if "[" not in text else text, "utf-8")
    with contextlib.suppress(CecError):
        load(str(path))
    from cectrain.config import load as load_training

    with pytest.raises(CecError):
        load_training(str(path))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.toml"]


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
        names.check_inside(name)
    with pytest.raises(ValueError, match="name"):
        names.find_path_below(tmp_path, name)


def test_a_plain_name_passes(tmp_path):
    """Names of shards, and any letters, spaces, dots or colons inside, are names below the root."""
    for name in ("data/train-0.parquet", "a b/…/.x", "文件/..a", "ab:c/d"):
        assert names.check_inside(name) == name
        assert names.find_path_below(tmp_path, name) == tmp_path / name


def test_a_link_in_any_part_is_refused(tmp_path, secret):
    """Also a link to a folder half-way, whether or not its target exists."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").symlink_to(secret.parent)
    (root / "b").symlink_to(tmp_path / "nothing")
    for name in ("a", "a/thesis.md", "b", "b/c"):
        with pytest.raises(ValueError, match="is a link"):
            names.find_path_below(root, name)


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
