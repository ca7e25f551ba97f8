"""A noisy channel as a corrector uses it: n-gram model × P(observed | right), without torch."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cecdata.common.kernels import Interpreted
from cecdata.hanzi.characters import is_han
from cectrain.corrector.channel.decode import Edits, correct_sentences
from cectrain.corrector.channel.layout import Settings, list_guards, make_workspace
from cectrain.corrector.channel.tables import NUMERALS, ChannelTables, weigh_reluctance
from cectrain.corrector.channel.terms import add_terms
from cectrain.corrector.correction import Change, Edit, Proposer, make_edits
from cectrain.corrector.forms import is_equal_spelling, read_lexicon
from cectrain.corrector.wordlists import Term

#: function words, which no reduplication is made of: particles, pronouns, prepositions, adverbs
_NEVER_DOUBLED = frozenset(
    "的地得了着过们我你他她它这那其是在有和与及或就也都不没很而但把被给对从向为以"
)
#: Least posterior of an edit that is proposed. Chosen with `Settings` on synthetic held-out pairs,
#: half of them clean, by sentence-level F1.
LEAST = 0.5
_COUNTED = 0.0005  # least posterior of a word: the posterior of an edit is the sum over its words
_MOST_EDITS = 64  # edits of a text for which there is room at first
_SHORT = 300  # characters: a longer text is not interpreted where the kernel must be compiled
read_clauses = Interpreted(correct_sentences, _SHORT, 3 * _SHORT)


class Reading(NamedTuple):
    """The possible changes of a piece with their posteriors, and which are on the likeliest path.

    terms: those that lead to a term of the user; listed: to one that the n-gram model has.
    """

    posterior: dict[Change, float]
    best: set[Change]
    terms: set[Change]
    listed: Collection[Change] = ()


class ChannelProposer(Proposer):
    """The noisy-channel corrector over the tables of an n-gram model and a recipe's channel.

    least: least posterior of an edit that is proposed, 0..1; None: the default. settings: the
    decoder's weights; the default has the model's cost of an error.
    """

    def __init__(
        self, tables: ChannelTables, *, least: float | None = None, settings: Settings | None = None
    ) -> None:
        self.tables, self.least = tables, LEAST if least is None else least
        self.settings = settings or Settings(error=tables.error)
        single = tables.channel.word_points[tables.channel.word_size == 1, 0]
        self._known = set(map(chr, single.tolist()))

    @property
    def identity(self) -> Mapping[str, object]:
        """What the answers depend on."""
        return {
            "model": self.tables.model,
            **dict(zip(("words", "pairs", "triples"), self.tables.counts, strict=True)),
            "recipe": self.tables.recipe,
            "least": self.least,
            **self.settings._asdict(),
        }

    def with_terms(self, terms: Sequence[Term]) -> ChannelProposer:
        """Return this channel with more terms."""
        extended = copy.copy(self)
        extended.tables = add_terms(self.tables, terms)
        return extended

    def unread(self, text: str) -> list[bool]:
        """Return for each character whether it is Han but not in the model."""
        return [character not in self._known and is_han(ord(character)) for character in text]

    def propose(self, pieces: Sequence[str]) -> list[list[Edit]]:
        """Return the edits of each piece, sorted; confidence is the posterior of the edit."""
        edits = []
        for piece, reading in zip(pieces, self.read_pieces(pieces), strict=True):
            likely = [c for c in reading.best if reading.posterior[c] >= self.least]
            edits.append(make_edits(piece, likely, reading.posterior, reading.terms))
        return edits

    def read_pieces(self, pieces: Sequence[str]) -> list[Reading]:
        """Return what each piece may have meant."""
        points = np.frombuffer(
            "".join(pieces).encode("utf-32-le", "surrogatepass"), np.uint32
        ).astype(np.int32)
        offsets = np.cumsum([0, *map(len, pieces)]).astype(np.int64)
        room = _MOST_EDITS * len(pieces) + len(points)
        while True:
            out = Edits(np.zeros((room, 6), np.int64), np.zeros(room), np.zeros(room, np.uint8))
            rows = read_clauses(
                len(points),
                points,
                offsets,
                list_guards(pieces, offsets, self.settings.title),
                self.tables.ngrams,
                self.tables.channel,
                self.settings,
                _COUNTED,
                make_workspace(),  # of this call: threads may share the corrector
                out,
            )
            if rows >= 0:
                return self._collect_readings(pieces, out, rows)
            room *= 2  # there was none for an edit

    def _collect_readings(self, pieces: Sequence[str], edits: Edits, count: int) -> list[Reading]:
        """Return what each piece may have meant, by the first edits that the kernel has written.

        Several words may make one change, whose posterior is their sum.
        """
        term_numbers = frozenset(self.tables.terms.tolist())
        texts = self.tables.channel.word_points
        listed = [set[Change]() for _ in pieces]
        readings = [Reading({}, set(), set(), changes) for changes in listed]
        for row in range(count):
            number, start, end, word, word_start, word_end = edits.place[row].tolist()
            change = start, end, "".join(map(chr, texts[word, word_start:word_end].tolist()))
            if is_kept(pieces[number], *change):
                continue
            posterior, best, terms, _ = readings[number]
            posterior[change] = min(posterior.get(change, 0.0) + float(edits.share[row]), 1.0)
            if edits.path[row]:
                best.add(change)
            if word in term_numbers:
                terms.add(change)
                if word < self.tables.counts[0]:
                    listed[number].add(change)
        return readings


def is_kept(text: str, start: int, end: int, target: str) -> bool:
    """Return whether a change shortens a reduplication, puts another accepted spelling, or makes a
    number another one.
    """
    if len(target) < end - start:
        return shortens_reduplication(text, start, end, target)
    return is_equal_spelling(text, start, end, target) or makes_number(text, start, end, target)


def makes_number(text: str, start: int, end: int, target: str) -> bool:
    """Return whether a change puts a numeral in place of another character, beside a numeral.

    >>> makes_number("二时五分", 1, 2, "十"), makes_number("石分高兴", 0, 1, "十")
    (True, False)
    """
    beside = {*text[max(0, start - 1) : start], *text[end : end + 1]}
    new = {*target} - {*text[start:end]}
    return not NUMERALS.isdisjoint(new) and not NUMERALS.isdisjoint(beside)


def is_settled(text: str, start: int, end: int, target: str) -> bool:
    """Return whether a change of equal length puts another accepted spelling, a number or a place.

    >>> is_settled("第三章", 1, 2, "二"), is_settled("第叁章", 1, 2, "三")
    (True, False)
    """
    pairs = zip(text[start:end], target, strict=True)
    return any(map(weigh_reluctance, pairs)) or is_equal_spelling(text, start, end, target)


def shortens_reduplication(text: str, start: int, end: int, target: str) -> bool:
    """Return whether a change leaves out a character of a reduplication: verbs (剁剁) and others.

    >>> shortens_reduplication("把肉剁剁", 2, 3, ""), shortens_reduplication("我我们", 0, 1, "")
    (True, False)
    """
    for place in range(start, end):
        if text[start:place] + text[place + 1 : end] != target:
            continue
        character = text[place]  # which is left out
        for first in (place - 1, place):
            if text[max(0, first) : first + 2] == 2 * character:
                words = 2 * character, text[max(0, first - 1) : first + 2]
                is_listed = any(word in read_lexicon() for word in words)
                return is_listed or character not in _NEVER_DOUBLED
    return False
