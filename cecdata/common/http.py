"""Requests to an endpoint that may fail: retries with back-off, Retry-After, a deadline and a size
limit for the whole answer. No message and no log holds the key.

Proxies are those of the environment.
"""

from __future__ import annotations

import importlib
import json
import logging
import math
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cecdata.common.codec import parse
from cecdata.common.errors import (
    CecError,
    MissingPackageError,
    UsageError,
    how_to_install,
    without,
    without_userinfo,
)

if TYPE_CHECKING:
    import httpx
    import tenacity

RETRIED = (408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529)
ANSWER_MIB = 8  # of a body; a long chain of thoughts has a few hundred kB
ERROR_BYTES = 1 << 16  # read of the text of an error
LONGEST_PAUSE_S = 60.0  # between two tries
LONGEST_WAIT_S = 3600.0  # the longest Retry-After that is respected


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


class EndpointError(CecError):
    """The endpoint refuses every request of this kind, so that the run must end."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply: the JSON object, or None and the reason.

    filtered: whether the endpoint's own content filter declined the sentence.
    """

    body: Mapping[str, object] | None
    trouble: str = ""
    filtered: bool = False


class _TroubleError(Exception):
    """A passing fault, after which a request is sent again.

    wait_s: the seconds that the endpoint asked for.
    """

    def __init__(self, what: str, wait_s: float | None = None) -> None:
        super().__init__(what)
        self.wait_s = wait_s


class Endpoint:
    """A URL that takes and returns JSON; its methods may be called from several threads."""

    def __init__(
        self,
        url: str,
        key: str | None,
        key_variable: str,
        *,
        timeout_s: float,
        retries: int,
        backoff_s: float,
        extra: str,
        hint: str = "",
        is_answer: Callable[[Mapping[str, object]], bool] = lambda _: True,
    ) -> None:
        """`hint` ends the message about a request that is refused for an unknown reason.

        Raises MissingPackageError, which names the extra, without httpx and tenacity, UsageError
        for a URL, a key or a proxy's address that cannot be used.
        """
        import ssl  # late, as what follows: a list of systems needs none of it

        for name in ("httpx", "tenacity"):
            try:
                importlib.import_module(name)
            except ImportError:
                raise MissingPackageError(
                    f"endpoints need {name}, which is missing: {how_to_install(extra)}"
                ) from None
        self._url = url
        self._is_answer = is_answer
        self._key, self._key_variable = key, key_variable
        self._timeout_s, self._retries, self._backoff_s = timeout_s, retries, backoff_s
        self._hint = hint
        self._tls = ssl.create_default_context() if url.lower().startswith("https:") else False
        self._guard = threading.Lock()
        self._free_at = 0.0  # monotonic seconds; no request starts before
        self.stop = threading.Event()  # set: threads that wait give up
        self.troubles: dict[str, int] = {}
        # httpcore logs the headers of answers, and an endpoint may echo the key in them.
        logging.getLogger("httpcore").setLevel(logging.WARNING)
        self._check()

    def send(self, body: Mapping[str, object] | None, name: str = "") -> Reply:
        """Return the reply to `body`, without one to a GET; `name` seeds the jitter of pauses.

        Raises EndpointError for a status that no repetition would change.
        """
        import tenacity

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_TroubleError),
            stop=tenacity.stop_after_attempt(self._retries + 1)
            | tenacity.stop_when_event_set(self.stop),
            wait=partial(self._pause, name),
            sleep=tenacity.sleep_using_event(self.stop),
            after=self._count,
            retry_error_callback=lambda state: Reply(None, str(_trouble(state))),
        )
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        return retrying(self._try, data)

    def hidden(self, text: str) -> str:
        """Return the text without the key, should an endpoint echo it."""
        return without(text, self._key)

    def _check(self) -> None:
        """Raise UsageError for what no request can be sent with."""
        import httpx

        if self._key and not re.fullmatch("[!-~]+", self._key):
            raise UsageError(
                f"the variable {self._key_variable} must hold a key of visible ASCII characters"
            )
        try:
            httpx.URL(self._url)
        except httpx.InvalidURL as error:
            raise UsageError(f"{shown(self._url)} is not a URL: {error}") from None
        try:
            self._client()
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            # The message does not repeat the address: it may hold a password.
            raise UsageError(
                "the proxy in HTTP_PROXY, HTTPS_PROXY or ALL_PROXY cannot be used "
                f"({type(error).__name__}): set that variable to http://HOST:PORT, or list the "
                "endpoint's host in NO_PROXY"
            ) from None

    def _try(self, data: bytes | None) -> Reply:
        """Send a request once; raise _TroubleError where another try may succeed."""
        import asyncio

        import httpx

        with self._guard:
            start = self._free_at
        self.stop.wait(max(0.0, start - time.monotonic()))
        if self.stop.is_set():
            return Reply(None, "the run was stopped")
        try:
            # The deadline is for all of it: httpx's own limits are for one read each.
            reply = asyncio.run(asyncio.wait_for(self._send(data), self._timeout_s))
        except (asyncio.TimeoutError, httpx.TimeoutException):
            raise _TroubleError("timed out") from None
        except httpx.ConnectError as error:
            raise _TroubleError(f"no connection ({type(error).__name__})") from None
        except (httpx.TransportError, OSError) as error:
            raise _TroubleError(f"the connection broke ({type(error).__name__})") from None
        status, headers, answer = reply
        return self._parsed(answer) if status == 200 else self._refused(status, headers, answer)

    async def _send(self, data: bytes | None) -> tuple[int, httpx.Headers, bytes]:
        """Return status, headers and body; of an error's body the first bytes."""
        async with (
            self._client() as client,
            client.stream("GET" if data is None else "POST", self._url, content=data) as answer,
        ):
            body = bytearray()
            async for block in answer.aiter_raw():
                body += block
                if answer.status_code != 200 and len(body) >= ERROR_BYTES:
                    break
                if len(body) > ANSWER_MIB << 20:
                    raise _TroubleError(f"an answer of more than {ANSWER_MIB} MiB")
            return answer.status_code, answer.headers, bytes(body)

    def _client(self) -> httpx.AsyncClient:
        import httpx

        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # a compressed answer may expand to any size
        }
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        hooks = {"response": [self._refuse_redirect]}
        return httpx.AsyncClient(
            headers=headers, verify=self._tls, timeout=self._timeout_s, event_hooks=hooks
        )

    async def _refuse_redirect(self, answer: httpx.Response) -> None:
        """Raise EndpointError for a redirect, before httpx looks at where it points."""
        if not 300 <= answer.status_code < 400:
            return
        place = printable(self.hidden(shown(answer.headers.get("Location") or "no address")))
        raise EndpointError(
            f"{self._url} answered HTTP {answer.status_code} and redirects to {place}. Redirects "
            "are not followed, because the key would be sent there: use that URL if you trust it"
        )

    def _refused(self, status: int, headers: httpx.Headers, body: bytes) -> Reply:
        if status in RETRIED:
            raise _TroubleError(f"HTTP {status}", _retry_after(headers.get("Retry-After")))
        text = printable(self.hidden(body[:ERROR_BYTES].decode("utf-8", "replace")))
        if status in (400, 403, 422) and ("content_filter" in text or "inspection" in text):
            return Reply(None, f"HTTP {status}: {text[:500]}", filtered=True)
        hints = {
            401: f"set the key in the environment variable {self._key_variable}",
            403: f"check the key in {self._key_variable} and its permissions",
            404: "check the URL (it usually ends in /v1) and the model's name",
        }
        hint = hints.get(status, self._hint)
        said = f"{self._url} answered HTTP {status}: {text[:300]}"
        raise EndpointError(f"{said} — {hint}" if hint else said, status)

    def _parsed(self, data: bytes) -> Reply:
        try:
            body = parse(data)
        except ValueError:
            raise _TroubleError("not JSON" if data.strip() else "an empty body") from None
        if not isinstance(body, dict) or not self._is_answer(body):
            raise _TroubleError("JSON without an answer")
        return Reply(body)

    def _count(self, state: tenacity.RetryCallState) -> None:
        with self._guard:
            what = str(_trouble(state))
            self.troubles[what] = self.troubles.get(what, 0) + 1

    def _pause(self, name: str, state: tenacity.RetryCallState) -> float:
        """Return the seconds before the next try; a Retry-After holds for all threads."""
        attempt, wait_s = state.attempt_number, _trouble(state).wait_s
        if wait_s is not None:
            with self._guard:
                self._free_at = max(self._free_at, time.monotonic() + wait_s)
        full = min(LONGEST_PAUSE_S, self._backoff_s * 2.0 ** (attempt - 1))
        return full * random.Random(f"{name}:{attempt}").uniform(0.5, 1.0)


def _trouble(state: tenacity.RetryCallState) -> _TroubleError:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, _TroubleError)  # nothing else is tried again
    return error


def _retry_after(value: str | None) -> float | None:
    """Return the seconds to wait, at most an hour; the header holds seconds or a date.

    >>> _retry_after("2"), _retry_after(None), _retry_after("soon"), _retry_after("1e300")
    (2.0, None, None, 3600.0)
    """
    import email.utils

    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError, OSError):
            return None
    return None if math.isnan(seconds) else min(max(0.0, seconds), LONGEST_WAIT_S)
