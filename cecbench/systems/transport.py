"""One POST that survives a bad endpoint: retries with back-off, Retry-After, a rate limit, and a
deadline for the whole answer. Standard library only; proxies of the environment are respected.
"""

from __future__ import annotations

import contextlib
import email.utils
import http.client
import json
import math
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cecbench.systems.options import SystemOptions
from cecbench.systems.secrets import shown
from cecdata.common.errors import CecError
from cecdata.common.redact import without
from cecdata.common.strict_json import parse

RETRIED = (408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529)
BLOCK = 1 << 16
LONGEST_WAIT_S = 3600.0  # whatever an endpoint asks for: it is asked again after that


class EndpointError(CecError):
    """The endpoint refuses every request of this kind: going on would only repeat it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: the JSON object, or None and why; `tries` counts the requests sent.

    filtered: the endpoint's own content filter declined the sentence.
    """

    body: Mapping[str, object] | None
    trouble: str
    tries: int
    filtered: bool = False


@dataclass(frozen=True, slots=True)
class _Trouble:
    what: str
    wait_s: float | None = None  # what the endpoint asked for


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect to whoever asked. Python's own handler would carry the key to any host, and
    turn the request into a GET that asks nothing.
    """

    def http_error_302(self, *_: object) -> None:
        """Not handled: it becomes an HTTPError, as other refusals do."""

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302  # type: ignore[assignment]  # typed as a follower


class Endpoint:
    """A URL that takes JSON and gives JSON; safe to use from several threads."""

    def __init__(
        self,
        url: str,
        key: str | None,
        options: SystemOptions,
        is_answer: Callable[[Mapping[str, object]], bool],
    ) -> None:
        self._url = url
        self._is_answer = is_answer
        self._key = key
        self._options = options
        self._opener = urllib.request.build_opener(_NoRedirect)
        self._guard = threading.Lock()
        self._free_at = 0.0  # monotonic seconds; no request starts before
        self.stop = threading.Event()  # set: whoever waits gives up
        self.troubles: dict[str, int] = {}

    def post(self, body: Mapping[str, object], name: str) -> Reply:
        """The reply to `body`; `name` seeds the jitter, so that a run waits the same way twice.

        Raises EndpointError where the endpoint says that no such request will ever do.
        """
        data = json.dumps(body, ensure_ascii=False).encode()
        trouble = _Trouble("nothing was sent")
        for attempt in range(self._options.retries + 1):
            if attempt:
                self._wait(trouble, attempt, name)
            self._take_turn()
            if self.stop.is_set():
                return Reply(None, "the run was stopped", attempt)
            found = self._try(data)
            if not isinstance(found, _Trouble):
                return Reply(found.body, found.trouble, attempt + 1, found.filtered)
            trouble = found
            with self._guard:
                self.troubles[found.what] = self.troubles.get(found.what, 0) + 1
        return Reply(None, trouble.what, self._options.retries + 1)

    def hidden(self, text: str) -> str:
        """The text without the key, should an endpoint echo it."""
        return without(text, self._key)

    def _try(self, data: bytes) -> Reply | _Trouble:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(self._url, data, headers, method="POST")  # noqa: S310 - scheme is checked by ApiSystem
        deadline = time.monotonic() + self._options.timeout_s
        try:
            with self._opener.open(request, timeout=self._options.timeout_s) as answer:
                return self._parsed(_read(answer, deadline))
        except urllib.error.HTTPError as error:
            with error:
                return self._http_error(error, deadline)
        except (TimeoutError, urllib.error.URLError) as error:
            reason = getattr(error, "reason", error)
            timed_out = isinstance(reason, TimeoutError)
            return _Trouble(
                "timed out" if timed_out else f"no connection ({type(reason).__name__})"
            )
        except (http.client.HTTPException, OSError) as error:
            return _Trouble(f"the connection broke ({type(error).__name__})")

    def _http_error(self, error: urllib.error.HTTPError, deadline: float) -> Reply | _Trouble:
        text = ""
        with contextlib.suppress(TimeoutError, OSError, http.client.HTTPException):
            text = self.hidden(_read(error, deadline).decode("utf-8", "replace"))
        if 300 <= error.code < 400:
            place = self.hidden(shown(error.headers.get("Location") or "no address"))
            raise EndpointError(
                f"{self._url} answered HTTP {error.code} and points to {place}: a redirect is not "
                "followed, because the key would go with it. Name the right URL, if you trust it"
            )
        if error.code in RETRIED:
            return _Trouble(f"HTTP {error.code}", _retry_after(error.headers.get("Retry-After")))
        if error.code in (400, 403, 422) and ("content_filter" in text or "inspection" in text):
            return Reply(None, f"HTTP {error.code}: {text[:500]}", 0, filtered=True)
        hints = {
            401: f"set the key in the environment variable {self._options.key_variable}",
            403: f"check the key in {self._options.key_variable} and what it may use",
            404: "check the URL (it usually ends in /v1) and the model's name",
        }
        hint = hints.get(error.code, "see what it says; --body NAME=VALUE changes a field")
        raise EndpointError(f"{self._url} answered HTTP {error.code}: {text[:300]} — {hint}")

    def _parsed(self, data: bytes) -> Reply | _Trouble:
        try:
            body = parse(data)
        except ValueError:
            return _Trouble("not JSON" if data.strip() else "an empty body")
        if not isinstance(body, dict) or not self._is_answer(body):
            return _Trouble("JSON, but no answer")
        return Reply(body, "", 0)

    def _wait(self, trouble: _Trouble, attempt: int, name: str) -> None:
        options = self._options
        full = min(options.backoff_max_s, options.backoff_s * 2 ** (attempt - 1))
        jitter = random.Random(f"{options.seed}:{name}:{attempt}").uniform(0.5, 1.0)
        if trouble.wait_s is not None:
            with self._guard:  # the endpoint means all of us, not this thread alone
                self._free_at = max(self._free_at, time.monotonic() + trouble.wait_s)
        self.stop.wait(full * jitter)

    def _take_turn(self) -> None:
        with self._guard:
            start = max(time.monotonic(), self._free_at)
            if self._options.requests_per_minute > 0:
                self._free_at = start + 60.0 / self._options.requests_per_minute
        self.stop.wait(max(0.0, start - time.monotonic()))


def _read(answer: http.client.HTTPResponse | urllib.error.HTTPError, deadline: float) -> bytes:
    """The whole body; TimeoutError when the deadline passes, however slowly bytes trickle in."""
    blocks = []
    while block := answer.read1(BLOCK):
        blocks.append(block)
        if time.monotonic() > deadline:
            raise TimeoutError
    wanted = answer.headers.get("Content-Length")
    data = b"".join(blocks)
    if wanted is not None and wanted.isdigit() and len(data) < int(wanted):
        raise http.client.IncompleteRead(data, int(wanted) - len(data))
    return data


def _retry_after(value: str | None) -> float | None:
    """Seconds to wait, at most an hour; the header holds seconds or a date.

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
