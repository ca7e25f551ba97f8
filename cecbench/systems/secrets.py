"""What may stand in a message or a file: nothing that a key, a password or a token can be read in.

Messages show URLs without who is to log in there.
"""

from __future__ import annotations

import re

_USERINFO = re.compile(r"(?<=://)[^/?#\s'\"<>]*@")


def without_userinfo(text: str) -> str:
    """The text, its URLs without user and password.

    >>> without_userinfo("cannot reach http://me:p@ss@host/x?y=1 (http://host/)")
    'cannot reach http://host/x?y=1 (http://host/)'
    """
    return _USERINFO.sub("", text)


def shown(url: str) -> str:
    """An address for people: without user and password, and without a query, which may hold a key.

    >>> shown("https://me:pw@host/v1?key=1#there")
    'https://host/v1'
    """
    return without_userinfo(re.split(r"[?#]", url, maxsplit=1)[0])
