"""The generated tables: complete, and unchanged since they were built."""

from __future__ import annotations

import hashlib
import re
import unicodedata

import pytest

from cecdata.hanzi.characters import HAN_RANGES, TABLES, is_han, rows, standard_characters, table

NAMES = sorted(path.stem for path in TABLES.glob("*.tsv"))
PER_CHARACTER = ("characters", "readings", "ids", "drops", "shapes")


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


def test_han_ranges_are_the_ideographs_of_unicode():
    """What unicodedata calls an ideograph is Han, and no other letter is."""
    for point in range(0x110000):
        name = unicodedata.name(chr(point), "")
        if name.startswith(("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH")):
            assert is_han(point), hex(point)
        elif unicodedata.category(chr(point)) not in ("Cn", "Co", "Cs") and point != 0x3007:
            assert not is_han(point), hex(point)
    assert all(first <= last for first, last in HAN_RANGES)
