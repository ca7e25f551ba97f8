"""The server: a page for people on /, in English or Chinese, and for programs JSON on /correct and
files on /file.

Starlette and uvicorn read the requests. Each is corrected in a thread of its own, of which a few
run at a time, so that a long one holds up nobody. One whose client leaves is given up.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import socket
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from cecdata.common import html
from cecdata.common.errors import CecError, InputError, UsageError
from cecdata.common.progress import asking_whether_given_up, stop_if_given_up
from cectrain.corrector.correction import to_record
from cectrain.corrector.corrector import Corrector
from cectrain.documents.document import correct_document, list_edits
from cectrain.documents.table import Reading, read_document

if TYPE_CHECKING:
    from typing_extensions import Self

PATH = "/correct"
_BACKLOG = 2048  # connections that the system holds while all of them come at once
_MOST_REQUESTS = 512  # at once, each of which may hold a body
_LEAVE_S = 7  # that requests still have when the server is told to end
_HERE = Path(__file__).parent
_WORDS = json.loads((_HERE / "page.words.json").read_text("utf-8"))  # of the page, by language
OPENAPI: dict[str, Any] = json.loads((_HERE / "openapi.json").read_text("utf-8"))
_REQUEST = OPENAPI["components"]["schemas"]["Request"]["properties"]
_PLACES = ("name", "encoding", "column")  # of the texts in a file
_Work = Callable[[Callable[[], bool]], "str | bytes"]  # with whether nobody waits any more
_TYPES: dict[str, Any] = {"array": list, "object": dict, "number": (int, float)}
_LONGEST = _REQUEST["protect"]["items"]["maxLength"]  # a text is searched by the names' lengths
# The page holds its style and its script, and asks this server alone.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Server:
    """The answers of one corrector to requests, on an address.

    Requests have at most so many bytes, are answered in at most so many seconds, and corrected in
    so many threads. Raises InputError where the server cannot listen on the address.
    """

    def __init__(
        self,
        address: tuple[str, int],
        corrector: Corrector,
        *,
        max_bytes: int = 1 << 20,
        seconds: float = 300.0,
        workers: int = 4,
    ) -> None:
        self._corrector, self._max_bytes, self._seconds = corrector, max_bytes, seconds
        self._free = asyncio.Semaphore(workers)
        host, port = address
        try:
            kind = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._socket = socket.create_server((host, port), family=kind, backlog=_BACKLOG)
        except OSError as error:
            raise InputError(f"cannot listen on {host}:{port} ({error.strerror})") from error
        self.server_address: tuple[str, int] = self._socket.getsockname()[:2]
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._make_application(),
                access_log=False,  # a request holds what somebody wrote
                log_level="warning",
                backlog=_BACKLOG,
                limit_concurrency=_MOST_REQUESTS,
                server_header=False,
                timeout_graceful_shutdown=_LEAVE_S,
            )
        )

    def _make_application(self) -> Starlette:
        application = Starlette(
            routes=[
                Route("/", _show_page),
                Route(PATH, self._correct, methods=["POST"]),
                Route("/file", self._correct_file, methods=["POST"]),
                Route("/health", _tell_health),
                Route("/openapi.json", _describe),
            ],
            exception_handlers={HTTPException: _refuse, 404: _find_nothing, 500: _fail},
        )
        application.router.redirect_slashes = False
        return application

    @property
    def url(self) -> str:
        """The address of the page."""
        host, port = self.server_address
        return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

    def serve_forever(self) -> None:
        """Answer requests until `shutdown`, SIGINT or SIGTERM; those begun have some seconds."""
        self._server.run(sockets=[self._socket])

    def shutdown(self) -> None:
        """Let `serve_forever` return."""
        self._server.should_exit = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    async def _correct(self, request: Request) -> Response:
        def prepare(body: bytes) -> _Work:
            return partial(self._answer, *_read_request(body))

        return await self._work(request, "application/json", prepare)

    async def _correct_file(self, request: Request) -> Response:
        def prepare(body: bytes) -> _Work:
            return partial(self._write_file, *self._read_query(request), body)

        return await self._work(request, "application/octet-stream", prepare)

    def _read_query(self, request: Request) -> tuple[str, Reading, dict[str, Any]]:
        """Return the name of a file, how it is read, and its arguments for `Corrector.also`.

        A confidence below that of the corrector, as the slider has at first, changes nothing.
        """
        query = request.query_params
        arguments: dict[str, Any] = dict(query)
        name, encoding, column = (arguments.pop(key, None) for key in _PLACES)
        if "protect" in arguments:
            arguments["protect"] = query.getlist("protect")
        with contextlib.suppress(KeyError, ValueError):  # text that is no number is refused below
            arguments["confidence"] = max(float(arguments["confidence"]), self._corrector.least)
        _check_arguments(arguments, (*_PLACES, "confidence", "protect"))
        return name or "", Reading(encoding, column), arguments

    async def _work(
        self, request: Request, kind: str, prepare: Callable[[bytes], _Work]
    ) -> Response:
        """Answer with what a thread makes of the body; `kind` is the content type of both.

        prepare: returns the work of the thread, or raises HTTPException or UsageError.
        """
        self._check_host(request)
        _check_type(request, kind)
        given_up = threading.Event()
        try:
            with anyio.fail_after(self._seconds):
                work = prepare(await self._read_body(request))
                answer = asyncio.ensure_future(self._run_in_thread(lambda: work(given_up.is_set)))
                leaving = asyncio.ensure_future(_wait_for_end(request))
                try:
                    await asyncio.wait({answer, leaving}, return_when=asyncio.FIRST_COMPLETED)
                    if not answer.done():
                        raise ClientDisconnect
                    return Response(answer.result(), media_type=kind)
                finally:
                    given_up.set()
                    answer.cancel()
                    leaving.cancel()
        except UsageError as error:
            raise HTTPException(400, str(error)) from error
        except CecError as error:  # of the model, as of a judge behind an endpoint
            raise HTTPException(502, str(error)) from error
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it
        except TimeoutError:
            raise HTTPException(
                504, f"stopped after {self._seconds:g} seconds: send less text per request"
            ) from None
        except asyncio.CancelledError:  # by uvicorn
            raise HTTPException(503, "the server ends: try again later") from None

    def _check_host(self, request: Request) -> None:
        """Raise HTTPException for a Host that does not name this machine.

        A DNS rebinding attack sends one. A server bound to another address than the loopback
        interface is meant for other names.
        """
        named = request.headers.get("host", "")
        host = named.rpartition(":")[0] if not named.endswith("]") and ":" in named else named
        if is_loopback(self.server_address[0]) and not is_loopback(host.strip("[]")):
            raise HTTPException(
                403, f"only calls to localhost are served, not {host!r}: see --host"
            )

    async def _run_in_thread(self, work: Callable[[], str | bytes]) -> str | bytes:
        """Return what `work` returns in a thread; the next starts when it ends, awaited or not."""
        await self._free.acquire()
        loop, future = asyncio.get_running_loop(), Future[str | bytes]()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
                future.set_exception(error)
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._free.release)

        future.set_running_or_notify_cancel()  # so that who stops waiting does not cancel it
        threading.Thread(target=run, daemon=True).start()  # the process need not wait for it
        return await asyncio.wrap_future(future)

    def _answer(
        self, texts: list[str], arguments: dict[str, Any], given_up: Callable[[], bool]
    ) -> str:
        with asking_whether_given_up(given_up):
            corrections = self._corrector.also(**arguments).correct(texts)
            records = []
            for correction in corrections:  # no other thread runs while a text is encoded
                stop_if_given_up()
                records.append(json.dumps(to_record(correction)))
        return f'{{"corrections": [{", ".join(records)}]}}'

    def _write_file(
        self,
        name: str,
        reading: Reading,
        arguments: dict[str, Any],
        body: bytes,
        given_up: Callable[[], bool],
    ) -> bytes:
        """Return a file with its corrections; its name tells the format."""
        try:
            with asking_whether_given_up(given_up):
                corrector = self._corrector.also(**arguments)
                document = read_document(name, body, reading)
                return document.write(list_edits(correct_document(corrector, document)))
        except InputError as error:
            raise UsageError(f"{name} {error}") from error

    async def _read_body(self, request: Request) -> bytes:
        """Return the body of a request; raise HTTPException for one that is too long."""
        most = self._max_bytes
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


async def _wait_for_end(request: Request) -> None:
    """Return when the client of a request whose body was read leaves."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _check_type(request: Request, kind: str) -> None:
    stated = request.headers.get("content-type", "").lower().partition(";")[0]
    if stated.strip() != kind:
        raise HTTPException(415, f"send Content-Type: {kind}")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise HTTPException(415, "send the body without Content-Encoding")


def _read_request(body: bytes) -> tuple[list[str], dict[str, Any]]:
    """Return the texts of a request, and its arguments for `Corrector.also`."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON in UTF-8: {error}") from error
    texts = document.pop("texts", None) if isinstance(document, dict) else None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise HTTPException(400, 'send {"texts": ["…", …]}')
    _check_arguments(document, _REQUEST)
    return texts, document


def _check_arguments(arguments: dict[str, Any], known: Collection[str]) -> None:
    """Raise HTTPException for an unknown argument of `Corrector.also`, or another type."""
    for name, value in arguments.items():
        if name not in known:
            raise HTTPException(400, f"unknown key {name!r:.80}: known are {', '.join(known)}")
        kind = _REQUEST[name]["type"]
        if not isinstance(value, _TYPES[kind]) or isinstance(value, bool):
            raise HTTPException(400, f"{name} must be of type {kind}: {value!r:.80}")
        texts = [*value] if kind in {"array", "object"} else []  # keys of an object
        texts += value.values() if kind == "object" else []
        if any(isinstance(text, str) and len(text) > _LONGEST for text in texts):
            raise HTTPException(400, f"{name} may hold texts of at most {_LONGEST} characters")


def _to_response(value: object, status: int = 200) -> Response:
    """Return a value as JSON.

    A lone surrogate cannot be encoded in UTF-8; JSON's ASCII escapes can hold it.
    """
    return Response(json.dumps(value), status, media_type="application/json")


def _make_error(status: int, message: str) -> Response:
    return _to_response({"error": message}, status)


async def _refuse(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    response = _make_error(error.status_code, error.detail)
    response.headers.update(error.headers or {})  # Allow, with 405
    return response


async def _find_nothing(request: Request, _: Exception) -> Response:
    return _make_error(
        404, f"unknown {request.method} {request.url.path}: send POST {PATH}, or GET /"
    )


async def _fail(_: Request, error: Exception) -> Response:
    return _make_error(500, f"{type(error).__name__}: this is a bug in the server")


async def _show_page(request: Request) -> Response:
    """Answer with the page, in the language that the address or the browser names."""
    language = request.query_params.get("lang") or request.headers.get("accept-language", "")
    whole = make_page("zh" if language.startswith("zh") else "en")
    return Response(whole, headers={"Content-Security-Policy": _POLICY}, media_type="text/html")


async def _tell_health(_: Request) -> Response:
    return _to_response({"status": "ok"})


async def _describe(_: Request) -> Response:
    return _to_response(OPENAPI)


@cache
def make_page(language: str = "en") -> str:
    """Return the page; it loads nothing and sends requests only to /correct of its own server."""
    words = _WORDS[language]
    body = (_HERE / "page.html").read_text("utf-8").format_map(words)
    whole = html.write_page(words["title"], body, _HERE / "page.js", data=words)
    return whole.replace('<html lang="en">', f'<html lang="{language}">', 1)


def is_loopback(host: str) -> bool:
    """Return whether a host's name or address is that of this machine itself."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
