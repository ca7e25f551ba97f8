"""Benchmarks: readers of every form, the search for files, and downloads from a real server."""

import csv
import hashlib
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cecbench.benchmarks import catalogue, readers
from cecbench.benchmarks.readers import Example
from cecdata.audit import read_pairs
from cecdata.common.errors import InputError, UsageError, VerificationError
from cecdata.corpus.pairs import NAMES
from cecdata.shards.schema import PAIR

PAIRS = [("他己经来了。", "他已经来了。"), ("天气很好。", "天气很好。")]


@pytest.fixture(autouse=True)
def nothing_else(tmp_path, monkeypatch):
    """Hide this machine's own cache and data from the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(catalogue.ENVIRONMENT, raising=False)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def pairs_of(rows):
    return [(row.source, row.target) for row in rows]


FORMS = {
    "two.tsv": "".join(f"{s}\t{r}\n" for s, r in PAIRS),
    "cscd.tsv": "".join(f"{int(s != r)}\t{s}\t{r}\n" for s, r in PAIRS),
    "ids.tsv": "".join(f"a{n}\t{s}\t{r}\n" for n, (s, r) in enumerate(PAIRS)),
    "four.tsv": "".join(f"a{n}\t{s}\t{r}\t{s}\n" for n, (s, r) in enumerate(PAIRS)),
    "chinese.tsv": "改正\t编号\t原文\n" + "".join(f"{r}\t{s}x\t{s}\n" for s, r in PAIRS),
    "header.tsv": "target\tid\tsource\n" + "".join(f"{r}\t{s}x\t{s}\n" for s, r in PAIRS),
    "bom.tsv": "\ufeff" + "".join(f"{s}\t{r}\r\n" for s, r in PAIRS),
    "cr.tsv": "".join(f"{s}\t{r}\r" for s, r in PAIRS),
    "rows.jsonl": "".join(json.dumps({"src": s, "tgt": r}) + "\n" for s, r in PAIRS),
    "py.json": json.dumps(
        [
            {"id": n, "original_text": s, "wrong_ids": [], "correct_text": r}
            for n, (s, r) in enumerate(PAIRS)
        ]
    ),
    "quoted.tsv": '"source"\t"target"\n' + "".join(f'"{s}"\t"{r}"\n' for s, r in PAIRS),
    "rows.csv": "id,source,target\n" + "".join(f"{n},{s},{r}\n" for n, (s, r) in enumerate(PAIRS)),
    "semicolons.csv": "sep=;\n" + "".join(f"{s};{r}\n" for s, r in PAIRS),
    "blank_end.tsv": "".join(f"{s}\t{r}\n" for s, r in PAIRS) + "\n  \n",
    "lines.txt": "".join(json.dumps({"source": s, "target": r}) + "\n" for s, r in PAIRS),
    "lines.json": "".join(json.dumps({"source": s, "target": r}) + "\n" for s, r in PAIRS),
    "list.jsonl": json.dumps([{"source": s, "target": r} for s, r in PAIRS]),
    "edits.m2": (
        "S 他 己 经 来 了 。\nT0-A0 他 已 经 来 了 。\nA 1 2|||S|||已|||REQUIRED|||-NONE-|||0\n"
        "A 0 1|||S|||她|||REQUIRED|||-NONE-|||1\n\nS 天 气 很 好 。\nT0 没有错误\n"
        "A -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||0\n"
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_file_of_ones_own_is_read_in_every_form(tmp_path, name):
    """Every form gives the same pairs; the suffix and the first line decide which form it is."""
    dataset = catalogue.load_benchmark(str(write(tmp_path / name, FORMS[name])))
    assert pairs_of(dataset.rows) == PAIRS
    assert name == "four.tsv" or list(read_pairs(tmp_path / name)) == PAIRS
    assert dataset.sha256 == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()


SAID = '他说："明天见。"'
QUOTED = SAID.replace('"', '""')


@pytest.mark.parametrize(
    ("name", "text", "pairs"),
    [
        ("pandas.tsv", f'"{QUOTED}"\t"{QUOTED}"\n好\t好\n', [(SAID, SAID), ("好", "好")]),
        ("excel.csv", f'"{QUOTED}",好\r\n"一,二","一,二"\r\n', [(SAID, "好"), ("一,二", "一,二")]),
        ("all.tsv", '"好"\t"好"\n"天"\t"天"\n', [("好", "好"), ("天", "天")]),
        ("plain.tsv", f"{SAID}\t{SAID}\n好\t好\n", [(SAID, SAID), ("好", "好")]),
        ("own_quotes.tsv", '"好"\t"好"\n天\t天\n', [('"好"', '"好"'), ("天", "天")]),
        ("lone_quote.tsv", '"好\t好\n天\t天\n', [('"好', "好"), ("天", "天")]),
        ("line_end.tsv", '"一\n二"\t"一\n二"\n好\t好\n', [("一\n二", "一\n二"), ("好", "好")]),
    ],
)
def test_quoted_cells_are_read_where_a_csv_writer_made_them(tmp_path, name, text, pairs):
    """Cells are unquoted where each quotation mark is one that a CSV writer sets; else it stays."""
    assert pairs_of(catalogue.load_benchmark(str(write(tmp_path / name, text))).rows) == pairs


def test_what_excel_calls_unicode_text_is_read(tmp_path):
    """UTF-16 with a byte order mark is read, as Excel writes it."""
    path = tmp_path / "a.txt"
    path.write_bytes("".join(f"{s}\t{r}\r\n" for s, r in PAIRS).encode("utf-16"))
    assert pairs_of(catalogue.load_benchmark(str(path)).rows) == PAIRS


def test_edits_of_m2_are_made_in_their_order(tmp_path):
    """Two insertions at one position keep the file's order; two words in letters are parted, as in
    a corpus; edits that overlap are refused.
    """
    edit = "A {}|||M|||{}|||REQUIRED|||-NONE-|||0\n"
    inserted = edit.format("1 1", "已") + edit.format("1 1", "经")
    text = "S 他 来 Word 2016\n" + inserted + edit.format("1 2", "去")
    (row,) = catalogue.load_benchmark(str(write(tmp_path / "a.m2", text))).rows
    assert (row.source, row.target) == ("他来Word 2016", "他已经去Word 2016")
    both = "S 他 来\n" + edit.format("0 2", "我") + edit.format("1 2", "去")
    for bad in (both, "S 他\n" + edit.format("0 5", "我")):
        with pytest.raises(InputError, match=r"line \d has an overlapping or impossible span"):
            catalogue.load_benchmark(str(write(tmp_path / "b.m2", bad)))
    wide = write(tmp_path / "d.m2", "S \u3000 他 来\n" + edit.format("1 2", "我"))
    assert (
        catalogue.load_benchmark(str(wide)).rows[0].target == "\u3000我来"
    )  # a token, as any other


@pytest.mark.parametrize(
    "ids", [["1", "2", "3"], ["0", "1", "10"], ["0", "a", "1"], [str(n) for n in range(12)]]
)
def test_ids_that_begin_with_0_or_1_are_ids(tmp_path, ids):
    """The first of three columns is a label if its values are 0 and 1, or digits that recur."""
    text = "".join(f"{name}\t第{name}句\t第{name}句\n" for name in ids)
    rows = catalogue.load_benchmark(str(write(tmp_path / "ids.tsv", text))).rows
    assert [row.id for row in rows] == ids


@pytest.mark.parametrize("labels", ["01", "0120", "1100"])
def test_a_number_of_errors_is_no_id(tmp_path, labels):
    """As in ECSpell's files, whose first column counts the errors of a row."""
    text = "".join(f"{label}\t第{n}句\t第{n}句\n" for n, label in enumerate(labels))
    rows = catalogue.load_benchmark(str(write(tmp_path / "ids.tsv", text))).rows
    assert [row.id for row in rows] == [f"ids-{n}" for n in range(1, len(labels) + 1)]


def test_the_column_origin_is_provenance_and_not_the_source(tmp_path, monkeypatch):
    """A column `origin` names the corpus; to Arrow, a relative name with a colon is an address."""
    monkeypatch.chdir(tmp_path)
    record = {"text": PAIRS[0][0], "target": PAIRS[0][1], "origin": "news"}
    jsonl = write(tmp_path / "a.jsonl", json.dumps(record) + "\n")
    pq.write_table(pa.Table.from_pylist([record]), tmp_path / "s3:a.parquet")
    for path in (jsonl, "s3:a.parquet"):
        assert pairs_of(catalogue.load_benchmark(str(path)).rows) == PAIRS[:1]
        assert list(read_pairs(tmp_path / path)) == PAIRS[:1]


def test_parallel_files_belong_together_line_by_line(tmp_path):
    """A line that is blank in both files is skipped; blank in only one file, it is an error."""
    wrong = write(tmp_path / "wrong.txt", "己\n\n好\n")
    right = write(tmp_path / "right.txt", "已\n\n好\n\n")
    rows = list(readers.read_parallel((wrong, right), "s"))
    assert [(row.id, row.source, row.target) for row in rows] == [
        ("s-1", "己", "已"),
        ("s-3", "好", "好"),
    ]
    shifted = write(tmp_path / "shifted.txt", "已\n好\n好\n")
    with pytest.raises(InputError, match=r"line 2 is blank in .*wrong\.txt"):
        list(readers.read_parallel((wrong, shifted), "s"))


def test_parquet_and_the_shards_validation_split_are_read(tmp_path):
    """A dataset gives its validation split, marked as synthetic, with (id, copy) as ids."""
    columns = {"source": [s for s, _ in PAIRS], "target": [r for _, r in PAIRS]}
    pq.write_table(pa.table(columns), tmp_path / "own.parquet")
    assert pairs_of(catalogue.load_benchmark(str(tmp_path / "own.parquet")).rows) == PAIRS
    rows = [
        {
            "id": 7, "copy": copy, "source": s, "target": r, "operator": "mixed", "edits": [],
            "distance": 0, "cosine": None, "origin": "sample",
        }
        for copy, (s, r) in enumerate(PAIRS)
    ]  # fmt: skip
    folder = tmp_path / "data"
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(rows, PAIR), folder / "validation-00000-of-00001.parquet")
    dataset = catalogue.load_benchmark(str(tmp_path))
    assert (dataset.name, dataset.synthetic) == ("synthetic-validation", True)
    assert [row.id for row in dataset.rows] == ["7-0", "7-1"]


def test_lemon_and_sighan_forms(tmp_path):
    """Readers drop LEMON's spaces, apply SIGHAN's positions from 1, and join parallel files."""
    spaced = write(tmp_path / "car.txt", "他 己 经\t他 已 经\n")
    assert list(readers.read_lemon((spaced,), "car")) == [Example("car-1", "他己经", "他已经")]
    given_text = write(tmp_path / "in.txt", "(pid=A2-1)\t他己經來\n(pid=A2-2)\t\u3000她\n")
    truth = write(tmp_path / "truth.txt", "A2-1, 2, 已, 4, 去\nA2-2, 2, 他\n")
    rows = list(readers.read_sighan_truth((given_text, truth), ""))
    assert [(r.id, r.target) for r in rows] == [("A2-1", "他已經去"), ("A2-2", "\u3000他")]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.tsv", "好\t好\n好\n", "line 2 has 1 columns"),
        ("a.tsv", "一\t二\t三\t四\t五\n", "5 columns"),
        ("a.tsv", "x\t好\t好\nx\t坏\t坏\n", "'x' occurs twice"),
        ("a.tsv", "", "has no rows"),
        ("a.tsv", "\t好\n", "empty source"),
        ("a.tsv", "己\t已\t\n", "empty target"),
        ("a.csv", "sep=;\n己;已\n好\n", "line 3 has 1 columns"),
        ("a.jsonl", '{"source": "好"\n', "line 1 is not JSON"),
        ("a.jsonl", '{"source": "好"}\n', "needs a text under one of the keys reference"),
        ("a.json", '["好"]', "record 1 must be an object, not a str"),
        ("a.m2", "好\n", "must begin with S, A or T"),
        ("a.parquet", "no parquet", "not a parquet file"),
        ("a.doc", "好", "must have one of the suffixes"),
    ],
)
def test_a_bad_file_is_named_with_its_line(tmp_path, name, text, says):
    """The message for a bad file says what is wrong, and in which line."""
    with pytest.raises(InputError, match=says):
        catalogue.load_benchmark(str(write(tmp_path / name, text)))


def test_bytes_that_are_not_utf8_are_named(tmp_path):
    """A file in another encoding is refused; the message has the byte's place in the file, however
    far down it is, and says how to convert it."""
    path = tmp_path / "gbk.tsv"
    path.write_bytes("好\t好\n".encode() * 300_000 + "好\t好\n".encode("gb18030"))
    with pytest.raises(InputError, match=r"at byte 2400000\).*iconv"):
        catalogue.load_benchmark(str(path))


text_cells = st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters='\t\r\n\ufeff"'), min_size=1
).filter(lambda s: s.strip() and s not in "01" and s.lower() not in NAMES["source"])


@given(st.lists(st.tuples(text_cells, text_cells), min_size=1, max_size=5))
@example([("3", " 0")])  # a space behind the tab, as a comma may have one
def test_two_columns_come_back_as_they_were_written(tmp_path_factory, pairs):
    """A reader keeps all characters: full width, emoji, combining marks, line separators.

    Quotation marks have tests of their own: of some texts nobody can say what they were.
    """
    path = tmp_path_factory.mktemp("own") / "own.tsv"
    path.write_bytes("".join(f"{s}\t{r}\n" for s, r in pairs).encode())
    assert pairs_of(readers.read_table((path,), "own")) == pairs


@given(st.lists(st.tuples(text_cells, text_cells), min_size=1, max_size=5), st.booleans())
def test_what_a_csv_writer_writes_comes_back(tmp_path_factory, pairs, everywhere):
    """Texts with quotation marks come back as Python's own writer was given them."""
    pairs = [(f'{s}"', f'"{r}') for s, r in pairs]
    path = tmp_path_factory.mktemp("own") / "own.tsv"
    with path.open("w", encoding="utf-8", newline="") as file:
        quoting = csv.QUOTE_ALL if everywhere else csv.QUOTE_MINIMAL
        csv.writer(file, delimiter="\t", quoting=quoting).writerows(pairs)
    assert pairs_of(readers.read_table((path,), "own")) == pairs


def test_every_entry_can_be_read_and_says_where_it_comes_from():
    """Each entry has a reader, a licence, a citation and a homepage; digests have 64 hex digits."""
    for name, entry in catalogue.read_catalogue().items():
        assert entry.name == name
        assert entry.licence
        assert entry.citation
        assert entry.homepage
        for copy in entry.releases:
            assert copy.reader in readers.READERS
            for file in copy.files:
                assert file.sha256 is None or len(bytes.fromhex(file.sha256)) == 32
                assert file.url is None or file.url.startswith("https://")


def test_the_catalogue_agrees_with_the_table_of_known_files(cec_shared):
    """The catalogue has the published digest, path, commit and rows of each known file."""
    known = (cec_shared / "benchmarks.tsv").read_text(encoding="utf-8").splitlines()[1:]
    files = {
        (f.url, f.sha256, entry.rows)
        for entry in catalogue.read_catalogue().values()
        for copy in entry.releases
        for f in copy.files
    }
    for line in known:
        _, repository, path, commit, sha256, _, rows, _ = line.split("\t")
        url = f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"
        assert (url, sha256, int(rows)) in files


@pytest.mark.parametrize(
    ("name", "rows", "equal"),
    [("car", 3410, 3245), ("cot", 1026, 993), ("gam", 400, 393), ("mec", 2090, 1942)],
)
def test_lemon_is_read_as_its_own_script_reads_it(cec_shared, monkeypatch, name, rows, equal):
    """The numbers of rows and of rows of equal length are those that LEMON's script counts."""
    monkeypatch.setenv(catalogue.ENVIRONMENT, f"{cec_shared}/bench")
    read = catalogue.load_benchmark(f"lemon/{name}").rows
    assert len(read) == rows
    assert sum(len(row.source) == len(row.target) for row in read) == equal


def test_what_is_missing_says_what_to_place_where(tmp_path):
    """The error for a missing benchmark names its files and the folders; the one for an unknown
    name names the nearest.
    """
    with pytest.raises(InputError, match=r"curl -L --create-dirs -o \S+lemon_v2/nov\.txt https"):
        catalogue.load_benchmark("lemon/nov", tmp_path)
    with pytest.raises(InputError, match=r"cs/test\.jsonl"):
        catalogue.load_benchmark("cs")
    with pytest.raises(UsageError, match="did you mean 'lemon/nov'"):
        catalogue.load_benchmark("lemon/nof")


def test_data_goes_before_the_environment_before_the_cache(tmp_path, monkeypatch):
    """The search goes through --data, then $CECBENCH_DATA, then the cache."""
    places = [tmp_path / "data", tmp_path / "environment", catalogue.cache_folder()]
    monkeypatch.setenv(catalogue.ENVIRONMENT, str(places[1]))
    for number, place in reversed(list(enumerate(places))):
        write(place / "cs" / "test.tsv", f"第{number}\t第{number}\n")
        assert catalogue.load_benchmark("cs", places[0]).rows[0].source == f"第{number}"


def test_another_file_than_the_published_one_is_refused(tmp_path):
    """A file with a published name and other bytes is refused."""
    write(tmp_path / "lemon_v2" / "car.txt", "好\t好\n")
    with pytest.raises(VerificationError, match="not the published file"):
        catalogue.load_benchmark("lemon/car", tmp_path)
