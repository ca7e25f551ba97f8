"""The command lines of pages in a warm process: a fork for each, so that imports are paid once.

`started` makes a folder of programs that pass their words, streams, folder and environment on to
the server, which `python tests/programs.py SOCKET` is.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = ("cecdata", "cectrain", "cecbench")
#: what the commands of pages import late
LATE = (
    "cecbench.report.page", "cecbench.run", "cecdata.builds.build", "cecdata.embed.store",
    "cecdata.perturbation.engine", "cecdata.report", "cecdata.shards.export", "datasets",
    "polars", "pyarrow.parquet", "torch", "transformers", "cectrain.diagnosis.diagnose",
)  # fmt: skip
PROGRAM = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    told = json.dumps([{name!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(told).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(told)
    sys.exit(int(server.recv(8) or b"1"))
"""


@contextlib.contextmanager
def started() -> Iterator[Path]:
    """Yield a folder with `cecdata`, `cectrain`, `cecbench` and `python`, for PATH."""
    with tempfile.TemporaryDirectory() as name:
        folder, address = Path(name), f"{name}/socket"
        for tool in (*TOOLS, "python"):
            path = folder / tool
            path.write_text(PROGRAM.format(python=sys.executable, address=address, name=tool))
            path.chmod(0o755)
        environment = {
            **os.environ, "PYTHONPATH": str(ROOT), "HF_HOME": f"{name}/hf", "OMP_NUM_THREADS": "1"
        }  # fmt: skip
        server = subprocess.Popen(
            [sys.executable, __file__, address], stdout=subprocess.PIPE, env=environment
        )
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        yield folder
        server.terminate()
        server.wait(60)
        server.stdout.close()


def warm() -> None:
    """Import what the commands import, and load the kernels; no thread may stay behind."""
    for name in TOOLS:
        group = importlib.import_module(f"{name}.cli").cli
        for command in group.table:
            group.get_command(None, command)
    for name in LATE:
        importlib.import_module(name)
    from cectrain import Corrector

    Corrector().correct(["他己经来了。"])


def serve(address: str) -> None:
    """Fork for each program that connects."""
    warm()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        print("ready", flush=True)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a fork
        while True:
            client, _ = server.accept()
            if os.fork() == 0:
                server.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                answer(client)
            client.close()


def answer(client: socket.socket) -> None:
    """Do in this fork what the program would do, and send its exit code."""
    length, streams, _, _ = socket.recv_fds(client, 4, 3)
    told, size = b"", int.from_bytes(length, "big")
    while len(told) < size:
        told += client.recv(size - len(told))
    name, words, folder, environment = json.loads(told)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv, sys.path[0], code = [name, *words], "", 1
    try:
        if name == "python":
            option, text = words
            assert option == "-c"
            exec(compile(text, "<string>", "exec"), {"__name__": "__main__"})
            code = 0
        else:
            importlib.import_module(f"{name}.cli").main()
            code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        client.sendall(str(code).encode())
        os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
