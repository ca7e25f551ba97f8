"""The server: a page for people on /, in English or Chinese, and JSON for programs on /correct.

Starlette and uvicorn read the requests. Each is corrected in one of a few threads, so that a long
one holds up nobody; those that find too many before them are refused at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from cecdata.common import html
from cecdata.common.errors import InputError, UsageError
from cectrain.corrector.correction import as_record
from cectrain.corrector.corrector import Corrector

if TYPE_CHECKING:
    from typing_extensions import Self

PATH = "/correct"
_BACKLOG = 2048  # connections that the system holds while all of them come at once
_IDLE_S = 5  # after which a connection without a request is closed
_HERE = Path(__file__).parent
_WORDS = json.loads((_HERE / "page.words.json").read_text("utf-8"))  # of the page, by language
OPENAPI: dict[str, Any] = json.loads((_HERE / "openapi.json").read_text("utf-8"))
_REQUEST = OPENAPI["components"]["schemas"]["Request"]["properties"]
_TYPES: dict[str, Any] = {"array": list, "object": dict, "number": (int, float)}
_LONGEST = _REQUEST["protect"]["items"]["maxLength"]  # a text is searched by the names' lengths
# The page holds its style and its script, and asks this server alone.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server bears: bytes of a body, seconds of a request, threads, requests that wait."""

    bytes: int = 1 << 20
    seconds: float = 60.0
    workers: int = 4
    waiting: int = 128


@dataclass(slots=True)
class _Counts:
    """What `/metrics` tells; only the event loop changes it."""

    answers: Counter[int] = field(default_factory=Counter)
    texts: int = 0
    edits: int = 0
    seconds: float = 0.0
    running: int = 0

    def text(self) -> str:
        """Return the counts in the form of Prometheus."""
        lines = ["# TYPE cectrain_requests_total counter"]
        for status, count in sorted(self.answers.items()):
            lines.append(f'cectrain_requests_total{{status="{status}"}} {count}')
        for name, value, kind in (
            ("texts_total", self.texts, "counter"),
            ("edits_total", self.edits, "counter"),
            ("correction_seconds_total", round(self.seconds, 3), "counter"),
            ("requests_running", self.running, "gauge"),
        ):
            lines += [f"# TYPE cectrain_{name} {kind}", f"cectrain_{name} {value}"]
        return "\n".join([*lines, ""])


class Service:
    """The answers of one corrector to requests. origins: pages elsewhere that may send requests."""

    def __init__(
        self, corrector: Corrector, limits: Limits, *, local: bool, origins: tuple[str, ...] = ()
    ) -> None:
        self._corrector, self._limits, self._local = corrector, limits, local
        self._threads = anyio.CapacityLimiter(limits.workers)
        self._counts = _Counts()
        middleware = [Middleware(BaseHTTPMiddleware, dispatch=self._guarded)]
        if origins:
            middleware.insert(
                0,
                Middleware(
                    CORSMiddleware,
                    allow_origins=origins,
                    allow_methods=["GET", "POST"],
                    allow_headers=["Content-Type"],
                ),
            )
        self.application = Starlette(
            routes=[
                Route("/", self._page),
                Route(PATH, self._correct, methods=["POST"]),
                Route("/health", self._health),
                Route("/metrics", self._metrics),
                Route("/openapi.json", self._openapi),
            ],
            middleware=middleware,
            lifespan=_watched,
            exception_handlers={HTTPException: _refusal, 404: _nothing, 500: _failure},
        )

    async def _guarded(
        self, request: Request, answer: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Refuse a Host that does not name this machine, as a DNS rebinding attack sends it.

        A server bound to another address than the loopback interface is meant for other names.
        """
        named = request.headers.get("host", "")
        host = named.rpartition(":")[0] if not named.endswith("]") and ":" in named else named
        if self._local and not is_loopback(host.strip("[]")):
            response = _error(403, f"only calls to localhost are served, not {host!r}: see --host")
        else:
            response = await answer(request)
        self._counts.answers[response.status_code] += 1
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    async def _page(self, request: Request) -> Response:
        given = request.query_params.get("lang") or request.headers.get("accept-language", "")
        return Response(page("zh" if given.startswith("zh") else "en"), media_type="text/html")

    async def _health(self, _: Request) -> Response:
        return _answer({"status": "ok"})

    async def _metrics(self, _: Request) -> Response:
        return PlainTextResponse(self._counts.text())

    async def _openapi(self, _: Request) -> Response:
        return _answer(OPENAPI)

    async def _correct(self, request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0]
        if kind.strip().lower() != "application/json":
            raise HTTPException(415, "send Content-Type: application/json")
        if self._counts.running >= self._limits.waiting + self._limits.workers:
            raise HTTPException(503, "too many requests are waiting: try again later")
        self._counts.running += 1
        stop = threading.Event()
        try:
            with anyio.fail_after(self._limits.seconds):
                texts, wishes = _wishes(await self._body(request))
                began = time.perf_counter()
                answer, edits = await anyio.to_thread.run_sync(
                    partial(self._corrected, texts, wishes, stop.is_set),
                    abandon_on_cancel=True,
                    limiter=self._threads,
                )
        except UsageError as error:
            raise HTTPException(400, str(error)) from error
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it
        except TimeoutError:
            raise HTTPException(
                504, f"stopped after {self._limits.seconds:g} seconds: send less text per request"
            ) from None
        finally:
            stop.set()
            self._counts.running -= 1
        self._counts.seconds += time.perf_counter() - began
        self._counts.texts += len(texts)
        self._counts.edits += edits
        return Response(answer, media_type="application/json")

    def _corrected(
        self, texts: list[str], wishes: dict[str, Any], given_up: Callable[[], bool]
    ) -> tuple[str, int]:
        """Return the answer to a request, and the number of its edits."""
        corrections = self._corrector.also(**wishes).correct(texts, given_up)
        # one by one: no other thread runs while a text is encoded
        records = ", ".join(json.dumps(as_record(one)) for one in corrections)
        return f'{{"corrections": [{records}]}}', sum(len(one.edits) for one in corrections)

    async def _body(self, request: Request) -> bytes:
        most = self._limits.bytes
        beyond = HTTPException(
            413,
            f"the body has more than {most:,} bytes: send less text, or start the server with a "
            "higher --max-bytes",
        )
        if int(request.headers.get("content-length", 0)) > most:  # before 100 Continue is sent
            raise beyond
        parts, size = [], 0
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            if size > most:
                raise beyond
        return b"".join(parts)


@contextlib.asynccontextmanager
async def _watched(_: Starlette) -> AsyncIterator[None]:
    """Report what the system refuses, such as more open files, by one line without a traceback."""
    warn = cache(partial(click.echo, err=True))  # once, however often it happens

    def tell(loop: asyncio.AbstractEventLoop, what: dict[str, Any]) -> None:
        if isinstance(error := what.get("exception"), OSError):
            warn(f"Warning: {error.strerror}: new clients wait until others disconnect")
        elif "_start_serving" not in what["message"]:  # after the end, of a socket that is closed
            loop.default_exception_handler(what)

    asyncio.get_running_loop().set_exception_handler(tell)
    yield


class _Connection(H11Protocol):
    """A connection that is closed where no request begins in it for some seconds.

    Others wait for the descriptors that idle clients hold; uvicorn counts only after an answer.
    """

    def connection_made(self, transport: Any) -> None:
        """Begin to watch."""
        super().connection_made(transport)
        self._watch(self)  # no cycle that it could have seen

    def _watch(self, seen: object) -> None:
        if self.transport.is_closing():
            return
        idle = self.cycle is None or self.cycle.response_complete
        if idle and self.cycle is seen:
            self.transport.close()
        else:
            self.loop.call_later(_IDLE_S, self._watch, self.cycle if idle else self)


def _wishes(body: bytes) -> tuple[list[str], dict[str, Any]]:
    """Return the texts of a request, and its arguments for `Corrector.also`."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from error
    texts = document.pop("texts", None) if isinstance(document, dict) else None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise HTTPException(400, 'send {"texts": ["…", …]}')
    for name, value in document.items():
        if name not in _REQUEST:
            raise HTTPException(400, f"unknown key {name!r:.80}: known are {', '.join(_REQUEST)}")
        kind = _REQUEST[name]["type"]
        if not isinstance(value, _TYPES[kind]) or isinstance(value, bool):
            raise HTTPException(400, f"{name} must be of type {kind}: {value!r:.80}")
        listed = [*value, *value.values()] if kind == "object" else value if kind == "array" else ()
        if any(isinstance(text, str) and len(text) > _LONGEST for text in listed):
            raise HTTPException(400, f"{name} may hold texts of at most {_LONGEST} characters")
    return texts, document


class Server:
    """A service on an address. Raises InputError where it cannot listen there."""

    def __init__(
        self,
        address: tuple[str, int],
        corrector: Corrector,
        limits: Limits = Limits(),
        origins: tuple[str, ...] = (),
    ) -> None:
        host, port = address
        try:
            kind = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._socket = socket.create_server((host, port), family=kind, backlog=_BACKLOG)
        except OSError as error:
            raise InputError(f"cannot listen on {host}:{port} ({error.strerror})") from error
        self.server_address: tuple[str, int] = self._socket.getsockname()[:2]
        local = is_loopback(self.server_address[0])
        service = Service(corrector, limits, local=local, origins=origins)
        self._server = uvicorn.Server(
            uvicorn.Config(
                service.application,
                http=_Connection,
                access_log=False,  # a request holds what somebody wrote
                log_level="warning",
                backlog=_BACKLOG,
                server_header=False,
                timeout_graceful_shutdown=int(limits.seconds) + 1,
            )
        )

    @property
    def url(self) -> str:
        """The address of the page."""
        host, port = self.server_address
        return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

    def serve_forever(self) -> None:
        """Answer requests until `shutdown`, SIGINT or SIGTERM; finish those that have begun."""
        self._server.run(sockets=[self._socket])

    def shutdown(self) -> None:
        """Let `serve_forever` return."""
        self._server.should_exit = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def _answer(value: object, status: int = 200) -> Response:
    # A lone surrogate cannot be encoded in UTF-8; JSON's ASCII escapes can hold it.
    return Response(json.dumps(value), status, media_type="application/json")


def _error(status: int, message: str) -> Response:
    return _answer({"error": message}, status)


async def _refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    response = _error(error.status_code, error.detail)
    response.headers.update(error.headers or {})  # Allow, with 405
    return response


async def _nothing(request: Request, _: Exception) -> Response:
    return _error(404, f"unknown {request.method} {request.url.path}: send POST {PATH}, or GET /")


async def _failure(_: Request, error: Exception) -> Response:
    return _error(500, f"{type(error).__name__}: this is a bug in the server")


@cache
def page(language: str = "en") -> str:
    """Return the page; it loads nothing and sends requests only to /correct of its own server."""
    words = _WORDS[language]
    body = (_HERE / "page.html").read_text("utf-8").format_map(words)
    whole = html.page(words["title"], body, _HERE, data=words)
    return whole.replace('<html lang="en">', f'<html lang="{language}">', 1)


def is_loopback(host: str) -> bool:
    """Return whether a host's name or address is that of this machine itself."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
