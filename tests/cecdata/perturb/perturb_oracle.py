"""The engine once more, slow and obvious: Python integers, strings and lists, nothing compiled.

It shares with the engine what is frozen input (operators, priors, rates) and the published rules
for draws; positions, numbers of edits, candidates, edits and distances are computed anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate
from math import comb
from typing import Protocol

import regex
from rapidfuzz.distance import Levenshtein

from cecdata.operators import Confusion, Operator

WORD = 2**64 - 1
UNCHANGED, OPERATOR, COUNT, POSITION, REPLACEMENT, MIXED, MIXED_OPERATOR = range(7)
PROPOSAL, CHOICE = 8, 9
PLACEHOLDER = re.compile("<[A-Z_][A-Z0-9_]{0,31}>")
TRIES = 24  # draws of a position before the positions are counted out
# UAX #29: nothing is inserted before the first, nor after the second (a linker binds the next
# consonant), nor between two regional indicators or CR and LF.
CLINGS_BEFORE = regex.compile(r"[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}\p{GCB=V}\p{GCB=T}]")
CLINGS_AFTER = regex.compile(r"[\p{GCB=Prepend}\p{GCB=ZWJ}\p{GCB=L}\p{InCB=Linker}]")
PARTED = regex.compile(r"\p{GCB=Regional_Indicator}{2}|\r\n")
KEPT = 2**22  # steps in which Walker's table keeps its probabilities


def mix(z: int) -> int:
    """splitmix64's finaliser."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def key_of(seed: int, identity: int, copy: int) -> int:
    first = mix(identity ^ mix((seed + 0x9E3779B97F4A7C15) & WORD))
    return mix((first + (copy + 1) * 0xD1B54A32D192ED03) & WORD)


def draw(key: int, purpose: int, index: int) -> int:
    counter = (purpose << 32) + index + 1
    return mix((key + counter * 0x9E3779B97F4A7C15) & WORD)


def below(word: int, n: int) -> int:
    return ((word >> 32) * n) >> 32


def unit(word: int) -> float:
    return (word >> 11) / 2**53


def alias_table(weights: Sequence[float]) -> list[tuple[int, int]]:
    """Walker: for each candidate (how often of KEPT it is kept, which one is taken instead)."""
    share = [weight * len(weights) / sum(weights) for weight in weights]
    result = [(KEPT - 1, j) for j in range(len(weights))]
    poor = [j for j, s in enumerate(share) if s < 1]
    rich = [j for j, s in enumerate(share) if s >= 1]
    while poor and rich:
        low, high = poor.pop(), rich.pop()
        result[low] = (min(int(share[low] * KEPT), KEPT - 1), high)
        share[high] -= 1 - share[low]
        (poor if share[high] < 1 else rich).append(high)
    return result


@cache
def count_chances(positions: int, rate: float, most: int, least: int) -> tuple[float, ...]:
    """The chance of at most 1, 2 … `most` edits: a binomial of the positions, cut to least..most.

    Where there are fewer positions than `least`, all of them are edited. Exact, by fractions.
    """
    least, last = min(least, positions), min(most, positions)
    if rate in {0.0, 1.0}:
        certain = least if rate == 0 else last
        return tuple(float(k >= certain) for k in range(1, most + 1))
    odds = Fraction(rate) / (1 - Fraction(rate))
    weights = [comb(positions, k) * odds**k * (least <= k <= last) for k in range(1, most + 1)]
    return tuple(float(part / sum(weights)) for part in accumulate(weights))


@cache
def costs(operators: tuple[Operator, ...]) -> list[int]:
    """The greatest distance of one edit of each operator, by trying all of its candidates."""
    found = []
    for operator in operators:
        if operator.action == "rewrite":
            sources = operator.confusions.build().sources  # type: ignore[attr-defined]
            rows = (item for source in sources for item in operator.confusions(source))
            found.append(max(Levenshtein.distance(i.source, i.replacement) for i in rows))
        else:
            found.append(operator.cost)
    return found


def insertion_allowed(text: str, i: int) -> bool:
    """May something stand before code point i without parting a visible character?"""
    after = i < len(text) and CLINGS_BEFORE.match(text[i])
    before = i > 0 and CLINGS_AFTER.match(text[i - 1])
    return not after and not before and not (i > 0 and PARTED.fullmatch(text[i - 1 : i + 1]))


@dataclass(frozen=True)
class Made:
    """One copy: (start, end, target, source, operator, kind) of each edit."""

    source: str
    operator: str
    edits: tuple[tuple[int, int, str, str, str, str], ...]
    distance: int


class Reader(Protocol):
    """A language model."""

    def chance(self, text: str, start: int, end: int, new: str) -> float:
        """How readily an edit is taken, relative to others of the sentence."""


@dataclass(frozen=True)
class Oracle:
    operators: tuple[Operator, ...]
    characters: Sequence[str]
    priors: Sequence[float]
    rates: Sequence[float]  # per position by operator, and of mixed pairs
    max_edits: int
    max_distance: int
    seed: int
    mixed: float
    unchanged: float
    protected: Callable[[str], list[tuple[int, int]]]  # spans that nothing may touch
    proposals: int = 1
    reader: Reader | None = None  # takes one of several proposals

    def candidates(self, o: int, text: str) -> list[Confusion]:
        """What operator o may write for a character or a span, or insert."""
        operator = self.operators[o]
        if operator.action == "insert":
            return list(operator.confusions(""))
        held = all(character in self.characters for character in text)
        return list(operator.confusions(text)) if held else []

    def rewriting(self) -> set[int]:
        return {o for o, operator in enumerate(self.operators) if operator.action == "rewrite"}

    def held(self, text: str) -> list[tuple[int, int]]:
        """Runs that nothing may touch: typed placeholders, and what is protected."""
        return [found.span() for found in PLACEHOLDER.finditer(text)] + self.protected(text)

    def spans(self, o: int, text: str) -> dict[int, int]:
        """Start and end of the spans that operator o may edit: the longest, from the left."""
        inside = {i for run in self.held(text) for i in range(*run)}
        found, i = dict[int, int](), 0
        while i < len(text):
            ends = [
                i + size
                for size in (4, 3, 2)
                if i + size <= len(text)
                and not inside & set(range(i, i + size))
                and self.candidates(o, text[i : i + size])
                and not self._cut(text, i, i + size)
            ]
            if ends:
                found[i] = ends[0]
            i = ends[0] if ends else i + 1
        return found

    @staticmethod
    def _cut(text: str, start: int, end: int) -> bool:
        """Would a span part a visible character?"""
        after = end < len(text) and CLINGS_BEFORE.match(text[end])
        return bool(after or (start > 0 and CLINGS_AFTER.match(text[start - 1])))

    def positions(self, text: str) -> list[set[int]]:
        """For each position 0..n the operators that may edit there."""
        held = set[int]()  # code points that are left whole
        inside = set[int]()  # positions within them
        for start, end in self.held(text):
            held.update(range(start, end))
            inside.update(range(start + 1, end))
        spans = {o: self.spans(o, text) for o in self.rewriting()}
        result = []
        for i in range(len(text) + 1):
            able = set[int]()
            for o, operator in enumerate(self.operators):
                if operator.action == "rewrite":
                    if i in spans[o]:
                        able.add(o)
                    continue
                if operator.action == "insert":
                    fits = i not in inside and insertion_allowed(text, i)
                else:
                    fits = i < len(text) and i not in held and not self._clings(text, i)
                    fits = fits and bool(self.candidates(o, text[i]))
                if fits and self.candidates(o, "" if operator.action == "insert" else text[i]):
                    able.add(o)
            result.append(able)
        return result

    @staticmethod
    def _clings(text: str, i: int) -> bool:
        """Is the character at i part of a larger visible one?"""
        follows = i + 1 < len(text) and CLINGS_BEFORE.match(text[i + 1])
        return bool(follows or (i > 0 and CLINGS_AFTER.match(text[i - 1])))

    def copies(self, text: str, identity: int, copies: int) -> Iterator[Made]:
        positions = self.positions(text)
        able = {o for at in positions for o in at if self.priors[o] > 0}
        for copy in range(copies):
            yield self._copy(text, positions, able, key_of(self.seed, identity, copy))

    def _copy(self, text: str, positions: list[set[int]], able: set[int], key: int) -> Made:
        if self.unchanged > 0 and unit(draw(key, UNCHANGED, 0)) < self.unchanged:
            return Made(text, "unchanged", (), 0)
        edited = self._edited(positions, able, key)
        if not edited:
            return Made("", "none", (), 0)
        edits = []
        for position, o, word in self._suggested(text, positions, edited, key):
            operator, end = self.operators[o], self._end(text, position, o)
            found = self._candidate(o, text[position:end], word)
            edits.append(
                (position, end, text[position:end], found.replacement, operator.name, found.kind)
            )
        source, done = "", 0
        for start, end, _, new, _, _ in edits:
            source += text[done:start] + new
            done = end
        source += text[done:]
        names = {edit[4] for edit in edits}
        name = "mixed" if len(names) > 1 else names.pop()
        return Made(source, name, tuple(edits), Levenshtein.distance(source, text))

    def _suggested(
        self, text: str, positions: list[set[int]], edited: list[tuple[int, int]], key: int
    ) -> list[tuple[int, int, int]]:
        """(position, operator, draw of the replacement) of every edit, one of its proposals."""
        result = [(p, o, draw(key, REPLACEMENT, k)) for k, (p, o) in enumerate(edited)]
        mixed = len({o for _, o in edited}) > 1
        for k, (position, o, _) in enumerate(result):
            if self.reader is None or self.proposals == 1:
                continue
            others = {p for j, (p, _, _) in enumerate(result) if j != k}
            proposed: list[tuple[float, int, int]] = []  # chance, position, draw of the replacement
            for t in range(self.proposals):
                first = (k * self.proposals + t) * 9  # draws: the replacement's, then 8 positions
                at = position
                if t and not mixed:
                    tried = (
                        below(draw(key, PROPOSAL, first + n), len(positions)) for n in range(1, 9)
                    )
                    fit = (p for p in tried if o in positions[p] and p not in others)
                    at = next(fit, position)
                word, end = draw(key, PROPOSAL, first), self._end(text, at, o)
                new = self._candidate(o, text[at:end], word).replacement
                proposed.append((self.reader.chance(text, at, end, new), at, word))
            u = unit(draw(key, CHOICE, k)) * sum(weight for weight, _, _ in proposed)
            taken = sum(sum_ <= u for sum_ in accumulate(weight for weight, _, _ in proposed))
            _, at, word = proposed[min(taken, self.proposals - 1)]
            result[k] = at, o, word
        return sorted(result)

    def _end(self, text: str, position: int, o: int) -> int:
        """Where the span ends that operator o changes at a position."""
        if self.operators[o].action == "rewrite":
            return self.spans(o, text)[position]
        return position if self.operators[o].action == "insert" else position + 1

    def _edited(self, positions: list[set[int]], able: set[int], key: int) -> list[tuple[int, int]]:
        """(position, operator) of every edit, by position."""
        single = able - self.rewriting()
        if single and self.mixed > 0 and unit(draw(key, MIXED, 0)) < self.mixed:
            chosen = self._take(positions, single, len(self.operators), key)
            here = [positions[p] & single for p in chosen]
            if len(chosen) > 1 and len(set.union(*here)) > 1:
                return list(zip(chosen, self._mixture(here, key), strict=True))
        # an operator that rewrites spans is drawn whether it has one or not; where it has none,
        # it is drawn again without it
        left = single | {o for o in self.rewriting() if self.priors[o] > 0}
        tries = 0
        while left:
            o = self._choose(left, unit(draw(key, OPERATOR, tries)))
            if o in able:
                return [(position, o) for position in self._take(positions, {o}, o, key)]
            left = left - {o}
            tries += 1
        return []

    def _mixture(self, here: list[set[int]], key: int) -> list[int]:
        """An operator for each position, not all the same."""
        edited = [self._choose(at, unit(draw(key, MIXED_OPERATOR, k))) for k, at in enumerate(here)]
        if len(set(edited)) == 1:
            k = max(k for k, at in enumerate(here) if at - {edited[0]})
            others = here[k] - {edited[0]}
            edited[k] = self._choose(others, unit(draw(key, MIXED_OPERATOR, len(here))))
        return edited

    def _choose(self, able: set[int], u: float) -> int:
        """An operator, with the priors renormalised to those that are able."""
        total = sum((self.priors[o] for o in sorted(able)), 0.0)
        reached = 0.0
        for o in sorted(able):
            reached += self.priors[o]
            if u < reached / total:
                return o
        return max(able)

    def _take(self, positions: list[set[int]], wanted: set[int], plane: int, key: int) -> list[int]:
        """The positions that are edited, ascending."""
        fit = [i for i, at in enumerate(positions) if at & wanted]
        mixed = plane == len(self.operators)
        chances = count_chances(len(fit), self.rates[plane], self._most(plane), 2 if mixed else 1)
        u = unit(draw(key, COUNT, 0))
        count = 1 + next(k for k in range(len(chances)) if k == len(chances) - 1 or u < chances[k])
        chosen: list[int] = []
        tries = 0
        for _ in range(count):
            while True:
                position = below(draw(key, POSITION, tries), len(positions))
                tries += 1
                if position in fit and position not in chosen:
                    break
                if tries >= TRIES:
                    left = [p for p in fit if p not in chosen]
                    position = left[below(draw(key, POSITION, tries), len(left))]
                    tries += 1
                    break
            chosen.append(position)
        return sorted(chosen)

    def _most(self, plane: int) -> int:
        """How many edits an operator's pair may have, or a mixed one: by number and distance."""
        dearest = costs(self.operators)
        if plane < len(self.operators):
            cost = dearest[plane]
        else:
            rewriting = self.rewriting()
            single = [cost for o, cost in enumerate(dearest) if o not in rewriting]
            cost = max(single, default=1)
        return max(1, min(self.max_edits, self.max_distance // cost))

    def _candidate(self, o: int, text: str, word: int) -> Confusion:
        row = self.candidates(o, text)
        scaled = (word >> 32) * len(row)
        j, fraction = scaled >> 32, (word & 0xFFFFFFFF) >> 10
        keep, other = alias_table([item.weight for item in row])[j]
        return row[j] if fraction < keep else row[other]
