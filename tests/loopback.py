"""An HTTP server on the loopback interface that answers chat completions, with faults on demand."""

import contextlib
import json
import socket
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FIX = {"己经": "已经", "在见": "再见"}


def corrected(sentence):
    for wrong, right in FIX.items():
        sentence = sentence.replace(wrong, right)
    return sentence


def completion(text, finish="stop"):
    return {
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 7},
    }


def answers_well(*_):
    """Answer without a fault."""


class Server(ThreadingHTTPServer):
    """The server. `misbehave(sentence, nth)` returns None, or a function that answers in its place.

    asked and answered count the requests and the complete replies of each sentence.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, misbehave=answers_well, handler=None):
        super().__init__(("127.0.0.1", 0), handler or Handler)
        self.misbehave = misbehave
        self.stopping = False
        self.get = says("他已经来了。")  # what a GET is answered with
        self.asked = Counter()
        self.answered = Counter()
        self.headers_seen = []
        self.bodies = []
        self.times = []
        self.guard = threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request, client_address):
        pass  # a client that hangs up is part of the tests


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        sentence = body["messages"][-1]["content"]
        with self.server.guard:
            self.server.asked[sentence] += 1
            nth = self.server.asked[sentence]
            self.server.headers_seen.append(dict(self.headers))
            self.server.bodies.append(body)
            self.server.times.append(time.monotonic())
        act = self.server.misbehave(sentence, nth)
        if act is None:
            self.reply(completion(corrected(sentence)))
            with self.server.guard:
                self.server.answered[sentence] += 1
        else:
            act(self)

    def do_GET(self):
        """Answer a GET, as the target of a redirect may do."""
        with self.server.guard:
            self.server.headers_seen.append(dict(self.headers))
        self.server.get(self)

    do_HEAD = do_GET

    def reply(self, record, code=200, **headers):
        self.raw(json.dumps(record, ensure_ascii=False).encode(), code, **headers)

    def raw(self, data, code=200, length=None, **headers):
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True

    def hang_up(self):
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True


def status(code, **headers):
    return lambda handler: handler.reply({"error": {"message": "busy"}}, code, **headers)


def says(text, finish="stop"):
    return lambda handler: handler.reply(completion(text, finish))


def half_json(handler):
    handler.raw(b'{"choices": [{"message": {"content": "\xe4\xbb\x96')


def cut_off(handler):
    handler.raw(b'{"choices": [{"mess', length=500)


def no_choices(handler):
    handler.reply({"object": "chat.completion", "choices": []})


def empty_body(handler):
    handler.raw(b"")


def sleeps(seconds):
    def act(handler):
        time.sleep(seconds)
        with contextlib.suppress(OSError):
            handler.reply(completion("太晚了"))

    return act


def trickles(handler):
    """Send one byte at a time, so that no single read times out."""
    data = json.dumps(completion("慢")).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    with contextlib.suppress(OSError):
        for byte in data:
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            time.sleep(0.05)


def _drips(first, again):
    """Write `first`, then `again` every 20 ms until the client hangs up."""

    def act(handler):
        handler.close_connection = True
        with contextlib.suppress(OSError):
            handler.wfile.write(first)
            while not handler.server.stopping:
                handler.wfile.write(again)
                handler.wfile.flush()
                time.sleep(0.02)

    return act


drips_headers = _drips(b"HTTP/1.1 200 OK\r\nX-Long: ", b"a")
drips_status = _drips(b"", b"H")
always_continues = _drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n")


def endless(handler):
    """Send a body without an end."""
    handler.close_connection = True
    with contextlib.suppress(OSError):
        handler.wfile.write(b'HTTP/1.1 200 OK\r\n\r\n{"choices": "')
        while not handler.server.stopping:
            handler.wfile.write(b"a" * (1 << 16))


def endless_chunks(handler):
    """Send a body without an end in HTTP chunks."""
    handler.close_connection = True
    with contextlib.suppress(OSError):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not handler.server.stopping:
            handler.wfile.write(b"10000\r\n" + b"a" * (1 << 16) + b"\r\n")


@contextlib.contextmanager
def serving(misbehave=answers_well, handler=None):
    server = Server(misbehave, handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.stopping = True
        server.shutdown()
        thread.join()
        server.server_close()
