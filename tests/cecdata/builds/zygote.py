"""A warm process that forks a child for every command line: a build starts in milliseconds.

Standard input, a line: a JSON list of seconds (or null), a signal to send then, a file to be
its standard input, and arguments.
Standard output: the child's exit code, or minus the signal that ended it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback

import numpy as np
import pyarrow as pa

from cecdata import cli, skin
from cecdata.config import load
from cecdata.corpus.dedup import Dedup
from cecdata.corpus.lines import split
from cecdata.corpus.normalise import distinct, normalise
from cecdata.perturb.engine import Histogram, Perturber, find_rates
from cecdata.perturb.tables import compiled
from cecdata.shards.schema import ROW, SENTENCE


def warm() -> None:
    """Tables and kernels, without a thread that a child would miss."""
    config = load("paper")
    tables = compiled(config.prior)
    ids, texts = pa.array(np.array([1], np.uint64)), pa.array(["今天天气很好。"])
    histogram = Histogram(config, tables)
    histogram.add(texts)
    batch = pa.RecordBatch.from_arrays([ids, texts, pa.array([""])], schema=SENTENCE)
    Perturber(config, tables, find_rates(config, tables, histogram.counts)).pairs(batch)
    rows = [{"text": "今天 天气很好。 ", "origin": "a", "file": "a", "row": 1}]
    distinct(normalise(pa.RecordBatch.from_pylist(rows, ROW)), Dedup())
    split("一\n".encode())
    cli.cli.get_command(None, "build")


def child(arguments: list[str], file: str) -> int:
    """As `cecdata.cli.main` does it."""
    signal.signal(signal.SIGTERM, skin._interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(os.environ["ZYGOTE_LOG"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.dup2(2, 1)
    os.dup2(os.open(file, os.O_RDONLY), 0)
    try:
        return skin.run(cli.cli, arguments)
    except BaseException:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
        return 1


def main() -> None:
    warm()
    print("ready", flush=True)
    for line in sys.stdin:
        after_s, number, file, arguments = json.loads(line)
        pid = os.fork()
        if pid == 0:
            code = child(arguments, file)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        if after_s is not None:
            time.sleep(after_s)
            os.kill(pid, number)  # if it has ended it is a zombie still: nobody else is hit
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
