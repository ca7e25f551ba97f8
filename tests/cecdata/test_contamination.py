"""Sentences of benchmarks in a corpus: found as they were planted, and nothing else."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cecdata.cli import cli
from cecdata.common.command_group import run
from cecdata.contamination.benchmarks import load_index, read_row_texts
from cecdata.contamination.index import CONTAMINATED, EXACT, OVERLAP, SHARED, Index, Keys
from cecdata.corpus.reading import read_corpus
from cecdata.shards.manifest import read_manifest
from cecdata.shards.schema import REJECTED_ROW

# Written for these tests: subjects, verbs and objects that make 1,000 sentences of 20 and more.
PARTS = (
    """早上六点钟 下了班以后 上个星期天 趁着天还没黑 听到这个消息 隔壁的邻居说 按照说明书
    在河对岸的树林里 开完会回来 等到雨停了""",
    """他把自行车推进了院子 小陈终于修好了那台风扇 我们在站台上等了半个小时 老师让大家打开课本
    母亲煮了一锅绿豆汤 司机绕道去了加油站 医生又量了一遍血压 几个孩子爬上了山坡
    店主把招牌擦得很亮 会计重新核对了账目""",
    """谁也没有说话。 这让人放心了不少。 可是已经来不及了。 后来才发现弄错了地方。
    大家都松了一口气！ 还顺便买了两斤苹果。 事情就这样定下来了。 直到灯亮起来为止。
    并且把经过写进了日记。 第二天又做了一次。""",
)
FIRST, MIDDLE, LAST = (part.split() for part in PARTS)
SENTENCES = [f"{a}，{b}，{c}" for a in FIRST for b in MIDDLE for c in LAST]


def index(*benchmarks):
    return Index((f"b{number}", [pa.array(part)]) for number, part in enumerate(benchmarks))


def wide(text):
    """Full width for ASCII, spaces between all characters, other punctuation."""
    signs = {"，": ", ", "。": "．", "！": "…"}
    return " ".join(signs.get(c, chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c) for c in text)


def test_a_file_of_another_suffix_is_read_as_lines(tmp_path):
    """As law.test of ECSpell: a label, a source and a target on each line."""
    path = tmp_path / "law.test"
    path.write_text("".join(f"0\t{text}\t{text}\n" for text in SENTENCES[:3]), "utf-8")
    assert (load_index([str(path)]).find(pa.array(SENTENCES[:3])) & EXACT).all()


def test_what_was_planted_is_found():
    """Verbatim, in another width or punctuation, and inside a longer line: all of it."""
    known = index(SENTENCES[::2])
    planted = SENTENCES[::2]
    assert (known.find(pa.array(planted)) & EXACT).all()
    assert (known.find(pa.array([wide(text) for text in planted])) & EXACT).all()
    inside = [f"编者按：{text}（未完待续）" for text in planted]
    assert (known.find(pa.array(inside)) & OVERLAP).all()


def test_unrelated_sentences_are_not_hit(cec_shared):
    """Of 100,000 sentences of laws and news none is hit by the benchmarks about other things."""
    known = index(SENTENCES)
    clean = pq.read_table(cec_shared / "clean/clean.parquet", columns=["text"])
    text = clean.column("text").slice(0, 100_000).combine_chunks().cast(pa.string())
    assert not (known.find(text) & CONTAMINATED).any()


TEXT = st.text(st.sampled_from("天气很好，我们去爬山。Ａa１ "), max_size=40)
PERIODIC = st.builds(str.__mul__, st.text("天气", max_size=3), st.integers(1, 30))
TEXT |= st.builds("".join, st.tuples(PERIODIC, st.text("天a", max_size=2), PERIODIC))


@given(st.lists(TEXT, min_size=1, max_size=5), st.lists(TEXT, min_size=1, max_size=5))
def test_flags_agree_with_the_definitions(benchmark, corpus):
    """EXACT, OVERLAP and SHARED are those of the keys."""
    flags = index(benchmark).find(pa.array(corpus))
    if not flags.shape[1]:
        return

    def key(text):
        return "".join(map(chr, Keys(pa.array([text])).codes))

    keys = [key(text) for text in benchmark if len(key(text)) >= 3]
    for text, got in zip(corpus, flags[:, 0].tolist(), strict=True):
        own = key(text)
        assert bool(got & EXACT) == (own in keys)
        inside = any(len(k) >= 7 and k in own for k in keys)
        windows = [own[place : place + 13] for place in range(len(own) - 12)]
        covered = len(own) >= 20 and all(any(w in k for k in keys) for w in windows)
        assert bool(got & OVERLAP) == (inside or covered)
        assert bool(got & SHARED) == any(w in k for w in windows for k in keys)


def test_equal_rows_of_many_batches_are_kept_once():
    """A small file may expand to any number of equal rows; only one of them is held."""
    known = Index([("b", (pa.array(SENTENCES[:2] * 50) for _ in range(20)))])
    assert known.sizes == {"b": 2}
    assert known.find(pa.array([*SENTENCES[:2], "别的句子"])).tolist() == [[7], [7], [0]]


def test_equal_characters_take_linear_time():
    """Four times as long a text of one character, on both sides, takes about four times as long."""

    def seconds(size):
        text, started = pa.array(["好" * size, "好" * size + "我"]), time.process_time()
        index(text).find(text)
        return time.process_time() - started

    seconds(20)  # compiles
    assert any(seconds(40_000) < 8 * seconds(10_000) for _ in range(3))


ONE, OTHER = "他把自行车推进了院子里。", "老师让大家打开课本。"
FILES = {
    "b.txt": "0\t他把自行车推近了院子里。\t他把自行车推进了院子里。\n",
    "b.jsonl": '{"label": "老师让大家打开课本", "m": [{"v": "他把自行车推进了院子里。"}]}\n',
    "b.json": '[{"wrong": "他把自行车推近了院子里", "correct_text": "他把自行车推进了院子里"}]',
    "b.csv": 'source,target\n他把自行车推近了院子里,"他把自行车,推进了院子里。"\n',
    "b.m2": "S 他 把 自 行 车 推 进 了 院 子 里 。\nA 5 6|||S|||近|||REQUIRED|||-NONE-|||0\n",
}


@pytest.mark.parametrize("name", FILES)
def test_both_sides_of_pairs_in_any_format(name, tmp_path):
    """Texts of each format are read, on both sides; ids and labels are no texts."""
    (tmp_path / name).write_text(FILES[name], "utf-8")
    known = Index([(name, [text for text, _, _ in read_row_texts(str(tmp_path / name))])])
    rows = pa.array(["他把自行车推进了院子里", "老师让大家打开课本"])
    assert (known.find(rows)[:, 0] & EXACT).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("name", "text", "rows", "hits"),
    [
        ("a.csv", f"text\n{ONE}\ntext\n", 2, 1),
        ("a.csv", f"id,Text,origin\n1,{ONE},{OTHER}\n2,没有,{OTHER}\n", 2, 1),
        ("a.csv", f"句子;编号\n{ONE};1\n", 1, 1),
        ("a.tsv", f"source\ttarget\tlabel\n{OTHER}\t{ONE}\t0\n没有\t没有\t{ONE}\n", 2, 1),
        ("a.tsv", f"正确\t{ONE}\n正确\t{OTHER}\n", 2, 2),
        ("a.tsv", "他己经来了\t他已经来了\n", 1, 0),
    ],
)
def test_the_heading_of_a_table_is_no_row(name, text, rows, hits, tmp_path, capsys):
    """It says which columns are no texts; a first row without a known name is a row."""
    (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "b.csv").write_text(f"text\n{ONE}\n{OTHER}\n", "utf-8")
    assert run(cli, ["contamination", *(str(tmp_path / n) for n in (name, "b.csv")), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["rows"], report["hits"]) == (rows, hits)
    assert report["benchmarks"][0]["texts"] == 2


@pytest.mark.parametrize("name", sorted(FILES.keys() - {"b.json"}))
def test_a_row_that_cannot_be_read_is_named(name, tmp_path, capsys, monkeypatch):
    """A row that is too long is not compared; the command says so, whichever side it is on."""
    monkeypatch.setattr("cecdata.common.progress.command_runs", True)
    path, start = tmp_path / name, "S " * name.endswith("m2")
    for bad, reason in (("好".encode() * 1_800_000, "too_long)"), (b'"\xff"', "inv")):
        path.write_bytes(f"{FILES[name]}{start}".encode() + bad + b"\n")
        assert run(cli, ["contamination", str(path), str(path)]) == 0
        assert capsys.readouterr().err.count(f"{name}: rows not read completely: 1 ({reason}") == 2


def test_rows_that_cannot_be_read_are_counted_and_not_kept(tmp_path, monkeypatch):
    """After many of them, reading needs no more memory than after a few."""
    monkeypatch.setattr("cecdata.contamination.benchmarks._ROWS", 256)
    (tmp_path / "a.txt").write_bytes(b"\xff\n" * 8_000)
    tracemalloc.start()
    sizes = [tracemalloc.get_traced_memory()[0] for _ in read_row_texts(str(tmp_path / "a.txt"))]
    tracemalloc.stop()
    assert sizes[-2] - sizes[1] < 1 << 15


def test_every_column_of_a_table_is_compared(tmp_path, capsys, monkeypatch):
    """Columns of one name, and those beside nested ones; a bad or an enormous cell is named."""
    monkeypatch.setattr("cecdata.common.progress.command_runs", True)
    plain, nested = tmp_path / "a.parquet", tmp_path / "b.parquet"
    cells = [[ONE, "长" * 400_000], [OTHER, ONE], [b"\xff", ONE.encode()]]
    columns = [pa.array(c, pa.binary()).view(pa.string()) for c in cells]
    pq.write_table(pa.table(columns, ["a", "a", "b"]), plain)
    found = [text.to_pylist() for text, _, _ in read_row_texts(str(plain))]
    assert found == [[ONE, OTHER, "", "", ONE, ONE]]
    assert "not read completely: 2 (too_long)" in capsys.readouterr().err
    columns = [*columns[:2], pa.array([{"v": [ONE]}, {"v": []}])]
    pq.write_table(pa.table(columns, ["a", "a", "b"]), nested)
    found = [text.to_pylist() for text, _, _ in read_row_texts(str(nested))]
    assert found == [[ONE, OTHER, ONE, "", ONE]]


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A corpus with sentences of two benchmarks in it."""
    folder = tmp_path_factory.mktemp("planted")
    (folder / "bench").mkdir()
    pairs = [f"{text.replace('了', '子')}\t{text}\n" for text in SENTENCES[:20]]
    (folder / "bench/one.tsv").write_text("".join(pairs), "utf-8")
    (folder / "bench/two.txt").write_text("".join(f"{t}\n" for t in SENTENCES[30:40]), "utf-8")
    lines = [*SENTENCES[500:560], SENTENCES[3], wide(SENTENCES[4]), SENTENCES[35], SENTENCES[35]]
    (folder / "corpus.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return folder


def test_a_report_for_each_benchmark(planted, capsys, monkeypatch):
    """`cecdata contamination` counts distinct rows of the corpus for each benchmark; without names
    it takes $CECBENCH_DATA."""
    corpus, bench = str(planted / "corpus.txt"), str(planted / "bench/one.tsv")
    assert run(cli, ["contamination", corpus, bench, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["rows"], report["hits"]) == (64, 2)
    assert [(b["hits"], b["exact"], b["overlap"]) for b in report["benchmarks"]] == [(2, 2, 0)]
    (more := planted / "more/bench").mkdir(parents=True)  # a folder and a file of the same names
    (more / "two.txt").write_text(f"{SENTENCES[500]}\n", "utf-8")
    (more / "linked").symlink_to(planted / "real")
    (planted / "real").mkdir()
    (planted / "real/Three.TXT.gz").write_bytes(gzip.compress(f"{SENTENCES[501]}\n".encode()))
    monkeypatch.setenv("CECBENCH_DATA", f"{planted / 'bench'}{os.pathsep}{more}")
    assert run(cli, ["contamination", corpus, "--json"]) == 0
    hits = {b["name"]: b["hits"] for b in json.loads(capsys.readouterr().out)["benchmarks"]}
    assert hits.pop("bench/linked/Three.TXT.gz") == hits.pop("bench/two.txt (2)") == 1
    assert hits == {"bench/one.tsv": 2, "bench/two.txt": 2}


def test_a_build_leaves_the_sentences_of_benchmarks_out(planted, tmp_path, capsys):
    """`--decontaminate` rejects them with the benchmark's name, and the manifest counts them."""
    out = tmp_path / "out"
    words = ["build", str(planted / "corpus.txt"), "--filters", "levenshtein"]
    words += ["--decontaminate", str(planted / "bench"), "--out", str(out)]
    assert run(cli, words) == 0
    manifest = read_manifest(out)
    assert manifest.rows.rejected == {"contaminated": 4}
    assert manifest.extra["contaminated"] == {
        "bench/one.tsv has the same text": 2,
        "bench/two.txt has the same text": 2,
    }
    files = sorted((out / "rejects").glob("rows-*.parquet"))
    bad = [row for file in files for row in pq.read_table(file, schema=REJECTED_ROW).to_pylist()]
    assert [row["row"] for row in bad if row["reason"] == "contaminated"] == [61, 62, 63, 64]
    assert run(cli, ["verify", str(out)]) == 0
    capsys.readouterr()
    assert run(cli, ["contamination", str(out), str(planted / "bench"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hits"] == 0
    assert run(cli, ["contamination", str(planted / "corpus.txt"), str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hits"] == 60  # a dataset is a benchmark, too


def test_every_file_of_a_folder_is_a_benchmark(planted, tmp_path, capsys):
    """Whatever its suffix and wherever it lies, as ECSpell's law.test and a clone with a `data`."""
    rows = "".join(f"0\t{text}\t{text}\n" for text in SENTENCES[500:520])
    (folder := tmp_path / "clone").mkdir()
    (folder / "data").mkdir()
    (folder / "law.test").write_text(rows, "utf-8")
    (folder / "README").write_text("# The laws of ECSpell\n", "utf-8")
    (folder / "data/law.TRAIN").write_text(f"{SENTENCES[520]}\n", "utf-8")
    (folder / "data/dev.text.gz").write_bytes(gzip.compress(f"{SENTENCES[521]}\n".encode()))
    corpus = str(planted / "corpus.txt")
    assert run(cli, ["contamination", corpus, str(folder), "--json"]) == 0
    counted = {b["name"]: b["hits"] for b in json.loads(capsys.readouterr().out)["benchmarks"]}
    assert counted == {
        "clone/README": 0, "clone/data/dev.text.gz": 1, "clone/data/law.TRAIN": 1,
        "clone/law.test": 20,
    }  # fmt: skip
    words = ["build", corpus, "--filters", "levenshtein", "--decontaminate", str(folder)]
    assert run(cli, [*words, "--out", str(tmp_path / "out")]) == 0
    assert read_manifest(tmp_path / "out").rows.rejected["contaminated"] == 22
    (folder / "tests.zip").write_bytes(b"PK\x03\x04")
    assert run(cli, ["contamination", corpus, str(folder)]) == 1
    assert "tests.zip is compressed" in capsys.readouterr().err


NO_TEXT = {
    "empty.txt": None,
    "numbers.parquet": {"n": [1, 2]},
    "bytes.parquet": {"text": [text.encode() for text in SENTENCES[:3]]},
    "labels.parquet": {"type": SENTENCES[:3], "from": SENTENCES[:3]},
    "signs.parquet": {"text": ["……", "。"]},
}


@pytest.mark.parametrize("name", NO_TEXT)
def test_what_has_no_text_to_compare_is_refused(name, planted, tmp_path, capsys):
    """A benchmark, also one of a folder, and a corpus: the message has the name, and what counts
    as text."""
    path, corpus = tmp_path / "bench" / name, str(planted / "corpus.txt")
    path.parent.mkdir()
    shutil.copy(corpus, path.parent / "sound.txt")
    if NO_TEXT[name] is None:
        path.touch()
    else:
        pq.write_table(pa.table(NO_TEXT[name]), path)
    words = ["build", corpus, "--filters", "levenshtein", "--out", str(tmp_path / "out")]
    for tried in (
        ["contamination", corpus, str(path)], ["contamination", corpus, str(path.parent)],
        ["contamination", str(path), corpus], [*words, "--decontaminate", str(path)],
    ):  # fmt: skip
        if name == "signs.parquet" and tried[1] == str(path):
            continue  # rows of signs alone are in no benchmark
        if name == "empty.txt" and tried[2] == str(path.parent):
            assert run(cli, tried) == 0  # a clone has files without a byte
            continue
        assert run(cli, tried) == 1
        said = capsys.readouterr().err
        assert f"{name}: no text to compare" in said
        assert "bytes, numbers, and columns named author" in said
    assert not (tmp_path / "out/data").exists()


def test_tasks_share_one_index(planted):
    """Threads that ask for the same benchmarks at once read them once."""
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: load_index([str(planted / "bench/two.txt")]), range(4)))
    assert len(set(map(id, found))) == 1


def test_another_benchmark_is_another_build(planted, tmp_path, capsys):
    """A benchmark that changed between two runs of a build is refused, not mixed in."""
    bench = tmp_path / "one.tsv"
    shutil.copy(planted / "bench/one.tsv", bench)
    words = ["build", str(planted / "corpus.txt"), "--filters", "levenshtein", "--out"]
    words += [str(tmp_path / "out"), "--decontaminate", str(bench)]
    assert run(cli, words) == 0
    bench.write_text("完全不同的句子在这里。\n", "utf-8")
    assert run(cli, words) == 5
    assert "one.tsv" in capsys.readouterr().err


def test_missing_benchmarks_are_named(tmp_path, capsys, monkeypatch):
    """No benchmark at all, one that does not exist, and a folder without any are refused."""
    monkeypatch.delenv("CECBENCH_DATA", raising=False)
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("他的病情已经好转。\n", "utf-8")
    assert run(cli, ["contamination", str(corpus)]) == 2
    assert "CECBENCH_DATA" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    (tmp_path / "b.json").write_text("{", "utf-8")
    os.mkfifo(tmp_path / "pipe")  # it would be read twice
    bad = pa.ListArray.from_arrays([0, 1], pa.array([b"\xff"]).view(pa.string()))
    pq.write_table(pa.table({"texts": bad}), tmp_path / "bad.parquet")
    said = {"b.json": "not valid JSON", "bad.parquet": "the file is damaged", "empty": "no file"}
    for name, words in {**said, "no.txt": "there is no", "pipe": "there is no"}.items():
        assert run(cli, ["contamination", str(corpus), str(tmp_path / name)]) == 1
        assert f"{name}: {words}" in capsys.readouterr().err


FORMS = {
    "a.txt": f"{ONE}\n{OTHER}\n",
    "a.jsonl": "".join(json.dumps({"text": text}) + "\n" for text in (ONE, OTHER)),
    "a.json": json.dumps({"data": [{"text": ONE}, {"text": OTHER}]}),
    "lines.json": "".join(json.dumps({"text": text}) + "\n" for text in (ONE, OTHER)),
    "a.csv": f'id,text\n1,"{ONE}"\n2,{OTHER}\n',
    "semicolons.csv": f"text;id\n{ONE};1\n{OTHER};2\n",
    "a.tsv": f"text\tid\n{ONE}\t1\n{OTHER}\t2\n",
    "quoted.tsv": f'"text"\t"id"\n"{ONE}"\t"1"\n"{OTHER}"\t"2"\n',
    "long.csv": 'text,note\n"{}",{}\n{},\n'.format(ONE, "长" * 200_000, OTHER),
    "a.m2": "".join(
        f"S {' '.join('自' if sign in '他老' else sign for sign in text)}\n"
        f"A 0 1|||S|||{text[0]}|||REQUIRED|||-NONE-|||0\n\n"
        for text in (ONE, OTHER)
    ),
}


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("name", FORMS)
def test_every_command_reads_every_format(name, mark, tmp_path, capsys):
    """A pool, and both sides of a comparison, have the same texts, behind a byte order mark too."""
    (tmp_path / name).write_text(mark + FORMS[name], "utf-8")
    (tmp_path / "plain.txt").write_text(f"{ONE}\n{OTHER}\n", "utf-8")
    corpus, plain = str(tmp_path / name), str(tmp_path / "plain.txt")
    texts = [
        text for rows in read_corpus([corpus]) for text in rows.batch.column("text").to_pylist()
    ]
    assert texts == [ONE, OTHER]
    for one, other in ((corpus, plain), (plain, corpus)):
        assert run(cli, ["contamination", one, other, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["hits"] == 2
    assert run(cli, ["pool", corpus, "--out", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]["kept"] == 2
