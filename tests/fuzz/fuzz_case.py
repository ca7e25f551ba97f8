"""One case: the bytes go in, and either a result comes out or an error of the declared family.

A crash is any other exception, more than five seconds of CPU, more than a gibibyte, an error that
does not name its file, or a text handed out that no file could hold.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import resource
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fuzz_mutate import Mutator

from cecdata.common.errors import CecError

SECONDS = 5.0
MEMORY = 1 << 30
# A Parquet page may claim 2 GiB (its header holds 31 bits); Arrow asks for them before it looks.
PAGE = 3 << 30
CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True)
class Reader:
    """`read` takes the file that holds the case and gives the texts that it handed out.

    `names_file` False: what is read is no file (an answer of an endpoint), or the error is about a
    file beside it. `memory` is what one case may add to the process, in bytes. `suite` is how many
    cases the ordinary suite runs.
    """

    name: str
    file: str
    read: Callable[[Path], Iterable[str] | None]
    mutator: Mutator
    names_file: bool = True
    memory: int = MEMORY
    suite: int = 500


class LeakError(AssertionError):
    """What a reader let out that it must not."""


class _HangError(BaseException):
    """Raised by the alarm; a BaseException, so that no reader can swallow it."""


def check(reader: Reader, data: bytes, path: Path) -> str:
    """Run one case; the class of the expected error, or how many texts the reader took from it.

    LeakError with the traceback otherwise.
    """
    if reader.name not in _warmed:
        _warm(reader, path)
    path.unlink(missing_ok=True)  # what is still mapped of the last case stays as it is
    path.write_bytes(data)
    start, before = _resident(), _peak_before(reader)
    outcome = ""
    try:
        with _alarm():
            texts = reader.read(path)
            for number, text in enumerate(texts or (), 1):
                text.encode("utf-8")
                outcome = f"{number} texts"
    except CecError as error:
        _check_message(reader, error, path)
        outcome = type(error).__name__
    except _HangError:
        raise LeakError(f"{reader.name}: more than {SECONDS:g} s\n{_where()}") from None
    except Exception as error:
        raise LeakError(f"{reader.name}: {type(error).__name__}: {error}\n{_where()}") from error
    finally:
        peak = _peak()
        _seen[reader.name] = peak
    if peak > before and peak - start > reader.memory:  # the peak of this case, of none before
        raise LeakError(f"{reader.name}: took {(peak - start) >> 20} MiB")
    return outcome


_warmed: set[str] = set()


def _warm(reader: Reader, path: Path) -> None:
    """What is imported and compiled once is not the first case's fault."""
    _warmed.add(reader.name)
    path.write_bytes(reader.mutator.seeds[0])
    with contextlib.suppress(Exception):  # its own case tells
        list(reader.read(path) or ())


def past(reader: Reader) -> list[bytes]:
    """The cases that once failed."""
    folder = CORPUS / reader.name
    return [path.read_bytes() for path in sorted(folder.glob("*"))] if folder.is_dir() else []


def keep(reader: Reader, data: bytes) -> None:
    """Write a failing case where the suite replays it."""
    path = CORPUS / reader.name / hashlib.sha256(data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _check_message(reader: Reader, error: CecError, path: Path) -> None:
    text = str(error)
    if not text.strip():
        raise LeakError(f"{reader.name}: {type(error).__name__} without a word")
    if reader.names_file and path.name not in text and str(path.parent) not in text:
        raise LeakError(f"{reader.name}: the message does not name {path.name}: {text[:300]}")


@functools.cache
def _resident() -> int:
    """Bytes in memory before the first case; the cases of a process leave nothing behind."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


_seen: dict[str, int] = {}  # reader of the case before → the peak after it


def _peak_before(reader: Reader) -> int:
    """Asked of the system once a case only: twice was a tenth of the time of many readers."""
    if reader.name not in _seen:
        _seen.clear()  # other cases, or other tests, may have come between
        return _peak()
    return _seen[reader.name]


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _where() -> str:
    return "".join(traceback.format_exc().splitlines(keepends=True)[-12:])


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    # CPU time: on a busy machine the wall clock says little.
    _answer_the_bell()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@functools.cache
def _answer_the_bell() -> None:
    def ring(*_: object) -> None:
        raise _HangError

    signal.signal(signal.SIGPROF, ring)  # once: twice a case cost as much as a small reader
