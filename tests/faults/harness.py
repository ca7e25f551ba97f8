"""How to harm a real run, and how to tell whether it minded. See README.md in this folder.

`Zygote` starts commands in milliseconds and kills, interrupts or starves them; `shim` builds the
library that fails the k-th call; the functions compare what lies on disk.
"""

from __future__ import annotations

import atexit
import errno
import functools
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warm import Server

HERE = Path(__file__).parent
STATE = ".cecdata"
#: The order of the enums in shim.c.
CALLS = ("open", "write", "fsync", "rename", "truncate", "mkdir", "remove", "close", "read",
         "flock")  # fmt: skip
ACTIONS = ("count", "fail", "stick", "short", "torn", "kill", "kill-torn")
ANY = ("open", "write", "fsync", "rename", "truncate", "mkdir", "remove", "close", "flock")


@dataclass(frozen=True, slots=True)
class Fault:
    """The k-th (from 1) of the calls of these kinds below `root` is refused, cut or fatal.

    fail: once. stick: from then on, as a full disk does. short: the first half is written and said
    so. torn: half is written, everything after it refused. kill, kill-torn: SIGKILL instead, or
    after half.
    """

    root: Path
    k: int = 0
    action: str = "count"
    error: str = "EIO"
    calls: Sequence[str] = ANY

    def order(self) -> list[object]:
        """As the zygote takes it."""
        mask = sum(1 << CALLS.index(name) for name in self.calls)
        number = getattr(errno, self.error)
        return [str(self.root.resolve()), mask, self.k, ACTIONS.index(self.action), number]


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a command: `code` is its exit code, or minus the signal that ended it."""

    code: int
    seconds: float  # on the clock
    cpu_s: float
    text: str  # stdout and stderr
    matched: int  # calls of the kinds asked for
    hit: str  # the call that was harmed, "" where the k-th never came
    path: str  # what it touched
    kinds: Mapping[str, int]  # all calls below the root by kind
    steps: int  # calls of Python on the state of a run (calls.py)
    answered_s: float  # from the signal that was sent to the end

    @property
    def killed(self) -> bool:
        """Did SIGKILL end it?"""
        return self.code == -signal.SIGKILL


@functools.cache
def shim() -> tuple[Path | None, str]:
    """The compiled library, or None and why not; built once a test run."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None, "the fault shim needs Linux and a C compiler (cc)"
    source = HERE / "shim.c"
    name = f"cec-faults-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}.so"
    target = Path(os.environ.get("TMPDIR", "/tmp")) / name
    if not target.is_file():
        fresh = target.with_suffix(f".{os.getpid()}")
        command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(fresh), str(source), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return None, f"the fault shim cannot be compiled here: {done.stderr[:300]}"
        fresh.replace(target)
    return target, ""


class Zygote:
    """Runs command lines in warm children, one at a time; close it at the end."""

    def __init__(self, log: Path, *programs: str) -> None:
        self.log = log
        library, _ = shim()
        preload = {"LD_PRELOAD": str(library), "SHIM": str(library)} if library else {}
        threads = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
        self.server = Server(*programs, **preload, **threads, no_proxy="127.0.0.1")
        self.close = self.server.close

    def done(self, *words: object, **how: Any) -> Ended:
        """The end of a command that must succeed."""
        ended = self.run(*words, **how)
        assert ended.code == 0, ended.text
        return ended

    def run(
        self,
        program: str,
        *arguments: object,
        after_s: float | None = None,
        when: Path | str = "",
        number: int = signal.SIGKILL,
        step: int = 0,
        fault: Fault | None = None,
        stdin: Path | str = os.devnull,
        environment: Mapping[str, str] | None = None,
    ) -> Ended:
        """The command's end.

        `number` is sent `after_s` seconds after the file `when` has come to be, or before the
        `step`-th labelled step.
        """
        order = {
            "program": program,
            "arguments": [str(argument) for argument in arguments],
            "folder": str(Path.cwd()),
            # no git is started for run.json: it would cost as much as the build
            "environment": {**self.server.environment, "PATH": "", **(environment or {})},
            "after_s": after_s,
            "when": str(when),
            "signal": int(number),
            "step": [step, int(number)],
            "fault": fault.order() if fault else None,
        }
        with self.log.open("wb") as log, open(stdin, "rb") as given:  # noqa: PTH123
            streams = (given.fileno(), log.fileno(), log.fileno())
            found = self.server.ask(order, streams)
        hit, kinds = found.pop("hit"), found.pop("kinds")
        return Ended(
            **found,
            text=self.log.read_text("utf-8", "replace"),
            hit=CALLS[hit - 1] if hit else "",
            kinds=dict(zip(CALLS, kinds, strict=True)),
        )


@functools.cache
def shared() -> Zygote:
    """Warm cecdata and cecbench for all tests of a run, under the shim where it can be compiled."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    descriptor, log = tempfile.mkstemp("-log.txt", "cec-faults-", memory)
    os.close(descriptor)
    found = Zygote(Path(log), "cecdata", "cecbench")
    atexit.register(Path(log).unlink)
    atexit.register(found.close)  # first: what is registered last runs first
    return found


Canonical = Mapping[str, Callable[[bytes], bytes]]


def tree(out: Path, canonical: Canonical) -> dict[str, bytes]:
    """Every file of an output outside `.cecdata`, by name.

    `canonical` maps a file's name to what takes the times of day and durations out of it.
    """
    found: dict[str, bytes] = {}
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if path.is_file() and not name.startswith(f"{STATE}/"):
            data = path.read_bytes()
            found[name] = canonical[name](data) if name in canonical else data
    return found


def differing(one: Mapping[str, bytes], other: Mapping[str, bytes]) -> list[str]:
    """Names that are in one tree alone, or whose bytes differ."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def python(program: str) -> list[str]:
    """The console script of a program, started afresh as its user does."""
    return [sys.executable, "-c", f"from {program}.cli import main; main()"]


def temporary_names(out: Path) -> list[str]:
    """Files that look half-written and lie outside `.cecdata`: there must never be one."""
    return [
        str(path.relative_to(out))
        for path in out.rglob("*")
        if STATE not in path.relative_to(out).parts
        and (path.name.startswith(".") or path.name.endswith((".tmp", ".part")))
    ]
