"""lexicon.tsv: words of two to four characters, how often they occur, and how they are read.

The words and counts are those of jieba's dictionary, without words counted less than `LEAST_COUNT`
times (idioms `LEAST_IDIOM`, personal names `KNOWN_NAME`). The readings are pypinyin's, for a word
as a whole; the cell stays empty where every character has its usual reading. To rebuild this table
alone, from the folder that holds jieba-0.42.1.tar.gz::

    python tools/hanzi/table_lexicon.py wheels
"""

from __future__ import annotations

import hashlib
import re
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from pypinyin import Style, lazy_pinyin

from cecdata.hanzi.characters import TABLES, read_table

HEADER = ["word", "count", "syllables"]
SHORTEST, LONGEST = 2, 4
LEAST_COUNT, LEAST_IDIOM = 4, 3
IDIOMS = ("i", "l")
NAMES = ("nr", "nrt", "nrfg")
KNOWN_NAME = 200  # a name as frequent as this is a word to everybody (诸葛亮)


def rows(dictionary: str) -> list[list[str]]:
    """Return one row per word: 银行, 4110, "yin hang"."""
    sounds = {
        character: [entry.partition(":")[0][:-1] for entry in cells[0].split(" ")]
        for character, cells in read_table("readings").items()
    }
    return [[word, count, _syllables(word, sounds)] for word, count in _words(dictionary, sounds)]


def _words(dictionary: str, known: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    for line in dictionary.splitlines():
        word, count, part_of_speech = line.split(" ")
        if not SHORTEST <= len(word) <= LONGEST or not all(sign in known for sign in word):
            continue
        least = LEAST_IDIOM if part_of_speech in IDIOMS else LEAST_COUNT
        least = KNOWN_NAME if part_of_speech in NAMES else least
        if int(count) >= least:
            yield word, count


def _syllables(word: str, sounds: dict[str, list[str]]) -> str:
    usual = [sounds[sign][0] for sign in word]
    spoken = [_plain(name) for name in lazy_pinyin(word, style=Style.NORMAL)]
    found = [
        name if name in sounds[sign] else default
        for sign, name, default in zip(word, spoken, usual, strict=True)
    ]
    return " ".join(found) if found != usual else ""


def _plain(syllable: str) -> str:
    return syllable.replace("ü", "v")


def main() -> None:
    with tarfile.open(Path(sys.argv[1]) / "jieba-0.42.1.tar.gz") as archive:
        stream = archive.extractfile("jieba-0.42.1/jieba/dict.txt")
        assert stream is not None
        found = sorted(rows(stream.read().decode("utf-8")))
    text = "".join("\t".join(cells) + "\n" for cells in [HEADER, *found])
    (TABLES / "lexicon.tsv").write_text(text, encoding="utf-8", newline="\n")
    digest = hashlib.sha256(text.encode()).hexdigest()
    row = f"| lexicon.tsv | jieba, pypinyin | tools/hanzi/table_lexicon.py | {digest} |\n"
    sources = (TABLES / "SOURCES.md").read_text(encoding="utf-8")
    kept = re.sub(r"(?m)^\| lexicon\.tsv .*\n", "", sources)
    (TABLES / "SOURCES.md").write_text(kept.rstrip("\n") + "\n" + row, encoding="utf-8")
    print(f"lexicon.tsv: {len(found)} rows, {len(text.encode()):,} bytes")


if __name__ == "__main__":
    main()
