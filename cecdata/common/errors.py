"""The error tree: every message says what went wrong, where, and what to do next.

No message has a key or a login: `hide_key` and `without_userinfo` remove them.
"""

from __future__ import annotations

import re
import urllib.parse

SHORTEST = 8  # characters; a shorter key is a placeholder such as EMPTY, which any text may hold
USERINFO = re.compile(r"(?<=://)[^/?#\s'\"<>]*@")
# The signature of Azure's shared access, and other secrets that a URI may have behind its "?".
_SECRET = re.compile(r"(?i)([?&](?:sig|client_secret|access_token)=)[^&#\s'\"<>]+")


class CecError(Exception):
    """Base of every expected failure; `exit_code` is that of the command line."""

    exit_code = 1


class InputError(CecError, ValueError):
    """An input cannot be used: a missing file, an unknown column, an empty corpus."""


class UsageError(CecError, ValueError):
    """A setting is wrong: an unknown name, a value out of range."""

    exit_code = 2


class VerificationError(CecError, RuntimeError):
    """Files are damaged: they differ from what was recorded of them."""

    exit_code = 4


class RefusedError(CecError, RuntimeError):
    """To continue would mix or destroy something: another configuration, a foreign folder."""

    exit_code = 5


class DiskFullError(CecError, OSError):
    """No space is left for an output."""


class MissingPackageError(CecError, ImportError):
    """An optional package is missing; the message names the extra that installs it."""


def how_to_install(extra: str) -> str:
    """Return the advice for a message about the missing packages of an extra.

    It works for a wheel and for a clone: pip sees that the product itself is installed.
    """
    return f"run pip install 'cec-zero[{extra}]'"


def did_you_mean(name: object, known: list[str]) -> str:
    """Return what follows an unknown name in a message: the nearest known one, then all."""
    import difflib

    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}available: {', '.join(known)}"


def without_userinfo(text: str) -> str:
    """Return the text with user, password and signatures removed from its URLs.

    >>> without_userinfo("cannot reach http://me:p@ss@host/x?y=1 (http://host/?sig=a%3D&z=2)")
    'cannot reach http://host/x?y=1 (http://host/?sig=***&z=2)'
    """
    return _SECRET.sub(r"\1***", USERINFO.sub("", text))


def hide_key(text: str, key: str | None) -> str:
    r"""Return the text with stars in place of the key, also one escaped for JSON or a URL."""
    if key is None or len(key) < SHORTEST:
        return text
    for written in (key, key.replace("/", "\\/"), urllib.parse.quote(key, safe="")):
        text = text.replace(written, "***")
    return text
