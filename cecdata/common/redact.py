"""The removal of keys and logins from text that is shown, logged or kept."""

from __future__ import annotations

import re
import urllib.parse

SHORTEST = 8  # characters; a shorter key is a placeholder such as EMPTY, which any text may hold
USERINFO = re.compile(r"(?<=://)[^/?#\s'\"<>]*@")


def without_userinfo(text: str) -> str:
    """Return the text with user and password removed from its URLs.

    >>> without_userinfo("cannot reach http://me:p@ss@host/x?y=1 (http://host/)")
    'cannot reach http://host/x?y=1 (http://host/)'
    """
    return USERINFO.sub("", text)


def without(text: str, key: str | None) -> str:
    r"""Return the text with stars in place of the key, also where it is escaped for JSON or a URL.

    >>> without(r"bad key s3cret/of+me, s3cret\/of+me, s3cret%2Fof%2Bme", "s3cret/of+me")
    'bad key ***, ***, ***'
    """
    if key is None or len(key) < SHORTEST:
        return text
    for written in (key, key.replace("/", "\\/"), urllib.parse.quote(key, safe="")):
        text = text.replace(written, "***")
    return text
