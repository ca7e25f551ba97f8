"""Measure what many clients at once do to the server: refused requests, and its memory.

    python benchmarks/bench_serve.py [--pool CLEAN.parquet] [--requests 2000] [--workers 4]

`cectrain serve` runs in a process of its own. Each client sends one request after another, each
with a sentence of the pool; a request is refused where its answer is no 200. Memory, by Linux, is
printed after each thousand.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from bench_clean import drawn
from common import arguments, machine


def asked(address: str, text: str) -> object:
    """Return the status of a request, or the error that ends it."""
    connection = http.client.HTTPConnection(address, timeout=120)
    try:
        body = json.dumps({"texts": [text]})
        connection.request("POST", "/correct", body, {"Content-Type": "application/json"})
        status: object = connection.getresponse().status
    except OSError as error:
        status = type(error).__name__
    finally:
        connection.close()
    return status


def memory_mb(process: int) -> float:
    """Return the resident memory of a process."""
    line = next(
        line
        for line in Path(f"/proc/{process}/status").read_text().splitlines()
        if line.startswith("VmRSS")
    )
    return int(line.split()[1]) / 1024


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--requests", type=int, default=2_000, help="requests  [2000]")
    parser.add_argument("--clients", type=int, default=50, help="clients at once  [50]")
    parser.add_argument("--workers", default="4", help="threads of the server  [4]")
    given = parser.parse_args()
    print(machine())
    texts = drawn(given.pool, given.requests)["text"].to_list()
    command = [sys.executable, "-m", "cectrain", "serve", "--port", "0"]
    command += ["--workers", given.workers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = urlsplit(server.stdout.readline().split()[0]).netloc
        asked(address, texts[0])  # loads the models
        answers: Counter[object] = Counter()
        started = time.perf_counter()
        with ThreadPoolExecutor(given.clients) as clients:
            for first in range(0, len(texts), 1000):
                part = texts[first : first + 1000]
                answers.update(clients.map(asked, [address] * len(part), part))
                print(f"{answers.total():6,} requests, {memory_mb(server.pid):.0f} MB")
        seconds = time.perf_counter() - started
        server.terminate()
    refused = answers.total() - answers[200]
    print(f"{refused} of {answers.total():,} refused: {dict(answers)}; {seconds:.0f} s")


if __name__ == "__main__":
    main()
