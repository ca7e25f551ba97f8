"""shapes.tsv: the look-alikes of every standard character, with the three measures of each."""

from __future__ import annotations

import glyphs
import numpy as np
import parts
from inputs import Inputs
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein
from structure import Structure

from cecdata.hanzi.components import combine_similarities

Floats = NDArray[np.float32]
HEADER = ["char", "look_alikes", "glyph_parts_strokes"]
CANDIDATES = 150  # per character and measure; the rest of the 33 million pairs is not scored
MOST, FEWEST = 40, 12
LEAST = 0.40  # below this, only the first FEWEST are kept
# Subtracted when choosing which to keep, by level: a rare character seldom replaces a common one,
# and would crowd out those that do. The order and the similarity stay those of the shapes alone.
RARITY = {1: 0.0, 2: 0.04, 3: 0.08}
# Unrelated characters correlate and share strokes by chance: the level that counts as zero.
GLYPH_FLOOR, STROKE_FLOOR = 0.20, 0.40


def rows(inputs: Inputs, structure: Structure) -> list[list[str]]:
    """Return one row per standard character: look-alikes in order, six digits for each of them."""
    characters = sorted(inputs.standard)
    near: dict[int, list[tuple[float, int, str]]] = {row: [] for row in range(len(characters))}
    for left, right, code in _scored(characters, inputs, structure):
        score = float(
            combine_similarities(*(np.array([int(code[d : d + 2]) / 100]) for d in (0, 2, 4)))[0]
        )
        near[left].append((score, right, code))
        near[right].append((score, left, code))
    rarity = [RARITY[inputs.standard[character][0]] for character in characters]
    table = []
    for row, character in enumerate(characters):
        kept = _kept(near[row], rarity)
        names = "".join(characters[other] for _, other, _ in kept)
        table.append([character, names, "".join(code for _, _, code in kept)])
    return table


def _kept(found: list[tuple[float, int, str]], rarity: list[float]) -> list[tuple[float, int, str]]:
    """Return the look-alikes to keep, most similar first."""
    ranked = sorted(found, key=lambda entry: (rarity[entry[1]] - entry[0], entry[1]))[:MOST]
    kept = [
        entry
        for place, entry in enumerate(ranked)
        if place < FEWEST or entry[0] - rarity[entry[1]] >= LEAST
    ]
    return sorted(kept, key=lambda entry: (-entry[0], entry[1]))


def _scored(
    characters: list[str], inputs: Inputs, structure: Structure
) -> list[tuple[int, int, str]]:
    glyph = glyphs.similarity(characters, inputs.fonts)
    strokes = _stroke_similarity(characters, structure)
    matcher = parts.Matcher(structure)
    numbers = [matcher.number(structure.tree(character)) for character in characters]
    pairs = _candidates([glyph, strokes, parts.overlap(matcher, numbers)])
    scored = []
    for left, right in pairs.tolist():
        measures = (
            _above(float(glyph[left, right]), GLYPH_FLOOR),
            matcher.similarity(numbers[left], numbers[right]),
            _above(float(strokes[left, right]), STROKE_FLOOR),
        )
        code = "".join(f"{min(99, round(100 * value)):02d}" for value in measures)
        scored.append((left, right, code))
    return scored


def _above(value: float, floor: float) -> float:
    return max(0.0, (value - floor) / (1 - floor))


def _stroke_similarity(characters: list[str], structure: Structure) -> Floats:
    sequences = [structure.strokes(structure.tree(character)) for character in characters]
    return process.cdist(
        sequences, sequences, scorer=Levenshtein.normalized_similarity, dtype=np.float32
    )


def _candidates(measures: list[Floats]) -> NDArray[np.int64]:
    """Return the pairs (left < right) that are among a character's nearest by any measure."""
    count = len(measures[0])
    chosen = np.zeros((count, count), bool)
    for measure in measures:
        # A stable order, so that ties fall the same way on every machine.
        nearest = np.argsort(-measure, axis=1, kind="stable")[:, : CANDIDATES + 1]
        np.put_along_axis(chosen, nearest, True, axis=1)
    chosen |= chosen.T
    return np.argwhere(np.triu(chosen, 1))
