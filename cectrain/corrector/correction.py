"""The records that a corrector returns. Offsets are code points of the source, half-open."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Protocol

from cecdata.common.errors import UsageError
from cecdata.hanzi.edits import splice
from cectrain.corrector.wordlists import Term

#: why part of a text was kept as written, whatever the model answered
REASONS = {
    "unreadable": "characters that the model cannot read",
    "unfamiliar": "sentences or clauses with too many characters that the model cannot read",
    "not_han": "characters other than Han that the model would change",
    "protected": "protected names that the model would change",
    "strayed": "text for which the model gave a very different answer",
    "form": "radicals and compatibility forms, read as the characters that they stand for",
    "script": "text whose correction has no certain form in traditional characters",
    "too_long": "a part without punctuation that is too long for the model",
    "address": "links, e-mail addresses and paths of files",
    "code": "code, tags, commands and placeholders",
}

SHOWN = 0.02  # least confidence of an alternative

Change = tuple[int, int, str]  # start and end in a piece, and the text that belongs there


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another target for an edit's source, with its confidence."""

    target: str
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change of `source[start:end]`, which is `source`, into `target`.

    confidence: a probability in 0..1; for a policy the geometric mean of the probabilities that it
    gave the tokens of `target` (for a deletion, the token that follows it). rule: `term` where it
    leads to a term of the user, `dictionary` where the user's replacements ask for it, `form` for
    another form of a character.
    """

    start: int
    end: int
    source: str
    target: str
    confidence: float
    alternatives: tuple[Alternative, ...] = ()
    rule: str = ""

    @property
    def type(self) -> str:
        """`rule`, or what links source and target: a type of `cecdata.hanzi.errortypes`."""
        from cecdata.hanzi.errortypes import edit_type

        return self.rule or edit_type(self.source, self.target)

    @property
    def message(self) -> str:
        """What is changed, in one line.

        >>> Edit(start=1, end=2, source="己", target="已", confidence=0.987).message
        '己 → 已 (same-stroke, 0.99)'
        """
        return f"{self.source or '∅'} → {self.target or '∅'} ({self.type}, {self.confidence:.2f})"


def make_edit(
    text: str,
    start: int,
    end: int,
    target: str,
    confidence: float,
    rule: str = "",
    alternatives: tuple[Alternative, ...] = (),
) -> Edit:
    """Return the change of `text[start:end]` into `target`."""
    return Edit(
        start=start,
        end=end,
        source=text[start:end],
        target=target,
        confidence=confidence,
        alternatives=alternatives,
        rule=rule,
    )


def make_edits(
    piece: str,
    changes: Iterable[Change],
    confidences: Mapping[Change, float],
    terms: Collection[Change],
) -> list[Edit]:
    """Return changes of a piece as edits, in order, with what else may belong at their places.

    terms: the changes that lead to a term of the user.
    """
    shown: dict[tuple[int, int], list[Alternative]] = {}
    for (start, end, target), confidence in confidences.items():
        if confidence >= SHOWN:
            alternative = Alternative(target, round(confidence, 4))
            shown.setdefault((start, end), []).append(alternative)
    edits = []
    for change in sorted(changes):
        start, end, target = change
        others = [other for other in shown.get((start, end), ()) if other.target != target]
        others.sort(key=lambda other: (-other.confidence, other.target))
        confidence, rule = round(confidences[change], 4), "term" if change in terms else ""
        edits.append(make_edit(piece, *change, confidence, rule, tuple(others)))
    return edits


@dataclass(frozen=True, slots=True)
class Kept:
    """A part of the source that was kept as written, and a key of REASONS."""

    start: int
    end: int
    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Correction:
    """A source, its correction, and the edits that lead from one to the other, in order."""

    source: str
    target: str
    edits: tuple[Edit, ...]
    kept: tuple[Kept, ...]


def to_record(correction: Correction) -> dict[str, object]:
    """Return a correction as an object for JSON, each edit with its type."""
    return {**asdict(replace(correction, edits=())), "edits": [*map(edit_record, correction.edits)]}


def edit_record(edit: Edit) -> dict[str, object]:
    """Return an edit as an object for JSON."""
    record = {**asdict(edit), "type": edit.type}
    del record["rule"]
    return record


def move_confidence(edit: Edit, nats: float) -> Edit:
    """Return an edit with `nats` added to its log-odds, and to those of its alternatives."""
    others = tuple(
        replace(other, confidence=_move(other.confidence, nats)) for other in edit.alternatives
    )
    return replace(edit, confidence=_move(edit.confidence, nats), alternatives=others)


def _move(confidence: float, nats: float) -> float:
    odds = confidence / max(1 - confidence, 1e-4) * math.exp(nats)
    return round(odds / (1 + odds), 4)


def apply_edits(source: str, edits: Iterable[Edit]) -> str:
    """Return the source with all edits applied; they are sorted and do not overlap."""
    return splice(source, ((edit.start, edit.end, edit.target) for edit in edits))


class Proposer(Protocol):
    """A model behind a corrector: a policy, or a noisy channel. What a subclass leaves out is here.

    longest: the most characters that a longer text is cut to, where it has marks to cut at. most:
    the most characters that it can be asked at once. None: any number. least: the least confidence
    of the edits that it proposes. note: what a user should know of its settings; '' is nothing.
    together: pieces that it is asked at once; a slow model has few, so that answers come soon.
    """

    longest: int | None = None
    most: int | None = None
    least: float = 0.0
    note: str = ""
    together: int = 256

    @property
    def identity(self) -> Mapping[str, object]:
        """What the answers depend on, as JSON values."""
        return {}

    def unread(self, text: str) -> Sequence[bool]:
        """Return for each character of a text whether the model cannot read it."""
        return [False] * len(text)

    def with_terms(self, terms: Sequence[Term]) -> Proposer:
        """Return this model with more words of the user's field.

        Raises UsageError where it takes none.
        """
        raise UsageError(
            f"this model takes no terms, such as {terms[0].text!r}: choose another model"
        )

    @abstractmethod
    def propose(self, pieces: Sequence[str]) -> Sequence[Sequence[Edit]]:
        """Return the edits of each piece, sorted, with offsets in the piece."""
