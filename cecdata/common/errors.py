"""The error tree: every message says what went wrong, where, and what to do next."""

from __future__ import annotations


class CecError(Exception):
    """Base of every expected failure; `exit_code` is what the command line ends with."""

    exit_code = 1


class InputError(CecError, ValueError):
    """The input cannot be used: a missing file, an unknown column, an empty corpus."""


class UsageError(CecError, ValueError):
    """A setting is wrong: an unknown name, a value out of range."""

    exit_code = 2


class TooManyRejectsError(CecError, RuntimeError):
    """More rows were rejected than `--max-reject-rate` allows."""

    exit_code = 3


class VerificationError(CecError, RuntimeError):
    """What lies on disk is not what the manifest promises."""

    exit_code = 4


class RefusedError(CecError, RuntimeError):
    """Going on would mix or destroy something: other configuration, foreign folder, held lock."""

    exit_code = 5


class DiskFullError(CecError, OSError):
    """No space is left where an output must go."""


class MissingPackageError(CecError, ImportError):
    """An optional package is needed; the message names the extra that brings it."""


def how_to_install(extra: str) -> str:
    """Return what a message advises where the packages of an extra are missing.

    The product is on no package index, so the advice is what works in a clone.

    >>> how_to_install("train")
    "run pip install -e '.[train]' in your clone of the repository"
    """
    return f"run pip install -e '.[{extra}]' in your clone of the repository"


def did_you_mean(name: str, known: list[str]) -> str:
    """The sentence that follows an unknown name: the nearest known one, then all of them.

    >>> did_you_mean("homofone", ["homophone", "noise"])
    "did you mean 'homophone'? available: homophone, noise"
    """
    import difflib

    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}available: {', '.join(known)}"
