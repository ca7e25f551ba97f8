"""What a model reads of a text, and which of its edits reach the text: nothing else is harmed.

1. `Plain`: a space stands for what is no prose; invisible characters and single spaces between Han
   characters are left out, because they part words; radicals and compatibility forms are read as
   the characters that they stand for, and what the user's dictionary lists as what it becomes.
2. `stand_in`: what a model reads in place of a character that it cannot read.
3. `cut_pieces`: a line that fits is one piece, else each of its sentences is, because policies are
   trained on single sentences: reading several together made the built-in policy leave 40 % more
   errors alone. The clauses of a sentence that is too long are read with the end of the piece
   before them.
4. `filter_edits`: an edit that touches a character that is not Han, an unreadable or replaced one,
   or a protected name is dropped. All edits of a piece are refused where together they stray too
   far from it.
5. `Plain.locate_edit`: an edit's places in the text as written, with what was left out.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cecdata.corpus.characters import INVISIBLE, JOINERS, STYLES, TAGS
from cecdata.hanzi.characters import is_han
from cecdata.hanzi.edits import splice
from cectrain.corrector.correction import Change, Edit, Kept, make_edit
from cectrain.corrector.prose import HAN, NotProse
from cectrain.corrector.wordlists import Phrases

# Unicode's Default_Ignorable_Code_Point, and the format characters of interlinear annotations.
_INVISIBLE = INVISIBLE + JOINERS + STYLES + TAGS
_LEFT_OUT = re.compile(f"[{_INVISIBLE}]")
_SPACE = re.compile(f"(?<=[{HAN}])[ \u00a0\u3000](?=[{HAN}])")
_FORMS = re.compile("[\u2e80-\u2fdf\uf900-\ufaff\U0002f800-\U0002fa1f]")
# Among nine stand-ins and cutting the text at the character, these changed the policy's edits in
# the rest of a sentence least (150 sentences: 7 edits lost or added with 某, 31 by cutting).
_FOR_HAN, _FOR_SIGNS = "某", "·"
# Of eight signs for an address or code, a space changed the edits beside it least
# (benchmarks/bench_not_prose.py).
_FOR_SPANS = " "
FAR = 0.3  # most changed characters of an answer, as a share of the source's Han characters
LENGTH = 0.15  # most characters that it may be longer or shorter, as a share of the same
ALWAYS = 2  # changed characters that are allowed even in the shortest source
_LINES = re.compile(r"[^\n]*\n+|[^\n]+")
# Closing quotation marks and brackets belong to the sentence before them.
SENTENCES = re.compile(r"[^。！？；…!?;]*[。！？；…!?;]+[”’」』）》】]*|[^。！？；…!?;]+")
_CLAUSES = re.compile(r"(?:[^，、,]|,(?=\d))*(?:[，、]|,(?!\d))|(?:[^，、,]|,(?=\d))+")
_NEW = -1  # the place in a text of a character that it does not have
_CONTEXT = 0.25  # most text that is read before a clause, as a share of the longest
_MOST_BEFORE = 8  # clauses that are read before a clause


@dataclass(frozen=True, slots=True)
class Plain:
    """A text without what parts words; `begins` and `ends` have where each character stands.

    >>> plain = Plain.make("他己\\u200b 经来了")
    >>> plain.text, [*zip(plain.begins, plain.ends)]
    ('他己经来了', [(0, 1), (1, 2), (4, 5), (5, 6), (6, 7)])
    """

    source: str
    text: str
    begins: Sequence[int]
    ends: Sequence[int]
    forms: frozenset[int] = frozenset()  # where radicals and compatibility forms are
    fixed: frozenset[int] = frozenset()  # characters that stand for something else in the source

    @classmethod
    def make(cls, source: str, not_prose: Iterable[NotProse] = ()) -> Plain:
        """Return what a model is to read of a text."""
        plain = cls(source, source, range(len(source)), range(1, len(source) + 1))
        # A sign stands for what is no prose until all single spaces are left out, then a space.
        plain = plain.apply_changes((start, end, _FOR_SIGNS) for start, end, _ in not_prose)
        for left_out in (_LEFT_OUT, _SPACE):
            matches = left_out.finditer(plain.text)
            plain = plain.apply_changes((*match.span(), "") for match in matches)
        forms = [match.start() for match in _FORMS.finditer(plain.text) if _decode_form(match[0])]
        characters = list(plain.text)
        for at in forms:
            characters[at] = _decode_form(plain.text[at])
        for at in plain.fixed:
            characters[at] = _FOR_SPANS
        return replace(plain, text="".join(characters), forms=frozenset(forms))

    def apply_changes(self, changes: Iterable[Change]) -> Plain:
        """Return the text with changes made, which are sorted and do not overlap.

        What they put in is fixed.
        """
        changes = list(changes)
        if not changes:
            return self
        # of each character: where it begins and ends in the source, and its place in this text
        old = [*zip(self.begins, self.ends, range(len(self.text)), strict=True)]
        new: list[tuple[int, int, int]] = []
        done = 0
        for start, end, target in changes:
            new += old[done:start]
            new += [(old[start][0], old[end - 1][1], _NEW)] * len(target)
            done = end
        new += old[done:]
        fixed = {_NEW, *self.fixed}
        return Plain(
            self.source,
            splice(self.text, changes),
            [begin for begin, _, _ in new],
            [end for _, end, _ in new],
            frozenset(at for at, (_, _, place) in enumerate(new) if place in self.forms),
            frozenset(at for at, (_, _, place) in enumerate(new) if place in fixed),
        )

    def locate_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the place in the source of a span of the text."""
        if start < end:
            return self.begins[start], self.ends[end - 1]
        at = self.ends[start - 1] if start else 0
        return at, at

    def locate_edit(self, edit: Edit) -> Edit:
        """Return an edit of the text as one of the source, which keeps what was left out."""
        start, end = self.locate_span(edit.start, edit.end)
        source = self.source[start:end]
        alternatives = tuple(
            replace(alternative, target=self._fill_in(edit.start, edit.end, alternative.target))
            for alternative in edit.alternatives
        )
        target = self._fill_in(edit.start, edit.end, edit.target)
        return replace(
            edit, start=start, end=end, source=source, target=target, alternatives=alternatives
        )

    def make_kept(self, start: int, end: int, reason: str) -> Kept:
        """Return a span of the text that was kept as one of the source."""
        start, end = self.locate_span(start, end)
        return Kept(start, end, self.source[start:end], reason)

    def _fill_in(self, start: int, end: int, target: str) -> str:
        """Return a target with what the source has between the characters of the span."""
        gaps = zip(self.ends[start:end], self.begins[start + 1 : end], strict=False)
        between = [self.source[low:high] for low, high in gaps]
        if len(target) != end - start or not any(between):
            return target + "".join(between)
        pairs = zip(target, [*between, ""], strict=True)
        return "".join(character + left_out for character, left_out in pairs)


def _decode_form(form: str) -> str:
    """Return the one Han character that a radical or a compatibility form stands for; '' if none.

    >>> [_decode_form(form) for form in "\\u2f47\\uf9b6\\u2e80"]
    ['日', '禮', '']
    """
    meant = unicodedata.normalize("NFKC", form)
    return meant if meant != form and len(meant) == 1 and is_han(ord(meant)) else ""


def stand_in(character: str, unread: Callable[[str], Sequence[bool]]) -> str:
    """Return the one character that a model reads in place of an unreadable one."""
    plain = unicodedata.normalize("NFKC", character)
    if len(plain) == 1 and not any(unread(plain)):
        return plain
    return _FOR_HAN if is_han(ord(character)) else _FOR_SIGNS


def put_stand_ins(text: str, unread: Callable[[str], Sequence[bool]]) -> str:
    """Return a text as a model reads it."""
    pairs = zip(text, unread(text), strict=True)
    return "".join(stand_in(sign, unread) if is_unread else sign for sign, is_unread in pairs)


@dataclass(frozen=True, slots=True)
class Piece:
    """`text[start:end]`, asked together with `text[context:start]`; offsets in code points."""

    context: int
    start: int
    end: int


def cut_pieces(text: str, longest: int | None) -> list[Piece]:
    """Return the pieces that a model gets of a text, in order; together they are the text.

    longest: characters of a question, white space at its ends not counted; None: no limit, a line
    is one piece. What has no punctuation mark to cut at makes a piece that is too long.

    >>> text = "他来了。我也来了，你呢，他呢？"
    >>> [text[piece.start : piece.end] for piece in cut_pieces(text, 8)]
    ['他来了。', '我也来了，你呢，', '他呢？']
    """
    made: list[Piece] = []
    at, limit = 0, longest or len(text)
    for line in _LINES.findall(text):
        whole = len(line.strip()) <= limit
        for sentence in [line] if whole else SENTENCES.findall(line):
            made += _cut_sentence(text, at, at + len(sentence), limit)
            at += len(sentence)
    return made


def _cut_sentence(text: str, start: int, end: int, limit: int) -> list[Piece]:
    """Return the pieces of a sentence, cut at clauses; each has the clauses before as context."""
    if len(text[start:end].strip()) <= limit:
        return [Piece(start, start, end)]
    made: list[Piece] = []
    starts: list[int] = []  # of the clauses so far
    at = start
    for clause in _CLAUSES.findall(text[start:end]):
        after = at + len(clause)
        if made and len(text[made[-1].context : after].strip()) <= limit:
            made[-1] = Piece(made[-1].context, made[-1].start, after)
        else:
            earliest = max(at - _CONTEXT * limit, after - limit)
            contexts = (begin for begin in starts[-_MOST_BEFORE:] if begin >= earliest)
            made.append(Piece(min(contexts, default=at), at, after))
        starts.append(at)
        at = after
    return made


def has_strayed(edits: Iterable[Edit], length: int) -> bool:
    """Return whether an answer is too far from its source, which has `length` Han characters.

    A change of one sign into another does not count: it is dropped in any case.
    """
    counted = [e for e in edits if any(map(_is_han, e.source + e.target))]
    changed = sum(a != b for e in counted for a, b in itertools.zip_longest(e.source, e.target))
    longer = sum(len(e.target) - len(e.source) for e in counted)
    return changed > max(ALWAYS, FAR * length) or abs(longer) > max(ALWAYS, LENGTH * length)


class Protected:
    """The places of a text that phrases cover: characters, and gaps before characters."""

    def __init__(self, text: str, phrases: Phrases) -> None:
        self._characters, self._gaps = bytearray(len(text) + 1), bytearray(len(text) + 1)
        for start, end, _ in phrases.find(text):
            self._characters[start:end] = b"\1" * (end - start)
            self._gaps[start + 1 : end] = b"\1" * (end - start - 1)

    def holds(self, start: int, end: int) -> bool:
        """Return whether a change of the span would change a phrase or part it."""
        return any(self._characters[start:end]) or (start == end and bool(self._gaps[start]))


def filter_edits(
    plain: Plain, piece: Piece, edits: Sequence[Edit], unread: Collection[int], protected: Protected
) -> tuple[list[Edit], list[Kept]]:
    """Return the edits of a piece that are let through, and what was kept for the others.

    unread: the places of the text where the model saw a stand-in. An edit of such a character, of a
    form or of what is fixed, or an insertion beside one, is dropped without a record, because the
    character itself has one.
    """
    text, start, end = plain.text, piece.start, piece.end
    if has_strayed(edits, sum(map(_is_han, text[start:end]))):
        return [], [plain.make_kept(start, end, "strayed")]
    through, kept = [], []
    for edit in edits:
        if _touches(edit, unread) or _touches(edit, plain.fixed):
            continue
        if not plain.forms.isdisjoint(range(edit.start, edit.end)):
            continue
        if not _changes_han(text, edit):
            kept.append(plain.make_kept(edit.start, edit.end, "not_han"))
        elif protected.holds(edit.start, edit.end):
            kept.append(plain.make_kept(edit.start, edit.end, "protected"))
        else:
            through.append(edit)
    return through, kept


def _touches(edit: Edit, places: Collection[int]) -> bool:
    """Return whether an edit changes a character at one of the places, or inserts one beside it.

    Whether a character is missing depends on its neighbours.
    """
    beside = edit.start == edit.end
    return any(at in places for at in range(edit.start - beside, edit.end + beside))


def apply_dictionary(
    plain: Plain, dictionary: Mapping[str, str], phrases: Phrases, protected: Protected
) -> list[Edit]:
    """Return the edits that a dictionary makes: from the left, the longest first."""
    edits: list[Edit] = []
    for start, end, wrong in phrases.find(plain.text):
        is_free = not protected.holds(start, end) and plain.fixed.isdisjoint(range(start, end))
        if is_free and (not edits or edits[-1].end <= start):
            edits.append(make_edit(plain.text, start, end, dictionary[wrong], 1.0, "dictionary"))
    return edits


def _changes_han(text: str, edit: Edit) -> bool:
    """Return whether an edit holds only Han characters and inserts none between two other signs.

    The latter keeps 45.6%, R&D, links and the like in one piece.
    """
    if not all(map(_is_han, edit.source + edit.target)):
        return False
    around = text[max(0, edit.start - 1) : edit.end + 1]
    return any(map(_is_han, around))


def _is_han(character: str) -> bool:
    return is_han(ord(character))
