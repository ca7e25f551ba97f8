"""Requests to an endpoint that may fail: retries with back-off, Retry-After, a deadline and a size
limit for the whole answer. No message, no log and no answer holds the key.

All requests share one event loop in a thread, and those to an endpoint keep their connections.
Proxies are those of the environment.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import math
import random
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from cecdata.common import errors
from cecdata.common.codec import parse
from cecdata.common.progress import POLL_S, stop_if_given_up
from cecdata.common.text import escape_controls

if TYPE_CHECKING:
    import httpx

RETRIED = (408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529)
ANSWER_MIB = 8  # of a body; a long chain of thoughts has a few hundred kB
ERROR_BYTES = 1 << 16  # read of the text of an error
LONGEST_PAUSE_S = 60.0  # between two tries
LONGEST_WAIT_S = 3600.0  # the longest Retry-After that is respected


def strip_secrets(url: str) -> str:
    """Return an address without user, password and query, each of which may be secret.

    >>> strip_secrets("https://me:pw@host/v1?key=1#there")
    'https://host/v1'
    """
    return errors.without_userinfo(re.split(r"[?#]", url, maxsplit=1)[0])


class EndpointError(errors.CecError):
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
    """A URL that takes and returns JSON; `send` may be called from several threads."""

    def __init__(
        self,
        url: str,
        key: str | None,
        key_variable: str,
        *,
        timeout_s: float,
        retries: int,
        backoff_s: float,
        concurrency: int,
        extra: str,
        hint: str = "",
        is_answer: Callable[[Mapping[str, object]], bool] = lambda _: True,
    ) -> None:
        """`hint` ends the message about a request that is refused for an unknown reason.

        `is_answer` says whether an object has what was asked for; without that it is asked again.
        Raises MissingPackageError, which names the extra, without httpx, UsageError for a URL, a
        key or a proxy's address that cannot be used.
        """
        try:
            importlib.import_module("httpx")  # late: a list of systems needs it not
        except ImportError:
            raise errors.MissingPackageError(
                f"endpoints need httpx, which is missing: {errors.how_to_install(extra)}"
            ) from None
        self._url = url
        self._is_answer = is_answer
        self._key, self._key_variable = key, key_variable
        self._timeout_s, self._retries, self._backoff_s = timeout_s, retries, backoff_s
        self._hint = hint
        self._free_at = 0.0  # monotonic seconds; no request starts before
        self.stop = threading.Event()  # set: threads that wait give up
        self.troubles: dict[str, int] = {}
        # httpcore logs the headers of answers, and an endpoint may echo the key in them.
        logging.getLogger("httpcore").setLevel(logging.WARNING)
        self._check_address()
        self._via = ""
        self._client, self._turns = self._open_client(), asyncio.Semaphore(concurrency)

    def send(self, body: Mapping[str, object] | None, name: str = "") -> Reply:
        """Return the reply to a POST of `body`, or to a GET where it is None.

        name: seeds the jitter of pauses. Raises EndpointError for a status that would come again.
        """
        for _, future in self.send_all([body], name):
            return future.result()
        return Reply(None, "the run was stopped")  # and nothing came

    def send_all(
        self, bodies: Iterable[Mapping[str, object] | None], name: str = ""
    ) -> Iterator[tuple[int, Future[Reply]]]:
        """Yield the number of each body and its reply, as they come; few are sent at a time.

        Raises GivenUpError where nobody waits for the replies any more.
        """
        left = {
            asyncio.run_coroutine_threadsafe(self._reply(body, name), _start_loop()): number
            for number, body in enumerate(bodies)
        }
        try:
            while left and not self.stop.is_set():
                for future in wait(left, POLL_S, FIRST_COMPLETED).done:
                    yield left.pop(future), future
                stop_if_given_up()
        finally:
            for future in left:
                future.cancel()

    def hide_key(self, text: str) -> str:
        """Return the text without the key, should an endpoint echo it."""
        return errors.hide_key(text, self._key)

    def _check_address(self) -> None:
        """Raise UsageError for a key or a URL that cannot be used, or shows the key."""
        import httpx

        if self._key and not re.fullmatch("[!-~]+", self._key):
            raise errors.UsageError(
                f"the variable {self._key_variable} must hold a key of visible ASCII characters"
            )
        if self.hide_key(unquote(self._url)) != unquote(self._url):
            raise errors.UsageError(
                "the URL contains the key, so outputs would show it: set the key only in the "
                f"environment variable {self._key_variable}"
            )
        try:
            httpx.URL(self._url)
        except httpx.InvalidURL as error:
            raise errors.UsageError(f"{strip_secrets(self._url)} is not a URL: {error}") from None

    def _open_client(self) -> httpx.AsyncClient:
        """Return a client for this endpoint, through the proxy of the environment."""
        import ssl

        import httpx

        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # a compressed answer may expand to any size
        }
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        address = find_proxy(self._url)
        direct = f"list {urlsplit(self._url).hostname} in NO_PROXY to connect without it"
        if address:
            self._via = f" through the proxy of the environment: {direct}"
        secure = self._url.lower().startswith("https:") or address.startswith("https:")
        try:
            client = httpx.AsyncClient(
                headers=headers,
                verify=ssl.create_default_context() if secure else False,
                timeout=self._timeout_s,
                proxy=address or None,
                trust_env=False,
            )
        except ImportError:
            raise errors.UsageError(
                "the environment names a SOCKS proxy, which httpx uses only with the package "
                f"socksio: run pip install 'httpx[socks]', or {direct}"
            ) from None
        except (ValueError, httpx.InvalidURL):
            # The message does not repeat the address: it may hold a password.
            raise errors.UsageError(
                "the proxy of the environment cannot be used: set HTTP_PROXY, HTTPS_PROXY or "
                f"ALL_PROXY to http://HOST:PORT, or {direct}"
            ) from None
        weakref.finalize(self, _close, client, _start_loop()).atexit = False
        return client

    async def _reply(self, body: Mapping[str, object] | None, name: str) -> Reply:
        """Return the reply to a request that waits its turn, and is sent again after a fault."""
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        trouble = ""
        async with self._turns:
            for attempt in range(self._retries + 1):
                if attempt:
                    pause_s = min(LONGEST_PAUSE_S, self._backoff_s * 2.0 ** (attempt - 1))
                    jitter = random.Random(f"{name}:{attempt}").uniform(0.5, 1.0)
                    await asyncio.sleep(pause_s * jitter)
                await asyncio.sleep(max(0.0, self._free_at - time.monotonic()))
                try:
                    return await self._try(data)
                except _TroubleError as error:
                    trouble = f"{error}{self._via}"
                    self.troubles[trouble] = self.troubles.get(trouble, 0) + 1
                    if error.wait_s is not None:  # holds for all requests
                        self._free_at = max(self._free_at, time.monotonic() + error.wait_s)
        return Reply(None, trouble)

    async def _try(self, data: bytes | None) -> Reply:
        """Send a request once; raise _TroubleError where another try may succeed."""
        import httpx

        try:
            # The deadline is for all of it: httpx's own limits are for one read each.
            reply = await asyncio.wait_for(self._exchange(data), self._timeout_s)
        except (asyncio.TimeoutError, httpx.TimeoutException):
            raise _TroubleError("timed out") from None
        except (httpx.ConnectError, httpx.ProxyError) as error:
            raise _TroubleError(f"no connection ({type(error).__name__})") from None
        except (httpx.TransportError, OSError) as error:
            raise _TroubleError(f"the connection broke ({type(error).__name__})") from None
        status, headers, answer = reply
        return self._parse(answer) if status == 200 else self._refuse(status, headers, answer)

    async def _exchange(self, data: bytes | None) -> tuple[int, httpx.Headers, bytes]:
        """Return status, headers and body; of an error's body the first bytes."""
        method = "GET" if data is None else "POST"
        async with self._client.stream(method, self._url, content=data) as answer:
            if 300 <= answer.status_code < 400:
                place = strip_secrets(answer.headers.get("Location") or "no address")
                raise EndpointError(
                    f"{self._url} answered HTTP {answer.status_code} and redirects to "
                    f"{escape_controls(self.hide_key(place))}. Redirects are not followed, because "
                    "the key would be sent there: use that URL if you trust it"
                )
            body = bytearray()
            async for block in answer.aiter_raw():
                body += block
                if answer.status_code != 200 and len(body) >= ERROR_BYTES:
                    break
                if len(body) > ANSWER_MIB << 20:
                    raise _TroubleError(f"an answer of more than {ANSWER_MIB} MiB")
            return answer.status_code, answer.headers, bytes(body)

    def _refuse(self, status: int, headers: httpx.Headers, body: bytes) -> Reply:
        """Return a filtered reply, or raise the error of a status that is not 200."""
        if status in RETRIED:
            raise _TroubleError(f"HTTP {status}", _retry_after(headers.get("Retry-After")))
        text = escape_controls(self.hide_key(body[:ERROR_BYTES].decode("utf-8", "replace")))
        if status in (400, 403, 422) and ("content_filter" in text or "inspection" in text):
            return Reply(None, f"HTTP {status}: {text[:500]}", filtered=True)
        hints = {
            401: f"set the key in the environment variable {self._key_variable}",
            403: f"check the key in {self._key_variable} and its permissions",
            404: "check the URL (it usually ends in /v1) and the model's name",
        }
        hint = hints.get(status, self._hint)
        said = f"{self._url} answered HTTP {status}{self._via}: {text[:300]}"
        raise EndpointError(f"{said} — {hint}" if hint else said, status)

    def _parse(self, data: bytes) -> Reply:
        """Return the reply in a body; raise _TroubleError where it has no answer."""
        try:
            body = parse(data)
        except ValueError:
            raise _TroubleError("not JSON" if data.strip() else "an empty body") from None
        if not isinstance(body, dict) or not self._is_answer(body):
            raise _TroubleError("JSON without an answer")
        return Reply(self._hide_in(body) if self._key else body)

    def _hide_in(self, value: Any) -> Any:
        """Return a JSON value without the key, wherever it may be in it."""
        if isinstance(value, str):
            return self.hide_key(value)
        if isinstance(value, dict):
            return {self.hide_key(name): self._hide_in(inner) for name, inner in value.items()}
        return [self._hide_in(inner) for inner in value] if isinstance(value, list) else value


@cache
def _start_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of all requests, which runs in a thread of its own."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # of requests that nobody waits for any more
    threading.Thread(target=loop.run_forever, name="cec-zero-http", daemon=True).start()
    return loop


def _close(client: httpx.AsyncClient, loop: asyncio.AbstractEventLoop) -> None:
    """Close a client in the thread of its event loop."""
    loop.call_soon_threadsafe(lambda: loop.create_task(client.aclose()))


def find_proxy(url: str) -> str:
    """Return the address of the proxy that the environment names for a URL; "" without one."""
    parts, proxies = urlsplit(url), getproxies_environment()
    if proxy_bypass(parts.hostname or ""):
        return ""
    address = proxies.get(parts.scheme.lower()) or proxies.get("all", "")
    return f"http://{address}" if address and "://" not in address else address


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
