"""POST requests to an endpoint that may fail: retries with back-off, Retry-After, a rate limit, a
deadline and a size limit for the whole answer.

It is built on urllib, which respects the proxies of the environment. requests, urllib3 and httpx
would be a further dependency, and none has such a deadline: their time limits are for one read.
"""

from __future__ import annotations

import contextlib
import email.utils
import http.client
import io
import json
import math
import random
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from cecbench.systems.options import FROM_0, NOT_NEGATIVE, Finite, NoOptions, option
from cecbench.systems.secrets import printable, shown
from cecdata.common.errors import CecError
from cecdata.common.redact import without
from cecdata.common.strict_json import parse

RETRIED = (408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529)
ANSWER_MIB = 8  # of headers and body; a long chain of thoughts has a few hundred kB
ERROR_BYTES = 1 << 16  # read of the text of an error
LONGEST_PAUSE_S = 60.0  # between two tries
LONGEST_WAIT_S = 3600.0  # the longest Retry-After that is respected


@dataclass(frozen=True)
class RequestOptions(NoOptions):
    """Options of the requests to an endpoint."""

    key_variable: str = option(
        "OPENAI_API_KEY", "Name of the environment variable that holds the endpoint's key."
    )
    timeout_s: float = option(
        120.0,
        "Time limit of a request in seconds, from connecting to the last byte of the answer.",
        type=Finite(0, 86_400, min_open=True),
    )
    retries: int = option(
        6, "How often a request that failed is sent again before the run gives up.", type=FROM_0
    )
    backoff_s: float = option(
        1.0,
        "Pause before a request is sent again, in seconds; it doubles each time, up to a minute.",
        type=NOT_NEGATIVE,
    )
    requests_per_minute: float = option(
        0.0, "Largest number of requests in a minute; 0 sets no limit.", type=NOT_NEGATIVE
    )


class EndpointError(CecError):
    """The endpoint refuses every request of this kind, so that the run must end."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply: the JSON object, or None and the reason.

    filtered: whether the endpoint's own content filter declined the sentence.
    """

    body: Mapping[str, object] | None
    trouble: str = ""
    filtered: bool = False


@dataclass(frozen=True, slots=True)
class _Trouble:
    what: str
    wait_s: float | None = None  # what the endpoint asked for


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Treats a redirect as an error.

    urllib's own handler would send the key to any host, and turn the request into a GET.
    """

    def http_error_302(self, *_: object) -> None:
        """Return nothing, so that urllib raises HTTPError."""

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302  # type: ignore[assignment]  # typed as a follower


class _TooLongError(http.client.HTTPException):
    """An answer is longer than ANSWER_MIB."""


class _Limited(io.RawIOBase):
    """The bytes that a socket receives, up to a moment (monotonic seconds) and ANSWER_MIB."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock, self._deadline, self._left = sock, deadline, ANSWER_MIB << 20
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        """Return True: io.BufferedReader asks."""
        return True

    def readinto(self, buffer: memoryview, /) -> int | None:  # type: ignore[override]  # io passes one
        """Receive bytes; raise TimeoutError after the deadline, _TooLongError beyond the limit."""
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        self._sock.settimeout(remaining)
        count = self._raw.readinto(buffer)
        self._left -= count or 0
        if self._left < 0:
            raise _TooLongError
        return count

    def close(self) -> None:
        """Close the socket, which has no other owner."""
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """A response whose status line, headers and body are read within the limits."""

    def __init__(
        self, sock: socket.socket, *args: object, deadline: float, **named: object
    ) -> None:
        super().__init__(sock, *args, **named)  # type: ignore[arg-type]  # as http.client calls it
        self.fp.close()
        self.fp = io.BufferedReader(_Limited(sock, deadline))


class _Connection(http.client.HTTPConnection):
    """A connection for one request, whose time begins now."""

    def __init__(self, host: str, timeout: float, **named: object) -> None:
        super().__init__(host, timeout=timeout, **named)  # type: ignore[arg-type]  # as urllib does
        deadline = time.monotonic() + timeout
        self.response_class = partial(_Response, deadline=deadline)  # type: ignore[assignment]


class _TlsConnection(_Connection, http.client.HTTPSConnection):
    """The same over TLS."""


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, req)  # type: ignore[arg-type]


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_TlsConnection, req)  # type: ignore[arg-type]


class Endpoint:
    """A URL that takes and returns JSON; its methods may be called from several threads."""

    def __init__(
        self,
        url: str,
        key: str | None,
        options: RequestOptions,
        is_answer: Callable[[Mapping[str, object]], bool],
    ) -> None:
        self._url = url
        self._is_answer = is_answer
        self._key = key
        self._options = options
        self._opener = urllib.request.build_opener(_NoRedirect, _Http, _Https)
        self._guard = threading.Lock()
        self._free_at = 0.0  # monotonic seconds; no request starts before
        self.stop = threading.Event()  # set: threads that wait give up
        self.troubles: dict[str, int] = {}

    def post(self, body: Mapping[str, object], name: str) -> Reply:
        """Return the reply to `body`; `name` seeds the jitter of pauses.

        Raises EndpointError for a status that no repetition would change.
        """
        data = json.dumps(body, ensure_ascii=False).encode()
        trouble = _Trouble("nothing was sent")
        for attempt in range(self._options.retries + 1):
            if attempt:
                self._wait(trouble, attempt, name)
            self._take_turn()
            if self.stop.is_set():
                return Reply(None, "the run was stopped")
            outcome = self._try(data)
            if not isinstance(outcome, _Trouble):
                return outcome
            trouble = outcome
            with self._guard:
                self.troubles[trouble.what] = self.troubles.get(trouble.what, 0) + 1
        return Reply(None, trouble.what)

    def hidden(self, text: str) -> str:
        """Return the text without the key, should an endpoint echo it."""
        return without(text, self._key)

    def _try(self, data: bytes) -> Reply | _Trouble:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(self._url, data, headers, method="POST")  # noqa: S310 - scheme is checked by ApiSystem
        try:
            with self._opener.open(request, timeout=self._options.timeout_s) as answer:
                return self._parsed(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return self._http_error(error)
        except _TooLongError:
            return _Trouble(f"an answer of more than {ANSWER_MIB} MiB")
        except (TimeoutError, urllib.error.URLError) as error:
            reason = getattr(error, "reason", error)
            timed_out = isinstance(reason, TimeoutError)
            return _Trouble(
                "timed out" if timed_out else f"no connection ({type(reason).__name__})"
            )
        except (http.client.HTTPException, OSError) as error:
            return _Trouble(f"the connection broke ({type(error).__name__})")

    def _http_error(self, error: urllib.error.HTTPError) -> Reply | _Trouble:
        text = ""
        with contextlib.suppress(OSError, http.client.HTTPException):
            text = printable(self.hidden(error.read(ERROR_BYTES).decode("utf-8", "replace")))
        if 300 <= error.code < 400:
            place = self.hidden(shown(error.headers.get("Location") or "no address"))
            place = printable(place)
            raise EndpointError(
                f"{self._url} answered HTTP {error.code} and points to {place}: a redirect is not "
                "followed, because the key would be sent there. If you trust it, name that URL"
            )
        if error.code in RETRIED:
            return _Trouble(f"HTTP {error.code}", _retry_after(error.headers.get("Retry-After")))
        if error.code in (400, 403, 422) and ("content_filter" in text or "inspection" in text):
            return Reply(None, f"HTTP {error.code}: {text[:500]}", filtered=True)
        hints = {
            401: f"set the key in the environment variable {self._options.key_variable}",
            403: f"check the key in {self._options.key_variable} and what it may use",
            404: "check the URL (it usually ends in /v1) and the model's name",
        }
        hint = hints.get(error.code, "--body NAME=VALUE changes a field of the request")
        raise EndpointError(f"{self._url} answered HTTP {error.code}: {text[:300]} — {hint}")

    def _parsed(self, data: bytes) -> Reply | _Trouble:
        try:
            body = parse(data)
        except ValueError:
            return _Trouble("not JSON" if data.strip() else "an empty body")
        if not isinstance(body, dict) or not self._is_answer(body):
            return _Trouble("JSON, but no answer")
        return Reply(body)

    def _wait(self, trouble: _Trouble, attempt: int, name: str) -> None:
        full = min(LONGEST_PAUSE_S, self._options.backoff_s * 2 ** (attempt - 1))
        jitter = random.Random(f"{name}:{attempt}").uniform(0.5, 1.0)
        if trouble.wait_s is not None:
            with self._guard:  # Retry-After holds for all threads
                self._free_at = max(self._free_at, time.monotonic() + trouble.wait_s)
        self.stop.wait(full * jitter)

    def _take_turn(self) -> None:
        with self._guard:
            start = max(time.monotonic(), self._free_at)
            if self._options.requests_per_minute > 0:
                self._free_at = start + 60.0 / self._options.requests_per_minute
        self.stop.wait(max(0.0, start - time.monotonic()))


def _retry_after(value: str | None) -> float | None:
    """Return the seconds to wait, at most an hour; the header holds seconds or a date.

    >>> _retry_after("2"), _retry_after(None), _retry_after("soon"), _retry_after("1e300")
    (2.0, None, None, 3600.0)
    """
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
