"""The user's own words: names that stay, terms that are corrected to, and exact replacements."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from cecdata.common.errors import InputError, UsageError
from cecdata.common.text import read_text_lines
from cecdata.hanzi.characters import is_han

MOST_TERMS = 50_000
LONGEST_TERM = 32  # characters
MOST_WEIGHT = 20.0  # nats, beyond which a term is always or never written
_NAMED = 5  # lines that an error names


class Phrases:
    """A set of phrases that are found in texts, by the first character and the length.

    >>> list(Phrases(["习小明", "小明"]).find("习小明来了"))
    [(0, 3, '习小明'), (1, 3, '小明')]
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        self.texts = frozenset(phrases)
        lengths: dict[str, set[int]] = {}
        for phrase in self.texts:
            if phrase:
                lengths.setdefault(phrase[0], set()).add(len(phrase))
        self._lengths = {first: sorted(sizes, reverse=True) for first, sizes in lengths.items()}

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the longest phrase that begins at each place, from left to right."""
        for start, first in enumerate(text):
            for size in self._lengths.get(first, ()):
                end = start + size
                if end <= len(text) and text[start:end] in self.texts:
                    yield start, end, text[start:end]
                    break


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the user's field; a text is corrected to it where it sounds or looks like it.

    weight: log P that is added to that of an ordinary rare word: a higher one gives more edits.
    """

    text: str
    weight: float = 0.0


NO_PHRASES = Phrases(())


@dataclass(frozen=True, slots=True)
class Wordlists:
    """What a user lists; `protected` has the names and the terms, `wrong` what is replaced."""

    protected: Phrases = NO_PHRASES
    terms: tuple[Term, ...] = ()
    dictionary: Mapping[str, str] = field(default_factory=dict)
    wrong: Phrases = NO_PHRASES

    def also(
        self,
        protect: Iterable[str],
        terms: Iterable[str | Term],
        dictionary: Mapping[str, str],
        read: Callable[[str], str],
    ) -> Wordlists:
        """Return these with more of each; names and terms also stay as a model `read`s them.

        Raises UsageError where the lists contradict each other.
        """
        if isinstance(protect, str) or not isinstance(protect, Iterable):
            raise UsageError(f"protect must be a list of names, not {protect!r}")
        if not isinstance(dictionary, Mapping):
            raise UsageError(f"dictionary must map wrong texts to right ones, not {dictionary!r}")
        names, new_terms = list(protect), sort_terms(terms)
        for text in (*names, *dictionary, *dictionary.values()):
            if not isinstance(text, str):
                raise UsageError(f"protect and dictionary must hold texts, not {text!r}")
        texts = {*names, *(term.text for term in new_terms)}
        made = Wordlists(
            Phrases({*self.protected.texts, *texts, *map(read, texts)}),
            sort_terms([*self.terms, *(replace(term, text=read(term.text)) for term in new_terms)]),
            check_dictionary({**self.dictionary, **dictionary}),
            Phrases({*self.dictionary, *dictionary}),
        )
        for wrong in made.dictionary:
            if wrong in dictionary and len(read(wrong)) != len(wrong):
                raise UsageError(
                    f"dictionary: {wrong!r} is never found, because texts are read without single "
                    "spaces between Han characters and without invisible characters: drop these"
                )
            if any(True for _ in made.protected.find(wrong)):
                raise UsageError(f"dictionary: {wrong!r} has a protected name or term: drop either")
        return made


def read_names(path: Path) -> tuple[str, ...]:
    """Return the names in a file: one a line, without blank lines and lines that begin with #.

    Raises InputError where the file is no text.
    """
    names = {unicodedata.normalize("NFC", line.strip()) for _, line in read_lines(path)}
    return tuple(sorted(names))


def read_terms(paths: Iterable[Path]) -> tuple[Term, ...]:
    """Return the terms of files: a word a line, then optionally a tab and its weight.

    Blank lines and lines that begin with # are skipped; a term that is listed twice has its last
    weight. Raises InputError, which names the lines, where something else is wrong.
    """
    terms: dict[str, Term] = {}
    for path in paths:
        faults: list[str] = []
        for number, line in read_lines(path):
            text, *weights = (part.strip() for part in line.split("\t"))
            try:
                terms[text] = Term(text, float(weights[0]) if weights and weights[0] else 0.0)
            except ValueError:
                faults.append(f"line {number}: the weight {weights[0]!r} is not a number")
                continue
            if reason := _explain_unfit(terms[text]):
                faults.append(f"line {number}: {text[:LONGEST_TERM]!r} {reason}")
        _refuse_lines(path, faults)
    return sort_terms(terms.values())


def sort_terms(terms: Iterable[str | Term]) -> tuple[Term, ...]:
    """Return terms, sorted and each once. Raises UsageError where one cannot be used."""
    if isinstance(terms, (str, Mapping)) or not isinstance(terms, Iterable):
        raise UsageError(f"terms must be a list of words or of Term(word, weight), not {terms!r}")
    made = [Term(term) if isinstance(term, str) else term for term in terms]
    for term in made:
        if not isinstance(term, Term):
            raise UsageError(f"terms must hold words, not {term!r}")
        if reason := _explain_unfit(term):
            raise UsageError(f"the term {term.text!r} {reason}")
    if len(made) > MOST_TERMS:
        raise UsageError(f"at most {MOST_TERMS:,} terms can be used, not {len(made):,}")
    return tuple(sorted({term.text: term for term in made}.values(), key=lambda term: term.text))


def _explain_unfit(term: Term) -> str:
    """Return what is wrong with a term; '' where nothing is."""
    if not 2 <= len(term.text) <= LONGEST_TERM:
        return f"must have 2 to {LONGEST_TERM} characters, not {len(term.text)}"
    if not -MOST_WEIGHT <= term.weight <= MOST_WEIGHT:
        return f"must have a weight from {-MOST_WEIGHT:g} to {MOST_WEIGHT:g}, not {term.weight}"
    if not all(is_han(ord(character)) for character in term.text):
        return "may have Han characters only: put it into the file of --protect"
    return ""


def read_dictionary(paths: Iterable[Path]) -> dict[str, str]:
    """Return the replacements of files: wrong, a tab, and right, on each line.

    Blank lines and lines that begin with # are skipped. Raises InputError, which names the lines,
    where a line has other parts, two lines contradict each other, or one undoes another.
    """
    pairs: dict[str, str] = {}
    origin: dict[str, str] = {}
    for path in paths:
        bad: list[str] = []
        for number, line in read_lines(path):
            parts = line.split("\t")
            if len(parts) != 2 or not all(part.strip() for part in parts):
                bad.append(f"line {number} must have the wrong text, a tab, and the right text")
                continue
            wrong, right = parts
            if pairs.setdefault(wrong, right) != right:
                bad.append(
                    f"line {number} replaces {wrong!r} by {right!r}, and {origin[wrong]} by "
                    f"{pairs[wrong]!r}: keep one of them"
                )
            origin.setdefault(wrong, f"line {number} of {path.name}")
        _refuse_lines(path, bad)
    return check_dictionary(pairs, origin)


def check_dictionary(pairs: Mapping[str, str], origin: Mapping[str, str] = {}) -> dict[str, str]:
    """Return replacements that agree. Raises UsageError where one undoes or continues another."""
    rights = dict(pairs)
    for wrong, right in rights.items():
        where = f" ({origin[wrong]})" if wrong in origin else ""
        if not wrong:
            raise UsageError(f"the text to replace by {right!r}{where} is empty")
        if wrong == right:
            raise UsageError(f"the replacement of {wrong!r} by {right!r}{where} changes nothing")
        if right in rights:
            place = f" ({origin[right]})" if right in origin else ""
            raise UsageError(
                f"{wrong!r} is replaced by {right!r}{where}, and {right!r} by "
                f"{rights[right]!r}{place}: replace each by the right text"
            )
    return rights


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, but for blank ones and remarks.

    Raises InputError where the file is no UTF-8 text.
    """
    for number, line in enumerate(read_text_lines(path), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line


def _refuse_lines(path: Path, faults: list[str]) -> None:
    """Raise InputError with the first faults of a file's lines, if there are any."""
    if faults:
        rest = f"; and {len(faults) - _NAMED:,} more lines" if len(faults) > _NAMED else ""
        raise InputError(f"{path}: {'; '.join(faults[:_NAMED])}{rest}")
