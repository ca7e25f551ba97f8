"""Features of the errors of a pair: sound and shape, frequency, words, n-grams, place, number."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cecdata.hanzi.characters import (
    LENGTHS,
    find_frequency,
    is_han,
    standard_characters,
    traditional_forms,
    variant_forms,
)
from cecdata.hanzi.components import list_deletions, list_exchanges, measure_similarity
from cecdata.hanzi.edits import Corruption, align, splice
from cecdata.hanzi.readings import have_same_sound, link_sounds, list_readings
from experiments.realism.characters import shipped_pairs
from experiments.realism.words import NEVER, UNKNOWN, cut, fit, lexicon, score

# The features of an edit, by group. A pair has the mean, the minimum and the maximum of each over
# its edits; it has the features of NUMBER once.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "relation": (
        "family", "similarity", "syllables_shared", "log_frequency_wrong", "log_frequency_gained",
        "rank_among_homophones", "lost", "gained",
    ),
    "bigrams": (
        "left", "right", "least", "left_change", "right_change", "both_occur", "score_change",
    ),
    "words": (
        "joins", "joined", "word", "in_word", "in_word_log_prob",
        "changed_word_log_prob", "words_more", "same_sound_word",
    ),
    "place": (
        "from_start", "from_end", "share_of_length", "characters", "beside_another",
        "after_sign", "before_sign", "log_frequency_right", "place_in_word", "written_elsewhere",
    ),
}  # fmt: skip
NUMBER = ("edits", "substitutions", "characters_lost", "characters_gained", "runs")
_FLOOR = 1e-8  # added to a character's probability
_OF_RUN = 8  # code points on each side of an edit whose words are compared
Row = dict[str, float]
#: family of errors → its meaning, in the order in which they are tried: by sound, then by shape
FAMILIES: Mapping[str, str] = {
    "same_sound": "same syllable, same tone",
    "tone": "same syllable, another tone",
    "initial": "fuzzy initial: zh/z, n/l, h/f …",
    "final": "fuzzy final: an/ang, in/ing …",
    "keyboard": "one letter typed beside the right key",
    "edit1": "one letter of the pinyin wrong, missing or too many",
    "rare_reading": "same syllable, but in a reading that few know",
    "look_alike": "looks alike, sounds different",
    "shared_part": "one component apart",
    "variant": "traditional or variant form",
    "other": "none of these",
}


def names() -> tuple[tuple[str, str], ...]:
    """Return (group, name) of every column of `features`."""
    of_edits = [
        (group, f"{how} {name}")
        for group, listed in GROUPS.items()
        for name in listed
        for how in ("mean", "least", "most")
    ]
    return (*of_edits, *(("number", name) for name in NUMBER))


def features(source: str, target: str) -> NDArray[np.float64]:
    """Return the features [F] of a pair's errors, in the order of `names`; NaN where undefined."""
    edits = align(source, target)
    rows = [_of_edit(edit, edits, target) for edit in edits]
    columns = [name for listed in GROUPS.values() for name in listed]
    table = np.array([[row.get(name, np.nan) for name in columns] for row in rows])
    held = ~np.isnan(table)
    some = held.any(axis=0)
    mean = np.where(held, table, 0).sum(axis=0) / np.maximum(held.sum(axis=0), 1)
    least, most = np.where(held, table, np.inf).min(axis=0), np.where(held, table, -np.inf).max(0)
    summary = np.where(some, np.stack([mean, least, most]), np.nan)
    return np.concatenate([summary.T.ravel(), _number(edits)])


def _number(edits: tuple[Corruption, ...]) -> list[float]:
    starts = {edit.start for edit in edits}
    return [
        len(edits),
        sum(_single(edit) for edit in edits),
        sum(max(0, len(edit.target) - len(edit.source)) for edit in edits),
        sum(max(0, len(edit.source) - len(edit.target)) for edit in edits),
        sum(edit.start - 1 not in starts for edit in edits),
    ]


def _single(edit: Corruption) -> bool:
    return len(edit.target) == len(edit.source) == 1


def _of_edit(edit: Corruption, edits: tuple[Corruption, ...], target: str) -> Row:
    before, after = _around(edit, edits, target)
    row: Row = {
        "lost": len(edit.target) - len(edit.source),
        "gained": float(not edit.target),
        **_place(edit, edits, target),
        **_bigrams(edit, before, after, target),
        **_words(edit, before, after, target),
    }
    if _single(edit):
        row |= _relation(edit.target, edit.source)
    return row


def _around(edit: Corruption, edits: tuple[Corruption, ...], target: str) -> tuple[str, str]:
    """Return the text before and after an edit in the source, at most 8 code points each."""
    at = edits.index(edit)
    changes = [(change.start, change.end, change.source) for change in edits]
    before, after = splice(target[: edit.start], changes[:at]), target[edit.end :]
    if changes[at + 1 :]:
        after = splice(target, changes[at + 1 :])[edit.end :]
    return before[-_OF_RUN:], after[:_OF_RUN]


def _relation(right: str, wrong: str) -> Row:
    sounds = {reading.syllable for reading in list_readings(right)}
    shared = sounds & {reading.syllable for reading in list_readings(wrong)}
    log_wrong, log_right = _log_frequency(wrong), _log_frequency(right)
    row = {
        "family": float(tuple(FAMILIES).index(family(right, wrong))),
        "similarity": measure_similarity(right, wrong),
        "syllables_shared": float(len(shared)),
        "log_frequency_wrong": log_wrong,
        "log_frequency_gained": log_wrong - log_right,
    }
    if shared:
        frequent = _by_syllable()
        row["rank_among_homophones"] = min(
            float(np.searchsorted(frequent[name], -find_frequency(wrong))) for name in shared
        )
    return row


def _bigrams(edit: Corruption, before: str, after: str, target: str) -> Row:
    """Return how well the pairs of characters at the edges of an edit fit, with and without it."""
    left, right = before[-1:], after[:1]
    new, old = left + edit.source + right, target[edit.start - 1 : edit.start] + edit.target
    old += target[edit.end : edit.end + 1]
    written, meant = (list(map(fit, text, text[1:])) for text in (new, old))
    row: Row = {"score_change": score(before + edit.source + after) - score(_meant(edit, target))}
    if written:
        row |= {"least": min(written), "both_occur": float(min(written) > NEVER)}
        row |= {"left": written[0]} if left else {}
        row |= {"right": written[-1]} if right else {}
    if written and meant:
        row |= {"left_change": written[0] - meant[0]} if left else {}
        row |= {"right_change": written[-1] - meant[-1]} if right else {}
    return row


def _meant(edit: Corruption, target: str) -> str:
    return target[max(0, edit.start - _OF_RUN) : edit.end + _OF_RUN]


def _words(edit: Corruption, before: str, after: str, target: str) -> Row:
    """Return features of the words that an edit makes and breaks."""
    known = lexicon()
    text, at = before + edit.source + after, len(before)
    made = [
        text[start : start + size]
        for size in LENGTHS
        for start in range(max(0, at - size + 1), at + max(len(edit.source), 1))
        if start + size > at and text[start : start + size] in known
    ]
    begin, word = _word_at(edit, target)
    changed = target[begin : edit.start] + edit.source + target[edit.end : begin + len(word)]
    whole = _meant(edit, target)
    row: Row = {
        "joins": float(any(len(part) == 2 for part in made)),
        "joined": max((known[part] for part in made), default=UNKNOWN),
        "word": float(changed in known) if len(word) > 1 else np.nan,
        "changed_word_log_prob": known.get(changed, UNKNOWN),
        "in_word": len(word),
        "in_word_log_prob": known.get(word, UNKNOWN),
        "words_more": len(cut(text)) - len(cut(whole)),
        "same_sound_word": float(changed in known and _sounds_like(changed, word)),
    }
    return row


def _place(edit: Corruption, edits: tuple[Corruption, ...], target: str) -> Row:
    others = [other for other in edits if other != edit]
    begin, _ = _word_at(edit, target)
    after = target[edit.end : edit.end + 1]
    row = {
        "from_start": edit.start,
        "from_end": len(target) - edit.end,
        "share_of_length": edit.start / max(len(target), 1),
        "characters": len(target),
        "beside_another": any(o.end == edit.start or o.start == edit.end for o in others),
        "after_sign": edit.start == 0 or not is_han(ord(target[edit.start - 1])),
        "before_sign": not after or not is_han(ord(after)),
        "place_in_word": edit.start - begin,
        "written_elsewhere": bool(edit.source) and edit.source in target,
    }
    if len(edit.target) == 1:
        row["log_frequency_right"] = _log_frequency(edit.target)
    return {name: float(value) for name, value in row.items()}


def _word_at(edit: Corruption, target: str) -> tuple[int, str]:
    """Return the start and the text of the word in which an edit begins."""
    at = max(0, edit.start - _OF_RUN)
    for word in cut(target[at : edit.end + _OF_RUN]):
        if at <= edit.start < at + len(word):
            return at, word
        at += len(word)
    return edit.start, edit.target


def _sounds_like(left: str, right: str) -> bool:
    return len(left) == len(right) and all(
        {r.syllable for r in list_readings(one)} & {r.syllable for r in list_readings(other)}
        for one, other in zip(left, right, strict=True)
    )


def _log_frequency(character: str) -> float:
    return float(np.log(shipped_pairs()[2][ord(character)] + _FLOOR))


@cache
def _by_syllable() -> dict[str, NDArray[np.float64]]:
    """Return syllable → the negated frequencies of its characters, the most frequent first."""
    members: dict[str, list[float]] = {}
    for sign in standard_characters():
        for reading in list_readings(sign):
            members.setdefault(reading.syllable, []).append(-find_frequency(sign))
    return {name: np.sort(listed) for name, listed in members.items()}


def family(right: str, wrong: str) -> str:
    """Return the first family that relates the two characters; operators do not matter.

    >>> family("已", "以"), family("在", "载"), family("未", "末"), family("们", "們")
    ('same_sound', 'same_sound', 'look_alike', 'variant')
    """
    if have_same_sound(right, wrong):
        return "same_sound"
    near = link_sounds(right, wrong)
    if near is not None:
        return near.partition(":")[0]
    if {r.syllable for r in list_readings(right)} & {r.syllable for r in list_readings(wrong)}:
        return "rare_reading"
    return _by_eye(right, wrong)


def _by_eye(right: str, wrong: str) -> str:
    if measure_similarity(right, wrong) > 0:
        return "look_alike"
    if (
        wrong in list_deletions(right)
        or right in list_deletions(wrong)
        or wrong in list_exchanges(right)
    ):
        return "shared_part"
    forms = traditional_forms(right) + variant_forms(right)
    back = traditional_forms(wrong) + variant_forms(wrong)
    return "variant" if wrong in forms or right in back else "other"
