"""splits.tsv: characters written as their parts, as people do: 误 言吴, 章 立早, 超 走召.

A part that is not a character itself is written as the character people call it (讠 言, 阝 耳).
Weights depend on the direction (beside > above > around), on how usual that name is, and on the
rarity of the parts.
"""

from __future__ import annotations

from dataclasses import dataclass

import ids
from inputs import Inputs
from structure import Structure

HEADER = ["char", "parts", "kind", "weight"]
# Component → the standard character people write for it, and how natural that is.
STAND_INS = {
    "讠": ("言", 1.0), "饣": ("食", 0.9), "钅": ("金", 1.0), "纟": ("丝", 0.7), "亻": ("人", 0.9),
    "扌": ("手", 0.8), "氵": ("水", 0.7), "忄": ("心", 0.7), "犭": ("犬", 0.5), "艹": ("草", 0.6),
    "礻": ("示", 0.7), "衤": ("衣", 0.7), "刂": ("刀", 0.7), "灬": ("火", 0.5), "牜": ("牛", 1.0),
    "𧾷": ("足", 1.0), "𥫗": ("竹", 0.8), "𤣩": ("王", 1.0), "⺝": ("月", 1.0), "罒": ("四", 0.9),
    "覀": ("西", 0.9), "爫": ("爪", 0.5), "氺": ("水", 0.7), "⺊": ("卜", 0.9), "𠆢": ("人", 0.9),
    "⺶": ("羊", 0.7), "𦍌": ("羊", 0.7), "阝": ("耳", 0.6), "攵": ("文", 0.5), "耂": ("老", 0.6),
    "龵": ("手", 0.8), "龶": ("主", 0.5), "⺗": ("心", 0.5), "虍": ("虎", 0.5), "釒": ("金", 0.8),
    "糹": ("丝", 0.5), "訁": ("言", 0.8), "飠": ("食", 0.7), "⺌": ("小", 0.9), "𡭔": ("小", 1.0),
    "囗": ("口", 0.6), "⺼": ("月", 0.9), "𰀁": ("丰", 0.2),
}  # fmt: skip
# Common ways to name a character's parts that no sequence gives.
CUSTOM = {
    "卡": "上下", "会": "人云", "金": "人王", "看": "手目", "拜": "手手", "票": "西示",
    "劣": "少力", "斌": "文武", "掰": "手分手", "哥": "可可", "替": "夫夫日", "甥": "生男",
    "董": "草千里", "裴": "非衣", "魏": "委鬼", "赵": "走叉", "查": "木旦", "曹": "曲日",
}  # fmt: skip
DIRECTION = {"⿰": 1.0, "⿲": 0.8, "⿱": 0.7, "⿳": 0.4, "⿺": 0.45, "⿵": 0.25, "⿸": 0.25,
             "⿹": 0.2, "⿷": 0.2, "⿶": 0.2, "⿴": 0.2, "⿼": 0.1, "⿽": 0.1}  # fmt: skip
KINDS = {"⿰": "lr", "⿲": "lr", "⿱": "tb", "⿳": "tb"}
LEVELS = {1: 1.0, 2: 0.55, 3: 0.25}
RUNS_ON = {"走", "鬼", "麦", "风", "是", "毛", "瓜", "支", "尤"}  # left parts with a long foot
FOOT = 0.85  # direction weight of such a part, which reads almost like a left one
OPENED = 0.5  # factor for opening one of two parts into two of its own
CUSTOM_WEIGHT = 0.75
LEAST = 0.05


@dataclass(frozen=True, slots=True)
class Written:
    """Parts as written, the kind, and the weight."""

    parts: str
    kind: str
    weight: float


def rows(inputs: Inputs, structure: Structure) -> list[list[str]]:
    """Return one row per split; characters that have none are left out."""
    table = []
    for character in inputs.standard:
        best: dict[str, Written] = {}
        for split in _candidates(character, inputs, structure):
            if split.weight > best.get(split.parts, split).weight or split.parts not in best:
                best[split.parts] = split
        for split in sorted(best.values(), key=lambda item: (-item.weight, item.parts)):
            if split.weight >= LEAST:
                row = [character, split.parts, split.kind, f"{split.weight:.2f}"]
                table.append(row)
    return table


def _candidates(character: str, inputs: Inputs, structure: Structure) -> list[Written]:
    found = []
    if character in CUSTOM and all(part in inputs.standard for part in CUSTOM[character]):
        found.append(Written(CUSTOM[character], "other", CUSTOM_WEIGHT))
    node = structure.tree(character)
    for operator, parts, share in _openings(node):
        written = [_standalone(part, inputs) for part in parts]
        text = "".join(sign for sign, _ in written)
        if len(text) < len(parts) or not 2 <= len(parts) <= 3:
            continue
        weight = share * DIRECTION.get(operator, 0.0)
        if operator == "⿺" and parts[0].character in RUNS_ON:
            weight *= FOOT / DIRECTION["⿺"]
        for sign, natural in written:
            weight *= natural * LEVELS[inputs.standard[sign][0]]
        if character not in text and not _single_strokes(parts, structure):
            found.append(Written(text, KINDS.get(operator, "other"), weight))
    return found


def _openings(node: ids.Node) -> list[tuple[str, tuple[ids.Node, ...], float]]:
    """Return the node's own parts and, where they are two, those with one of them opened."""
    options = [(node.operator, node.parts, 1.0)]
    if len(node.parts) != 2:
        return options
    left, right = node.parts
    for opened, parts in (
        (left, (*left.parts, right)),
        (right, (left, *right.parts)),
    ):
        direction = KINDS.get(opened.operator)
        if len(opened.parts) == 2 and direction is not None:
            same = direction == KINDS.get(node.operator)
            options.append((node.operator, parts, OPENED if same else OPENED * 0.6))
    return options


def _standalone(node: ids.Node, inputs: Inputs) -> tuple[str, float]:
    if node.character in STAND_INS:
        return STAND_INS[node.character]
    return (node.character, 1.0) if node.character in inputs.standard else ("", 0.0)


def _single_strokes(parts: tuple[ids.Node, ...], structure: Structure) -> bool:
    """Return whether a part is a single stroke: 旦 is not written 日一."""
    return any(structure.size(part) == 1 for part in parts)
