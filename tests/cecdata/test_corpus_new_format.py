"""A corpus format is added by touching the files that CONTRIBUTING.md names, and no others."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOY = '''"""Records that a blank line ends; the first line of a record is its text."""

from collections.abc import Iterator

import pyarrow as pa

from cecdata.corpus.lines import blocks, numbers
from cecdata.corpus.rows import Format, Rows, gather
from cecdata.corpus.sources import Columns, Source, opened


def _read(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """Yield the texts of the records of a file."""
    texts = [record.partition(b"\\n")[0] for record in _records(source)]
    yield gather(source, pa.array(texts, pa.binary()), None, numbers(1, len(texts)))


def _values(source: Source) -> Iterator[list[str]]:
    """Yield all lines of each record."""
    return (record.decode("utf-8", "replace").split("\\n") for record in _records(source))


def _records(source: Source) -> list[bytes]:
    with opened(source) as stream:
        data = b"".join(block.data for block in blocks(stream, source))
    return [record for record in data.split(b"\\n\\n") if record.strip()]


FORMAT = Format(_read, _values, (".toy",), columns=False)
'''
TABLE = "cecdata/corpus/formats/__init__.py"
NEW = "cecdata/corpus/formats/toy.py"
FUZZ = "tests/fuzz/fuzz_corpus.py"
EDITS = {
    "m2, parquet, text\n": "m2, parquet, text, toy\n",
    '    "text": text.FORMAT,\n': '    "text": text.FORMAT,\n    "toy": toy.FORMAT,\n',
}
USE = """
from cecdata.cli import cli
from cecdata.common.command_group import run

for words in (["a.toy"], ["a.toy.gz"], ["a.x", "--format", "toy"], ["-", "--format", "toy"]):
    assert run(cli, ["build", *words, "--dry-run", "--out", "out"]) == 0, words
assert run(cli, ["build", "a.toy", "--dry-run", "--out", "out", "--text-column", "x"]) == 1
assert run(cli, ["build", "a.toy", "--format", "tyo", "--dry-run", "--out", "out"]) == 2
"""


def test_a_format_is_one_file_and_one_entry(tmp_path):
    """A toy format is then read by its suffix, compressed, by `--format` and through a pipe."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    recipe = next(p for p in text.split("\n\n") if p.startswith("**A corpus format**"))
    named = set(re.findall(r"`((?:cecdata|tests)/[^`]+)`", recipe))
    assert named == {NEW.replace("toy", "NAME"), TABLE, FUZZ}
    shutil.copytree(ROOT / "cecdata", tmp_path / "cecdata")
    (tmp_path / NEW).write_text(TOY, encoding="utf-8")
    table = (tmp_path / TABLE).read_text("utf-8")
    for old, new in EDITS.items():
        assert table.count(old) == 1
        table = table.replace(old, new)
    (tmp_path / TABLE).write_text(table, encoding="utf-8")
    data = "他的病情已经好转。\n第一篇\n\n明天就可以出院了。\n第二篇\n".encode()
    for name, content in (("a.toy", data), ("a.toy.gz", gzip.compress(data)), ("a.x", data)):
        (tmp_path / name).write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        input=data,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert re.findall(r"^sentences +(\d+)$", done.stdout.decode(), re.MULTILINE) == ["2"] * 4
    assert "available: " in done.stderr.decode()
