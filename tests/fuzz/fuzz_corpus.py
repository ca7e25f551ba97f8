"""Readers of a corpus: text, delimited, JSON lines, Parquet, archives, lists."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import json
import lzma
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_case import PAGE, Reader
from fuzz_mutate import Mutator

# Written for these cases.
SENTENCES = (
    "他的病情已经好转，明天就能出院。", "我们在公园里散步，天气很好。",
    "合同第三条规定：双方应在十日内付款。", "𠀀字很少见，Ａ是全角，👍🏽是表情。",
    "这句话里有\"引号\"、'撇号'和\\反斜线。", "e\u0301 是组合字符，\u3000这里有空白。",
)  # fmt: skip


def readers() -> tuple[Reader, ...]:
    """One a format; each hands out the texts it kept and those it rejected."""
    return (
        Reader("corpus-txt", "a.txt", _read, Mutator(_txt, "text")),
        Reader("corpus-csv", "a.csv", _read, Mutator(lambda: _csv(","), "lines")),
        Reader("corpus-tsv", "a.tsv", _read, Mutator(lambda: _csv("\t"), "lines")),
        Reader("corpus-jsonl", "a.jsonl", _read, Mutator(_jsonl, "json")),
        Reader("corpus-json", "a.json", _read, Mutator(_json, "json")),
        Reader("corpus-m2", "a.m2", _read, Mutator(_m2, "lines")),
        Reader("corpus-parquet", "a.parquet", _read, Mutator(_parquet, "binary"),
               memory=PAGE),
        Reader("corpus-gz", "a.txt.gz", _read,
               Mutator(lambda: _packed(partial(gzip.compress, mtime=0)), "binary")),
        Reader("corpus-bz2", "a.txt.bz2", _read, Mutator(lambda: _packed(bz2.compress), "binary")),
        Reader("corpus-xz", "a.txt.xz", _read, Mutator(lambda: _packed(lzma.compress), "binary")),
        Reader("corpus-zst", "a.txt.zst", _read, Mutator(
            lambda: _packed(partial(pa.compress, codec="zstd", asbytes=True)), "binary")),
        Reader("audit-pairs", "a.tsv", _audited, Mutator(lambda: _csv("\t"), "lines")),
    )  # fmt: skip


def _read(path: Path) -> Iterable[str]:
    from cecdata.corpus.reading import read_corpus

    for rows in read_corpus([str(path)]):
        for batch in (rows.batch, rows.rejected):
            batch.validate(full=True)
            yield from batch.column("text").to_pylist()
            yield from batch.column("origin").to_pylist()
        yield from rows.rejected.column("detail").to_pylist()


def _audited(path: Path) -> Iterable[str]:
    from cecdata.audit import read_errors

    found = read_errors(path)
    assert found.wrong_pairs <= found.pairs
    return [a + b for a, b in found.substitutions]


def _txt() -> tuple[bytes, ...]:
    text = "\n".join(SENTENCES) + "\n"
    return (
        text.encode(),
        ("\ufeff" + text).encode(),
        text.replace("\n", "\r\n").encode(),
        text.replace("\n", "\r").encode(),
        text.encode("gb18030"),
        text.encode("utf-16"),
        text.encode("big5", "ignore"),
        b"",
        b"\n\n\n",
    )


def _csv(mark: str) -> tuple[bytes, ...]:
    rows = [f"{a}{mark}{b}" for a, b in itertools.pairwise(SENTENCES)]
    head = f"text{mark}origin"
    quoted = f'"他说：""好"",\n走了"{mark}甲'
    return (
        "\n".join([head, *rows]).encode(),
        "\r\n".join([head, quoted, *rows]).encode(),
        f"{head}\n{mark}\n".encode(),
        f"句子{mark}text{mark}text\na{mark}b{mark}c\n".encode(),
        f"他己经来了{mark}他已经来了\n我门{mark}我们\n典字{mark}字典\n".encode(),
    )


def _jsonl() -> tuple[bytes, ...]:
    rows = [{"text": s, "origin": "甲", "n": n} for n, s in enumerate(SENTENCES)]
    plain = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return (
        plain.encode(),
        (plain + "\n\n[1]\n{}\n").encode(),
        "\n".join(json.dumps({"text": s, "meta": {"a": [1, None]}}) for s in SENTENCES).encode(),
        b'{"text": "\\ud83d\\udc4d"}\n{"text": 5}\n{"text": "a"}{"text": "b"}\n',
    )


def _json() -> tuple[bytes, ...]:
    rows = [{"text": s, "origin": "甲"} for s in SENTENCES]
    values = (rows, {"data": rows}, list(SENTENCES), rows[0], [*rows, 5, None], "句子")
    return (*(json.dumps(value).encode() for value in values), *_jsonl()[:1])


def _m2() -> tuple[bytes, ...]:
    blocks = [
        f"S {' '.join(s)}\nA 0 1|||S|||{s[1]}|||REQUIRED|||-NONE-|||0\nA 2 3|||R||||||a|||b|||1\n"
        for s in SENTENCES
    ]
    targets = [f"S {' '.join(s)}\nT0-A0 {' '.join(reversed(s))}\n" for s in SENTENCES]
    return ("\n".join(blocks).encode(), "\n".join(targets).encode(), b"A 0 1|||S|||\n\nS\n")


def _parquet() -> tuple[bytes, ...]:
    origins = ["甲", None, "乙"] * 6
    table = pa.table({"text": list(SENTENCES) * 3, "origin": origins, "n": range(18)})
    coded = table.set_column(0, "text", table.column("text").dictionary_encode())
    options: tuple[dict[str, object], ...] = (
        {"compression": "none"},
        {"compression": "zstd", "use_dictionary": False, "row_group_size": 5},
        {"compression": "snappy", "data_page_version": "2.0", "write_page_checksum": True},
    )
    found = []
    for each in (table, coded):
        for option in options:
            sink = io.BytesIO()
            pq.write_table(each, sink, **option)
            found.append(sink.getvalue())
    return tuple(found)


def _packed(pack: Callable[[bytes], bytes]) -> tuple[bytes, ...]:
    text = "\n".join(SENTENCES).encode()
    return (pack(text), pack(text) + pack(text), pack(b""), pack(text * 40))
