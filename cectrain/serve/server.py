"""The server: a page for people on /, and JSON for programs on /correct."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from cectrain.corrector.corrector import Corrector
from cectrain.serve.page import page

PATH = "/correct"
SECONDS = 30.0  # a client that sends nothing for so long is disconnected
# The page holds its style and its script, and asks this server alone.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Server(ThreadingHTTPServer):
    """Serve one corrector; it corrects one request at a time.

    most_bytes: the longest body of a request that is read.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], corrector: Corrector, most_bytes: int) -> None:
        super().__init__(address, _Handler)
        self.corrector, self.most_bytes, self._turn = corrector, most_bytes, Lock()

    @property
    def url(self) -> str:
        """The address of the page."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/"

    def correct(self, texts: Sequence[str]) -> list[dict[str, object]]:
        """Return one object for each text, as `cectrain correct --json` prints it."""
        with self._turn:
            return [asdict(correction) for correction in self.corrector.correct(texts)]


class _RefusedError(Exception):
    """A request that is not answered: a status and a sentence on why."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = SECONDS
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Send the page."""
        self._answer("GET")

    def do_POST(self) -> None:
        """Correct the texts of a JSON body."""
        self._answer("POST")

    def _answer(self, method: str) -> None:
        try:
            kind, body = self._reply(method)
        except _RefusedError as refused:
            self.close_connection = True  # the rest of its body is not read
            self._send(refused.status, "application/json", _json({"error": str(refused)}))
        else:
            self._send(HTTPStatus.OK, kind, body)

    def _reply(self, method: str) -> tuple[str, bytes]:
        self._check_host()
        if method == "GET" and self.path == "/":
            return "text/html", page().encode()
        if method == "POST" and self.path == PATH:
            results = self.server.correct(self._texts())
            return "application/json", _json({"corrections": results})
        raise _RefusedError(
            HTTPStatus.NOT_FOUND, f"{method} {self.path}: send POST {PATH}, or GET /"
        )

    def _check_host(self) -> None:
        """Refuse a Host that does not name this machine, as a DNS rebinding attack sends it.

        A server bound to another address than the loopback interface is meant for other names.
        """
        if not _is_loopback(str(self.server.server_address[0])):
            return
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if not _is_loopback(host.strip("[]")):
            raise _RefusedError(
                HTTPStatus.FORBIDDEN, f"Host {host!r} is not localhost or its address"
            )

    def _texts(self) -> list[str]:
        if self.headers.get_content_type() != "application/json":
            raise _RefusedError(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send Content-Type: application/json"
            )
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,18}", length):
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "send Content-Length")
        if int(length) > self.server.most_bytes:
            raise _RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the body has {int(length):,} bytes, and the limit is "
                f"{self.server.most_bytes:,}: send less text, or start with --max-bytes",
            )
        try:
            document = json.loads(self.rfile.read(int(length)))
        except ValueError as error:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, f"not JSON: {error}") from error
        texts = document.get("texts") if isinstance(document, dict) else None
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise _RefusedError(HTTPStatus.BAD_REQUEST, 'send {"texts": ["…", …]}')
        return texts

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: a request holds what somebody wrote."""


def _json(value: object) -> bytes:
    # A lone surrogate cannot be encoded in UTF-8; JSON's ASCII escapes can hold it.
    return json.dumps(value).encode()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
