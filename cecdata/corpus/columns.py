"""The choice of the columns, or JSON keys, that hold the text, its origin and its licence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cecdata.common.errors import InputError, did_you_mean

DEFAULT_TEXT = "text"
DEFAULT_ORIGIN = "origin"
DEFAULT_LICENCES = ("licence", "license")


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that the user named; None means the default that `pick` finds."""

    text: str | None = None
    origin: str | None = None
    licence: str | None = None

    @property
    def named(self) -> tuple[tuple[str, str | None], ...]:
        """Return each column's command-line option and the name given to it."""
        return (
            ("--text-column", self.text),
            ("--origin-column", self.origin),
            ("--licence-column", self.licence),
        )

    def pick(self, available: Sequence[str], strings: Sequence[str], label: str) -> Picked:
        """Return the columns to read; `strings` are those that hold text.

        Raises InputError for a column that is missing, occurs twice or does not hold strings.
        """
        text = self.text or default_text(available, strings, label)
        for _, name in (("", text), *self.named[1:]):
            if name is not None and name not in available:
                raise InputError(unknown_column(name, available, label))
        if text not in strings:
            raise InputError(
                f"{label}: column {text!r} does not hold strings; name one that does with "
                f"--text-column: {', '.join(strings) or 'this file has none'}"
            )
        origin = self.origin or (DEFAULT_ORIGIN if DEFAULT_ORIGIN in available else None)
        licence = self.licence or default_licence(strings)
        for name in (text, origin, licence):
            if name is not None and available.count(name) > 1:
                raise InputError(
                    f"{label}: {available.count(name)} columns are called {name!r}: rename all but "
                    "one, or drop them"
                )
        return Picked(text, origin, licence)


@dataclass(frozen=True, slots=True)
class Picked:
    """The columns to read; None: the file's name is the origin, --licence gives the licence."""

    text: str
    origin: str | None
    licence: str | None = None

    @property
    def names(self) -> list[str]:
        """Return the names of the columns to read, each once."""
        return list(dict.fromkeys(n for n in (self.text, self.origin, self.licence) if n))


def unknown_column(name: str, available: Sequence[str], label: str) -> str:
    """Return the message for a column that does not exist."""
    return f"{label}: no column {name!r}; {did_you_mean(name, list(available))}"


def default_text(available: Sequence[str], strings: Sequence[str], label: str) -> str:
    """Return `text`, or the only column of strings; raise InputError if there is neither."""
    if DEFAULT_TEXT in available:
        return DEFAULT_TEXT
    candidates = [name for name in strings if name not in (DEFAULT_ORIGIN, *DEFAULT_LICENCES)]
    if len(candidates) == 1:
        return candidates[0]
    raise InputError(
        f"{label}: no column {DEFAULT_TEXT!r}; say which one holds the sentences with "
        f"--text-column: {', '.join(available) or 'the file has no columns'}"
    )


def default_licence(strings: Sequence[str]) -> str | None:
    """Return the name of the column of licences, in either spelling, or None."""
    return next((name for name in DEFAULT_LICENCES if name in strings), None)
