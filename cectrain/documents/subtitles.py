"""Subtitles: SubRip, WebVTT and Advanced SubStation; times, tags and breaks of lines stay."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator

from cectrain.documents.document import Parts, Passage, join_parts

_CUE = re.compile(r"-->[^\n]*(?:\n|\Z)(?P<text>(?:[^\S\n]*[^\s][^\n]*(?:\n|\Z))*)")
_DIALOGUE = re.compile(r"^Dialogue:(?:[^,\n]*,){9}(?P<text>[^\n]*)", re.MULTILINE)
_TAG = re.compile(r"<[^<>\n]*>|\{[^{}\n]*\}|\\[Nnh]|[^\S\n]*\n|(?P<sign>&#\w+;)")
_END = re.compile(r"[。！？…!?.][”’」』）)]*\s*\Z")
_MOST = 4  # cues of a sentence; speech without marks is read cue by cue


def find_passages(source: str) -> Iterator[Passage]:
    """Yield the sentences of cues of SubRip and WebVTT."""
    return _join_cues(source, _CUE.finditer(source))


def find_dialogues(source: str) -> Iterator[Passage]:
    """Yield the sentences of the dialogues of Advanced SubStation."""
    return _join_cues(source, _DIALOGUE.finditer(source))


def _join_cues(source: str, cues: Iterable[re.Match[str]]) -> Iterator[Passage]:
    """Yield cues up to one that ends a sentence as one passage.

    Of more than `_MOST` without an end, the first ones are passages of their own.
    """
    waiting: list[Parts] = []
    for cue in cues:
        start = cue.start("text")
        waiting.append(_split_cue(source, start, start + len(cue["text"].rstrip())))
        if _END.search(_TAG.sub("", cue["text"])):
            yield join_parts(source, [part for parts in waiting for part in (*parts, " ")])
            waiting = []
        elif len(waiting) == _MOST:
            yield join_parts(source, waiting.pop(0))
    for parts in waiting:
        yield join_parts(source, parts)


def _split_cue(source: str, start: int, end: int) -> Parts:
    """Return the spans of a cue between tags, and what stands for signs and breaks of lines."""
    parts: Parts = []
    for tag in _TAG.finditer(source, start, end):
        parts.append((start, tag.start()))
        if tag["sign"]:
            parts.append((*tag.span(), html.unescape(tag[0])))
        elif tag[0][0] not in "<{":
            parts.append(" ")
        start = tag.end()
    return [*parts, (start, end)]
