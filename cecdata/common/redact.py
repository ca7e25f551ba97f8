"""Take keys and logins out of text that is shown, logged or kept."""

from __future__ import annotations

import re
import urllib.parse

SHORTEST = 8  # characters; a shorter key is a placeholder such as EMPTY, which any text may hold
USERINFO = re.compile(r"(?<=://)[^/?#\s'\"<>]*@")


def without_userinfo(text: str) -> str:
    """Return the text, its URLs without user and password.

    >>> without_userinfo("cannot reach http://me:p@ss@host/x?y=1 (http://host/)")
    'cannot reach http://host/x?y=1 (http://host/)'
    """
    return USERINFO.sub("", text)


def without(text: str, key: str | None) -> str:
    r"""Return the text with stars in place of the key, also where JSON or a URL escaped it.

    >>> without(r"bad key s3cret/of+me, s3cret\/of+me, s3cret%2Fof%2Bme", "s3cret/of+me")
    'bad key ***, ***, ***'
    """
    if key is None or len(key) < SHORTEST:
        return text
    for written in (key, key.replace("/", "\\/"), urllib.parse.quote(key, safe="")):
        text = text.replace(written, "***")
    return text
