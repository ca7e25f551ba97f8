"""characters.tsv: level, strokes, radical, frequency, traditional and variant forms."""

from __future__ import annotations

import re
from collections import defaultdict

from inputs import Inputs
from structure import Structure

HEADER = ["char", "level", "strokes", "sequence", "radical", "kangxi", "frequency"]
HEADER += ["traditional", "variants"]
# Added to every count before scaling, so that no standard character has frequency 0.
SMOOTHING = 0.5
# The form a radical takes inside a character, where common fonts have it.
_INSIDE = {
    "人": "亻", "刀": "刂", "手": "扌", "水": "氵", "心": "忄", "犬": "犭", "艸": "艹", "示": "礻",
    "衣": "衤", "火": "灬", "邑": "阝", "阜": "阝", "辵": "辶", "网": "罒", "肉": "月", "玉": "王",
    "攴": "攵", "爪": "爫", "老": "耂", "襾": "覀", "卩": "㔾", "牛": "牜",
}  # fmt: skip
# Signs in sequences that stand for such a form.
_ALIKE = {"⺝": "月", "⺼": "月", "𤣩": "王", "氺": "氵", "⺗": "忄"}


def rows(inputs: Inputs, structure: Structure) -> list[list[str]]:
    """Return one row per standard character."""
    frequency = per_million(inputs)
    radicals = _radicals(inputs)
    traditional, variants = _forms(inputs)
    table = []
    for character, (level, strokes) in inputs.standard.items():
        sequence = structure.strokes(structure.tree(character))
        if len(sequence) != strokes:
            raise SystemExit(f"{character}: {strokes} strokes, but the sequence is {sequence!r}")
        radical, kangxi = radicals[character]
        radical = _as_written(radical, structure, character)
        row = [character, str(level), str(strokes), sequence, radical, kangxi]
        row += [f"{frequency[character]:.4g}", traditional[character], variants[character]]
        table.append(row)
    return table


def per_million(inputs: Inputs) -> dict[str, float]:
    """Return occurrences per million characters; a word's count goes to each of its characters."""
    counts = dict.fromkeys(inputs.standard, SMOOTHING)
    for word, count in inputs.word_counts:
        for character in word:
            if character in counts:
                counts[character] += count
    total = sum(counts.values())
    return {character: 1e6 * count / total for character, count in counts.items()}


def _radicals(inputs: Inputs) -> dict[str, tuple[str, str]]:
    """Return character → radical as a character (讠 for 请, as written there), Kangxi number."""
    rows = inputs.query("SELECT radical, radical_CJKUI FROM radicals")
    names = {row[0]: row[1] for row in rows}
    found = {}
    for character, values in inputs.unihan("kRSUnicode").items():
        radical = values[0].split(".")[0]
        found[character] = (names[radical], radical.rstrip("'"))
    return found


def _as_written(radical: str, structure: Structure, character: str) -> str:
    """Return the radical in the form it has in this character: 艹 for 芘, but 火 for 灯."""
    signs = {node.character for node in structure.tree(character).walk()}
    signs |= {_ALIKE.get(sign, sign) for sign in signs}
    inside = _INSIDE.get(radical, radical)
    return inside if inside in signs and radical not in signs else radical


def _forms(inputs: Inputs) -> tuple[dict[str, str], dict[str, str]]:
    """Return character → traditional forms and character → other variants, as sorted strings."""
    traditional: dict[str, set[str]] = defaultdict(set)
    variants: dict[str, set[str]] = defaultdict(set)
    rows = inputs.query("SELECT 规范字, 繁体字, 异体字 FROM tghb_variants")
    for character, old, variant in rows:
        (variants if old in ("", character) else traditional)[character].add(variant)
        traditional[character].update(re.findall(r"\w", old))
    for character, values in inputs.unihan("kTraditionalVariant").items():
        traditional[character].update(chr(int(value.removeprefix("U+"), 16)) for value in values)
    for character in inputs.standard:
        traditional[character].discard(character)
        variants[character] -= traditional[character] | {character}
    joined = [
        {character: "".join(sorted(forms[character])) for character in inputs.standard}
        for forms in (traditional, variants)
    ]
    return joined[0], joined[1]
