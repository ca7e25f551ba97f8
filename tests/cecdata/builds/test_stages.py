"""The three maps: no byte depends on order, cutting, workers or interruptions; no row is lost."""

from __future__ import annotations

import json
import pickle
import random
import shutil
import threading
import time
from collections import Counter, defaultdict
from dataclasses import replace

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cecdata.builds import blocks, read
from cecdata.builds.blocks import open_input
from cecdata.builds.build import Run, build
from cecdata.builds.distinct import Distinct
from cecdata.builds.engine import Threads, work_ahead
from cecdata.builds.place import PLACED, Place, keep_distinct
from cecdata.builds.read import Read
from cecdata.common.codec import unseal_object
from cecdata.common.durable import Workspace
from cecdata.config import load
from cecdata.shards.manifest import read_manifest

CONFIG = load(filters=("levenshtein",), shard_sentences=25)


@pytest.fixture
def small(monkeypatch):
    """Blocks of two kilobytes, parts of four, buckets of one: every path with few sentences."""
    monkeypatch.setattr(blocks, "_BLOCK", 2_000)
    monkeypatch.setattr(read, "_PART", 4_000)
    monkeypatch.setattr(blocks, "_BUCKET", 1_000)


@pytest.fixture(scope="module")
def rows(lines_of):
    """300 rows: 150 sentences, repeats of them with other origins, and rows that are none."""
    draw = random.Random(5)
    texts = lines_of(150)
    made = [{"text": text, "origin": "b", "licence": None} for text in texts]
    again = draw.choices(texts, k=126)
    made += [
        {"text": t, "origin": draw.choice("abc"), "licence": draw.choice([None, "cc0-1.0", "mit"])}
        for t in again
    ]
    made += [{"text": text, "origin": "a", "licence": None} for text in ["短", "坏\0行了吧"] * 12]
    draw.shuffle(made)
    return made


def written(folder, rows, cuts, draw):
    """The rows in so many files, half of them JSON lines and half Parquet."""
    folder.mkdir()
    bounds = sorted(draw.sample(range(1, len(rows)), cuts - 1))
    for n, (start, end) in enumerate(zip([0, *bounds], [*bounds, len(rows)], strict=True)):
        frame = pl.DataFrame(rows[start:end], schema=dict.fromkeys(rows[0], pl.String))
        if n % 2:
            frame.write_parquet(folder / f"{n}.parquet")
        else:
            frame.write_ndjson(folder / f"{n}.jsonl")
    return [str(path) for path in sorted(folder.iterdir())]


@pytest.fixture(scope="module")
def whole(rows, tmp_path_factory):
    """The shards of a build that nobody stopped."""
    folder = tmp_path_factory.mktemp("whole")
    build(written(folder / "in", rows, 4, random.Random(4)), folder / "out", CONFIG)
    return shards(folder / "out")


def shards(out):
    return {path.name: path.read_bytes() for path in sorted((out / "data").iterdir())}


def test_no_byte_depends_on_order_cutting_or_workers(rows, small, tmp_path):
    """Three orders and cuttings by one to three workers: the same shards, and every row accounted
    for; of equal sentences the one of the smallest origin is left, with the licences of all."""
    draw = random.Random(7)
    found = []
    for n in range(3):
        shuffled = draw.sample(rows, len(rows))
        files = written(tmp_path / f"in{n}", shuffled, (1, 2, 9)[n], draw)
        out = tmp_path / f"out{n}"
        manifest = build(draw.sample(files, len(files)), out, CONFIG, workers=1 + n)
        counts = manifest.rows
        assert (counts.read, counts.kept) == (300, 150)
        assert counts.rejected == {"control_character": 12, "duplicate": 126, "too_short": 12}
        bad = [pq.read_table(path) for path in (out / "rejects").glob("rows-*.parquet")]
        assert Counter(pa.concat_tables(bad).column("reason").to_pylist()) == counts.rejected
        found.append((shards(out), manifest.content_sha256, manifest.origins))
    assert found[1:] == found[:1] * 2
    best, licences = {}, defaultdict(set)
    for row in rows:
        best[row["text"]] = min(best.get(row["text"], "z"), row["origin"])
        licences[row["text"]].add(row["licence"] or "not stated")
    origins = pl.read_parquet(tmp_path / "out0/data/*.parquet").select("target", "origin").unique()
    assert dict(origins.iter_rows()) == {t: o for t, o in best.items() if len(t) > 9}
    stated = Counter((best[t], "; ".join(sorted(licences[t]))) for t in best if len(t) > 9)
    assert stated == {(o.origin, o.licence or "not stated"): o.sentences for o in found[0][2]}


def test_a_large_parquet_file_is_several_tasks(rows, tmp_path, monkeypatch):
    """Its row groups are cut into tasks: the same shards, the same inputs, the same rejects."""
    path = tmp_path / "a.parquet"
    pl.DataFrame(rows).write_parquet(path, row_group_size=20)
    (tmp_path / "b.jsonl").write_text(json.dumps({"text": "他的病情已经好转。"}), "utf-8")
    files = [str(path), str(tmp_path / "b.jsonl")]

    def made(name, tasks):
        with open_input(files, CONFIG) as source:
            assert len(source.blocks) == tasks
        manifest = build(files, tmp_path / name, CONFIG, workers=2)
        bad = pa.concat_tables(map(pq.read_table, (tmp_path / name / "rejects").glob("rows-*")))
        return manifest.inputs, shards(tmp_path / name), sorted(map(str, bad.to_pylist()))

    whole = made("whole", 1)
    monkeypatch.setattr(blocks, "_BLOCK", path.stat().st_size // 4)
    assert made("cut", 6) == whole
    assert [file.rows for file in whole[0]] == [300, 1]


def test_a_shard_is_a_range_of_ids(rows, small, tmp_path):
    """The manifest gives each shard's first and last id; rows are sorted by (id, copy)."""
    files = written(tmp_path / "in", rows, 3, random.Random(1))
    manifest = build(files, tmp_path / "out", CONFIG)
    for split, recorded in manifest.outputs.items():
        assert len(recorded) == 6
        last = -(2**63)
        for file in recorded:
            low, high = file.extra["ids"]
            assert last < low <= high, split
            last = high
            keys = pl.read_parquet(tmp_path / "out" / file.path).select("id", "copy")
            assert keys.equals(keys.sort("id", "copy"))
            assert keys["id"].is_between(low, high).all()


def test_a_limit_takes_the_first_rows(rows, small, tmp_path):
    """`limit` counts rows in the order of the files, whatever their formats."""
    files = written(tmp_path / "in", rows, 5, random.Random(3))
    config = load(filters=("levenshtein",), limit=166)
    manifest = build(files, tmp_path / "out", config, workers=2)
    assert manifest.rows.read == 166 == sum(file.rows for file in manifest.inputs)
    kept = {row["text"] for row in rows[:166] if len(row["text"]) > 9}
    assert set(pl.read_parquet(tmp_path / "out/data/*.parquet")["target"]) == kept


def test_of_equal_sentences_the_smallest_is_left():
    """Against a plain minimum, for all columns that decide; it has the licences of all."""
    draw = random.Random(2)
    rows = [
        {
            "id": draw.randrange(-9, 9), "text": "x", "origin": draw.choice("ab"),
            "licence": draw.choice([None, "m", "b; m"]), "file": draw.randrange(2), "row": n,
        }
        for n in range(200)
    ]  # fmt: skip
    kept, again = keep_distinct(pa.RecordBatch.from_pylist(rows, PLACED))

    def rank(row):
        return row["origin"], row["file"], row["row"]

    for row in kept.to_pylist():
        equal = [r for r in rows if r["id"] == row["id"]]
        several = {name for r in equal for name in (r["licence"] or "not stated").split("; ")}
        licence = None if several == {"not stated"} else "; ".join(sorted(several))
        assert row == {**min(equal, key=rank), "licence": licence}
    assert kept.column("id").to_pylist() == sorted({row["id"] for row in rows})
    assert len(kept) + len(again) == len(rows)


@pytest.mark.parametrize("stage", ["read", "distinct", "corrupt"])
def test_only_what_has_no_true_marker_is_made_again(
    rows, whole, small, stage, tmp_path, monkeypatch
):
    """A missing or damaged file, or marker, of an unfinished build costs its own task alone."""
    files, out = written(tmp_path / "in", rows, 4, random.Random(4)), tmp_path / "out"

    def stopped(*_given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("cecdata.builds.build.publish_pairs", stopped)
        with pytest.raises(KeyboardInterrupt):
            build(files, out, CONFIG)
    made = Counter()
    make = Place.mark
    monkeypatch.setattr(Place, "mark", lambda self, d: made.update([d.task]) or make(self, d))
    markers = sorted((out / ".cecdata/done" / stage).iterdir())
    assert len(markers) > 2
    named = json.loads(markers[0].read_text())["files"][0]["path"]
    path = out / ".cecdata" / named if stage == "corrupt" else out / named
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    markers[1].write_bytes(markers[1].read_bytes()[:-20])
    markers[2].unlink()
    build(files, out, CONFIG)
    assert made == Counter(f"{stage}/0000{n}" for n in range(3))
    assert shards(out) == whole
    assert not any((out / ".cecdata" / name).exists() for name in ("read", "distinct"))


def test_near_duplicates_are_found_across_buckets_and_interruptions(small, lines_of, tmp_path):
    """The sentence with the smaller id stays, whether the build was interrupted or not."""
    texts = [f"{line}今天{n}点。" for n, line in enumerate(lines_of(60))]
    texts += [text.replace("。", "！") for text in texts]
    path = tmp_path / "a.txt"
    path.write_text("\n".join(texts), "utf-8")
    config = load(filters=("levenshtein",), near_duplicates=True)
    whole = build([str(path)], tmp_path / "whole", config)
    near = whole.rows.rejected["near_duplicate"]
    assert (whole.rows.read, whole.rows.kept) == (120, 120 - near)
    assert near >= 60
    with open_input([str(path)], config) as source:
        assert source.bits > 1
        run = Run(Place(str(tmp_path / "part")), "x", Threads())
        first = run.gather_sentences(source, config, counts=False)
        (tmp_path / "part/.cecdata/done/distinct/00000.json").unlink()
        assert run.gather_sentences(source, config, counts=False) == first
    assert first.sentences == whole.rows.kept


def sent(stage, n):
    return pickle.loads(pickle.dumps(stage)) if n else stage


def test_tasks_can_be_sent_to_another_process(rows, tmp_path):
    """A stage that went through pickle writes the same files."""
    files = written(tmp_path / "in", rows, 2, random.Random(6))
    config = load(filters=("levenshtein",))
    sums = []
    for n in range(2):
        place = Place(str(tmp_path / f"out{n}"))
        with open_input(files, config) as source:
            source_of_four = replace(source, bits=2)
        done = sent(Read(place, "x", config, source_of_four), n)(0)
        parts = (next(file.path for file in done.files if file.path.endswith(".arrow")),)
        again = Distinct(place, "x", config, source_of_four, parts, True)
        sums.append([done, *(sent(again, n)(bucket) for bucket in (0, 3))])
    assert sums[0] == sums[1]


def test_threads_work_ahead_in_order():
    """Two items are worked on at once, the results come in order, and no more than three wait."""
    together, taken_ = threading.Barrier(2, timeout=10), 0

    def items():
        nonlocal taken_
        while taken_ < 20:
            taken_ += 1
            yield taken_

    def work(item):
        together.wait()
        time.sleep(0.001 * (item % 3))
        return item

    for done, item in enumerate(work_ahead(work, items(), 2), 1):
        assert item == done
        assert taken_ <= done + 3


def test_an_error_in_a_thread_is_raised():
    """The results before it come first, those after it never do, and no thread works on."""
    done = []
    with pytest.raises(ZeroDivisionError):
        done.extend(work_ahead(lambda n: 1 // (n - 3), range(10), 2))
    assert done == [-1, -1, -1]
    with pytest.raises(ZeroDivisionError):
        list(work_ahead(lambda n: time.sleep(0.1) or done.append(n), (1 // n for n in (1, 0)), 2))
    assert done == [-1, -1, -1, 1]


def test_a_dataset_of_another_layout_is_refused(cecdata, built, corpus, flags, tmp_path):
    """An output that was begun by a release with other shards says which command makes it new."""
    out = tmp_path / "out"
    shutil.copytree(built, out)
    state = out / ".cecdata"
    identity = unseal_object((state / "fingerprint.json").read_bytes())
    del identity["layout"]
    shutil.rmtree(state)
    (old := tmp_path / "old").mkdir()
    with Workspace(old, identity) as work:
        work.journal.record("pool", "all")
    shutil.copytree(old / ".cecdata", state)
    code, _, said = cecdata("build", corpus, "--out", out, *flags)
    assert code == 5
    assert "layout: (not set)" in said
    assert "--overwrite" in said
    assert read_manifest(out).pairs.kept
    assert cecdata("verify", out)[0] == 0
