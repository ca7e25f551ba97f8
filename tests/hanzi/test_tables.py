"""The generated tables: complete, unchanged since they were built, small, quick to load."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import unicodedata

import pytest

from cecdata.hanzi.characters import HAN_RANGES, TABLES, is_han, rows, standard_characters, table

NAMES = sorted(path.stem for path in TABLES.glob("*.tsv"))
PER_CHARACTER = ("characters", "readings", "ids", "drops", "shapes")
OF_CHARACTERS = [name for name in NAMES if name != "lexicon"]
LOAD_LIMIT_S = 0.15


@pytest.mark.parametrize("name", NAMES)
def test_checksum(name):
    """A table is the one that SOURCES.md vouches for."""
    lines = (TABLES / "SOURCES.md").read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in lines if line.startswith(f"| {name}.tsv |")]
    assert line.split("|")[-2].strip() == hashlib.sha256(_bytes(name)).hexdigest()


def _bytes(name):
    return (TABLES / f"{name}.tsv").read_bytes()


def test_every_table_is_listed_with_its_script_and_inputs():
    """SOURCES.md names each table once, a script that exists, and inputs that it lists."""
    text = (TABLES / "SOURCES.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| (\w+)\.tsv \|", text, re.MULTILINE)) == NAMES
    root = TABLES.parents[2]
    scripts = re.findall(r"\| (tools/hanzi/\w+\.py) \|", text)
    assert len(scripts) == len(NAMES)
    assert all((root / script).is_file() for script in scripts)
    for notice in re.findall(r"\(LICENSES/(\S+)\)", text):
        assert (TABLES / "LICENSES" / notice).stat().st_size > 500


@pytest.mark.parametrize("name", PER_CHARACTER)
def test_coverage(name):
    """Every standard character has a row, and no character has two."""
    assert set(standard_characters()) <= set(table(name))
    assert len(table(name)) == len(rows(name))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "clusters"])
def test_order_and_shape(name):
    """Rows stand by code point and have as many cells as the header line."""
    header = _bytes(name).decode().split("\n")[0].split("\t")
    found = rows(name)
    assert [row[0] for row in found] == sorted(row[0] for row in found)
    assert {len(row) for row in found} == {len(header)}


@pytest.mark.parametrize("name", NAMES)
def test_no_private_or_unassigned_code_points(name):
    """Every sign of a table is one that a font can hold: assigned, public, no replacement."""
    signs = set(_bytes(name).decode()) - {"\n", "\t"}
    odd = {sign for sign in signs if unicodedata.category(sign) in ("Co", "Cs", "Cc")}
    # Characters newer than this Python's Unicode data are unassigned to it, but known as Han.
    odd |= {s for s in signs if unicodedata.category(s) == "Cn" and not _newer(s)}
    assert odd | ({"□", "\ufffd"} & signs) == set()


def _newer(sign):
    return is_han(ord(sign)) or 0x2FF0 <= ord(sign) <= 0x2FFF or ord(sign) == 0x31EF


def test_size():
    """The tables of characters stay within 3 MB, the lexicon within 2.5 MB."""
    assert sum(len(_bytes(name)) for name in OF_CHARACTERS) <= 3_000_000
    assert len(_bytes("lexicon")) <= 2_500_000


def test_loading_time():
    """All tables of characters load within 150 ms of CPU in a fresh interpreter (best of three)."""
    code = (
        "import time, cecdata.hanzi.characters as d, cecdata.hanzi.characters as c;"
        "start = time.process_time();"
        f"[d.table(n) if n != 'splits' else d.rows(n) for n in {OF_CHARACTERS!r}];"
        "print(time.process_time() - start)"
    )
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, check=True) for _ in range(3)]
    assert min(float(run.stdout) for run in runs) < LOAD_LIMIT_S


def test_han_ranges_are_the_ideographs_of_unicode():
    """What unicodedata calls an ideograph is Han, and no other letter is."""
    for point in range(0x110000):
        name = unicodedata.name(chr(point), "")
        if name.startswith(("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH")):
            assert is_han(point), hex(point)
        elif unicodedata.category(chr(point)) not in ("Cn", "Co", "Cs") and point != 0x3007:
            assert not is_han(point), hex(point)
    assert all(first <= last for first, last in HAN_RANGES)
