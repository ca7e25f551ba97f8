"""The model hub: what its libraries say of it, without the token and without who logs in there.

HF_ENDPOINT may hold a user and a password, and those libraries write it into warnings and errors.
"""

from __future__ import annotations

import logging
import os
import re
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager

from cecdata.common.errors import UsageError

SHORTEST = 8  # characters; a shorter key is a placeholder such as EMPTY, which any text may hold
USERINFO = re.compile(r"(?<=://)[^/?#\s'\"<>]*@")
_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN")
_ENDPOINT = "HF_ENDPOINT"


def without_userinfo(text: str) -> str:
    """The text, its URLs without user and password.

    >>> without_userinfo("cannot reach http://me:p@ss@host/x?y=1 (http://host/)")
    'cannot reach http://host/x?y=1 (http://host/)'
    """
    return USERINFO.sub("", text)


def without(text: str, key: str | None) -> str:
    r"""The text with stars for the key, also where JSON or a URL wrote it.

    >>> without(r"bad key s3cret/of+me, s3cret\/of+me, s3cret%2Fof%2Bme", "s3cret/of+me")
    'bad key ***, ***, ***'
    """
    if key is None or len(key) < SHORTEST:
        return text
    for written in (key, key.replace("/", "\\/"), urllib.parse.quote(key, safe="")):
        text = text.replace(written, "***")
    return text


def of_the_hub(text: str) -> str:
    """What a library said of the model hub, without the token and without who logs in there."""
    for name in _TOKENS:
        text = without(text, os.environ.get(name, "").strip() or None)
    login, at, _ = os.environ.get(_ENDPOINT, "").partition("://")[2].rpartition("@")
    if at:  # as it was written: a password with a slash ends no URL's host
        text = text.replace(login + at, "")
    return without_userinfo(text)


def check_hub_address() -> None:
    """UsageError where HF_ENDPOINT is no address: the hub's library would show all of it."""
    given = os.environ.get(_ENDPOINT)
    try:
        parts = urllib.parse.urlsplit(given or "https://hub")
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(
            f"the environment variable {_ENDPOINT} holds no address such as https://HOST; signs "
            "like / or @ in a password are written as %2F and %40. Mend it, or unset it"
        )


@contextmanager
def quiet_hub() -> Iterator[None]:
    """Meanwhile whatever is logged, by whichever library and wherever to, goes through
    `of_the_hub`.
    """
    before = logging.getLogRecordFactory()

    def made(*args: object, **named: object) -> logging.LogRecord:
        record = before(*args, **named)
        record.msg, record.args = of_the_hub(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = of_the_hub(logging.Formatter().formatException(record.exc_info))
        return record

    logging.setLogRecordFactory(made)
    try:
        yield
    finally:
        logging.setLogRecordFactory(before)
