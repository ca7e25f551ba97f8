"""Long sources in pieces, for systems that were trained on short ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from cecbench.systems.answer import UNANSWERED, Answer, System

# What closes a quotation or a bracket belongs to the sentence before it.
_SENTENCES = re.compile(r"[^。！？；…]*[。！？；…]+[”’」』）》】]*|[^。！？；…]+")
_CLAUSES = re.compile(r"[^，]*，|[^，]+")


def cut(line: str, fits: Callable[[str], bool]) -> list[str]:
    """The line in pieces that fit: its sentences, and a sentence that is too long in its clauses.

    What cannot be cut stays too long. Clauses stay together while they fit: alone they tell little.

    >>> cut("他来了。我也来了，你呢，他呢？", lambda text: len(text) <= 6)
    ['他来了。', '我也来了，', '你呢，他呢？']
    """
    if fits(line):
        return [line] if line else []
    pieces: list[str] = []
    for sentence in _SENTENCES.findall(line):
        if fits(sentence):
            pieces.append(sentence)
            continue
        first, *rest = _CLAUSES.findall(sentence)
        pieces.append(first)
        for clause in rest:
            if fits(pieces[-1] + clause):
                pieces[-1] += clause
            else:
                pieces.append(clause)
    return pieces


def put_back(piece: str, answer: str) -> str:
    """The piece with the answer in the place of its text.

    White space at the ends is not the system's: it would take it for an error.
    """
    return piece.replace(piece.strip(), answer, 1)


class InPieces:
    """A system that is asked at most `longest` characters at once, as `cectrain correct` asks it.

    A piece that cannot be cut, or that the system gave no correction for, is kept as written; the
    whole is then `truncated`, unless it is one piece.
    """

    def __init__(self, system: System, longest: int) -> None:
        self._system, self._longest = system, longest
        self.name, self.block = system.name, system.block
        told = f"sentences, clauses where they are longer than {longest} characters"
        self.identity: Mapping[str, object] = {**system.identity, "pieces": told}

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        """One answer a source, in the order of the sources."""
        cuts = [cut(source, self._fits) for source in sources]
        asked = [core for pieces in cuts for core in map(self._core, pieces) if core]
        answers = self._system.correct(asked)
        for source, pieces in zip(sources, cuts, strict=True):
            found = [self._answer(piece, answers) for piece in pieces]
            yield found[0] if len(found) == 1 else _joined(source, found)

    def _fits(self, text: str) -> bool:
        return len(text.strip()) <= self._longest

    def _core(self, piece: str) -> str:
        """What is asked of a piece."""
        return piece.strip() if self._fits(piece) else ""

    def _answer(self, piece: str, answers: Iterator[Answer]) -> Answer:
        core = self._core(piece)
        if not core:
            return Answer(piece, piece, "truncated" if piece.strip() else "ok")
        found = next(answers)
        return replace(found, text=put_back(piece, found.text))


def _joined(source: str, parts: Sequence[Answer]) -> Answer:
    statuses = [part.status for part in parts]
    kept = any(status in (*UNANSWERED, "truncated") for status in statuses)
    others = [status for status in statuses if status != "ok"]
    return Answer(
        "".join(part.text for part in parts) if parts else source,
        "".join(part.raw for part in parts),
        "truncated" if kept else others[0] if others else "ok",
        sum(part.tokens_in for part in parts),
        sum(part.tokens_out for part in parts),
        sum(part.seconds for part in parts),
    )
