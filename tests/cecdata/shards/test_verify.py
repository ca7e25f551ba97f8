from __future__ import annotations

import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cecdata.common.errors import InputError, UsageError
from cecdata.shards.manifest import MANIFEST, Counts, dumps, read_manifest
from cecdata.shards.schema import PAIR
from cecdata.shards.verify import verify

FIRST = "data/train-00000-of-00002.parquet"
AGAIN = pa.schema([*(PAIR.field(n) for n in ("source", "operator", "edits")),
                   pa.field("held_out", pa.bool_())])  # fmt: skip


def derived(rows):
    """What a rederivation gives for these rows."""
    return pa.Table.from_pylist([{"held_out": False, **row} for row in rows], schema=AGAIN)


FILES = [FIRST, "rejects/pairs.parquet", "README.md", "manifest.json"]


def test_a_sound_dataset_has_no_problems(dataset):
    """Every level finds nothing in a dataset as it was built, and says how much it read."""
    told: list[tuple[int, int]] = []
    found = {}
    for path in (dataset / "data").iterdir():
        for row in pq.read_table(path).to_pylist():
            found[row["id"], row["copy"]] = {**row, "held_out": "validation" in path.name}

    def rederive(targets, ids, copies):
        pairs = zip(ids.tolist(), copies.tolist(), strict=True)
        return derived([found[pair] for pair in pairs])

    def tell(_what, rows, of):
        told.append((rows, of))

    for level in ("quick", "default", "full"):
        report = verify(dataset, level, rederive=rederive, progress=tell)
        assert report.ok, report.problems
        assert report.rows_checked == (0 if level == "quick" else len(found))
    assert sum(rows for rows, _ in told) == 2 * len(found)
    assert {of for _, of in told} == {len(found)}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rows": Counts(30, 17, {"too_short": 13})}, "rejected rows by reason"),
        ({"rejects": ()}, "rejected rows by reason are {}"),
        ({"configuration": {"seed": 42, "copies": 9}}, "17 sentences of 9 copies are not"),
    ],
)
def test_a_manifest_that_counts_otherwise_is_found(dataset, changes, said):
    """Its seal says nothing of whoever sealed it: what it counts is counted again."""
    whole = read_manifest(dataset)
    (dataset / MANIFEST).write_bytes(dumps(replace(whole, fingerprint="", **changes)))
    for file in whole.rejects if "rejects" in changes else ():
        (dataset / file.path).unlink()
    report = verify(dataset)
    assert any(problem.path == MANIFEST and said in problem.what for problem in report.problems)
    assert all(problem.path == MANIFEST for problem in report.problems)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["delete", "truncate", "empty", "append", "flip", "replace"])
def test_every_damage_names_its_file(dataset, name, damage):
    """Whatever happens to a file, verify does not raise, and its problems name that file."""
    path = dataset / name
    data = path.read_bytes()
    if damage == "delete":
        path.unlink()
    else:
        half = len(data) // 2
        path.write_bytes(
            {
                "truncate": data[:half],
                "empty": b"",
                "append": data + b"\n",
                "flip": data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :],
                "replace": bytes(len(data)),
            }[damage]
        )
    report = verify(dataset)
    assert {problem.path for problem in report.problems} == {name}
    # what leaves the size is found by SHA-256 or a seal alone
    seen = damage not in ("flip", "replace") or name == MANIFEST
    assert {p.path for p in verify(dataset, "quick").problems} == ({name} if seen else set())


def test_foreign_files_are_named(dataset):
    """A file in data/ or rejects/ that nobody vouches for is a problem at every level."""
    shutil.copy(dataset / FIRST, dataset / "data/train-00002-of-00003.parquet")
    (dataset / "rejects/notes.txt").write_text("x")
    for level in ("quick", "default"):
        assert [problem.path for problem in verify(dataset, level).problems] == [
            "data/train-00002-of-00003.parquet",
            "rejects/notes.txt",
        ]


def value(new, row):
    return new(row) if callable(new) else new


def spoil(**changes):
    def change(rows):
        row = next(row for row in rows if len(row["edits"]) == 1 and row["copy"] == 1)
        row.update({name: value(new, row) for name, new in changes.items()})

    return change


def edit_of(**changes):
    return lambda row: [{**row["edits"][0], **changes}]


def swap_copies(rows):
    rows[0]["copy"], rows[1]["copy"] = rows[1]["copy"], rows[0]["copy"]


def scatter(rows):
    rows.append(rows.pop(0))


def repeat(rows):
    rows.append({**rows[0]})


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (spoil(source=lambda r: r["source"] + "。"), "do not lead to the source"),
        (spoil(edits=edit_of(start=-1)), "edits out of order"),
        (spoil(edits=edit_of(end=10**6)), "edits out of order"),
        (spoil(edits=lambda r: r["edits"] * 2), "edits out of order"),
        (spoil(edits=edit_of(target="另")), "do not quote their target"),
        (spoil(edits=edit_of(source="另")), "do not lead to the source"),
        (spoil(edits=edit_of(operator="near_glyph")), "operator that is not that"),
        (spoil(operator="mixed"), "operator that is not that"),
        (spoil(operator="unchanged"), "operator that is not that"),
        (spoil(distance=lambda r: r["distance"] + 1), "rapidfuzz"),
        (spoil(id=lambda r: r["id"] ^ 1), "hash of the target"),
        (spoil(cosine=0.5), "cosine"),
        (spoil(cosine=float("nan")), "cosine"),
        (spoil(cosine=1.5), "cosine"),
        (spoil(source=lambda r: r["target"], edits=[]), "like its target"),
        (swap_copies, "out of the order"),
        (scatter, "out of the order"),
        (repeat, "out of the order"),
    ],
)
def test_one_wrong_row_is_found(build, rows, change, what):
    """A row that breaks a rule is found, though the manifest vouches for its bytes."""
    change(rows)
    (problem, *_) = (p for p in verify(build(train=[rows])).problems if what in p.what)
    assert problem.path == "data/train-00000-of-00001.parquet"


def test_a_sentence_in_two_splits_is_found(build, rows):
    """What is held out is not trained on."""
    (problem,) = verify(build(train=[rows], validation=[rows[:1]])).problems
    assert f"1 sentences are in two splits; the first: {rows[0]['id']}" in problem.what


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"source": "。"}, "a source that (seed, id, copy) does not give"),
        ({"operator": "radical"}, "an operator that (seed, id, copy) does not give"),
        ({"edits": []}, "edits that (seed, id, copy) does not give"),
        ({"kind": "other"}, "edits that (seed, id, copy) does not give"),
        ({"held_out": True}, "a sentence that belongs to the other split"),
    ],
)
def test_a_row_that_is_not_rederived_is_found(build, rows, change, said):
    """The full level finds a valid pair that is not the one (seed, id, copy) gives."""
    at = next(n for n, row in enumerate(rows) if row["edits"] and row["operator"] != "radical")
    again = [dict(row) for row in rows]
    if "kind" in change:
        again[at]["edits"] = [{**again[at]["edits"][0], **change}, *again[at]["edits"][1:]]
    else:
        again[at] |= change
    report = verify(build(train=[rows]), "full", rederive=lambda *_: derived(again))
    (problem,) = report.problems
    assert f"1 rows with {said}; the first is row {at} " in problem.what


def test_a_failing_rederivation_is_a_problem(build, rows):
    """What goes wrong while a file is read never escapes as an exception."""
    out = build(train=[rows])

    def fails(targets, ids, copies):
        raise ValueError("no such operator")

    (problem,) = verify(out, "full", rederive=fails).problems
    assert "no such operator" in problem.what


def test_usage_errors_do_raise(dataset, tmp_path):
    """A level that does not exist, a missing function or folder is the caller's error."""
    with pytest.raises(UsageError, match="available: quick, default, full"):
        verify(dataset, "deep")
    with pytest.raises(UsageError, match="full"):
        verify(dataset, "full")
    with pytest.raises(InputError):
        verify(tmp_path / "nowhere")
    (tmp_path / "letters").mkdir()
    with pytest.raises(InputError, match="not a dataset"):
        verify(tmp_path / "letters")


def test_a_million_rows_would_not_fit_one_batch(build, rows):
    """Sentences that straddle two batches of a shard are neither disorder nor a repetition."""
    long = [
        {**row, "id": row["id"], "copy": copy, "cosine": None}
        for row in rows[::3]
        for copy in range(2_000)
    ]
    assert len(long) > 8_192
    assert verify(build(train=[long])).ok


def test_rows_are_in_the_range_of_ids_of_their_shard(build, rows):
    """Where the manifest states a shard's ids, its rows are among them."""
    out = build(train=[rows])
    made = read_manifest(out)
    (shard,) = made.outputs["train"]
    for ids, wrong in (([-(2**63), 2**63 - 1], 0), ([0, 1], len(rows))):
        outputs = {**made.outputs, "train": (replace(shard, extra={"ids": ids}),)}
        (out / "manifest.json").write_bytes(dumps(replace(made, outputs=outputs)))
        found = [problem.what for problem in verify(out).problems]
        assert len(found) == bool(wrong)
        assert all(f"{wrong:,} rows with a row out of the order" in what for what in found)
