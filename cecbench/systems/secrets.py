"""Protection of keys, passwords and tokens: none may reach a message or a file.

Outputs name the fields of --body, so that a secret in them is refused. It is recognised by its
name, by its form, or as the endpoint's own key. Messages show URLs without user and password.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterator, Mapping

from cecdata.common.errors import SHORTEST, USERINFO, UsageError, without_userinfo

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
#: parts of a secret's name, its words joined
_NAMED = re.compile(
    r"(api|access|auth|private|session)(key|token)|passw|passphrase|credential|secret|authori[sz]ation"
    r"|bearer|cookie"
)
#: last words of a secret's name: `hf_token`, but not `max_tokens`, `token_ids` or `keyword`
_LAST = ("key", "token", "auth", "pwd", "pass", "jwt")
_HARMLESS = ("prompt_cache_key", "eos_token", "bos_token", "pad_token", "unk_token", "stop_token")
#: the words before a credential in a header, and the prefixes of well-known services' keys
_LOOKS = re.compile(
    r"\b(?:bearer|basic)\s+[\w.~+/=-]{12,}|\b(?:sk|pk|rk)-[\w-]{16,}|\bhf_\w{16,}|\bgh[pousr]_\w{16,}"
    r"|\bAIza[\w-]{16,}|\bAKIA\w{12,}|\bxox[a-z]-[\w-]{10,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.",
    re.IGNORECASE,
)


def shown(url: str) -> str:
    """Return an address without user, password and query, each of which may be secret.

    >>> shown("https://me:pw@host/v1?key=1#there")
    'https://host/v1'
    """
    return without_userinfo(re.split(r"[?#]", url, maxsplit=1)[0])


def printable(text: str) -> str:
    r"""Return the text with a space for each control or format character: a terminal obeys some.

    >>> printable("\x1b]0;title\x07坏\n")
    ' ]0;title 坏 '
    """
    return "".join(sign if sign.isprintable() else " " for sign in text)


def holds(text: str, key: str | None) -> bool:
    """Return whether the text contains the key, as it is or percent-encoded."""
    if key is None or len(key) < SHORTEST:
        return False
    return key in text or key in urllib.parse.unquote(text)


def refuse_in_path(rest: str, form: str) -> None:
    """Raise UsageError if the argument is an address with a user or a password."""
    if USERINFO.search(rest):
        raise UsageError(
            f"--system {form}: give a path, not an address with a user or a password: messages "
            "and outputs name the argument"
        )


def refuse_in_body(body: Mapping[str, object], key: str | None) -> None:
    """Raise UsageError, which names the place, if a further field of requests holds a secret."""
    for place, why in _secrets(body, key, ""):
        clean = _LOOKS.sub("…", place if key is None else place.replace(key, "…"))
        raise UsageError(
            f"--body {clean}: {why}. Outputs name the fields of --body, and a secret belongs in "
            "the environment (--key-variable says which variable)"
        )


def _secrets(value: object, key: str | None, place: str) -> Iterator[tuple[str, str]]:
    """Yield (place, reason) of each secret in a JSON value."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            below = f"{place}.{name}" if place else str(name)
            if names_a_secret(str(name)):
                yield below, "it has the name of a secret"
            yield from _in_text(str(name), key, below)
            yield from _secrets(inner, key, below)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _secrets(inner, key, f"{place}[{index}]")
    elif isinstance(value, str):
        # A header may be given as a pair: ["X-Api-Key", "…"].
        if re.fullmatch(r"[\w-]{1,40}", value) and _NAMED.search(_plain(value)):
            yield place, "it is the name of a secret"
        yield from _in_text(value, key, place)


def _in_text(text: str, key: str | None, place: str) -> Iterator[tuple[str, str]]:
    if holds(text, key):
        yield place, "it contains the key itself"
    elif _LOOKS.search(text):
        yield place, "it looks like a key"
    elif USERINFO.search(text):
        yield place, "a URL in it holds a user or a password"


def names_a_secret(name: str) -> bool:
    """Return whether a field of this name holds a secret.

    >>> [n for n in ("apiKey", "hf_token", "key", "max_tokens", "keyword") if names_a_secret(n)]
    ['apiKey', 'hf_token', 'key']
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or name.lower() in _HARMLESS:
        return False
    return words[-1] in _LAST or _NAMED.search(_plain(name)) is not None


def _plain(name: str) -> str:
    return "".join(_WORD.findall(name)).lower()
