from __future__ import annotations

import errno
import hashlib
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from calls import counted, nth, struck
from hypothesis import given, settings
from hypothesis import strategies as st

from cecdata.common.durable import Journal, publish, write, write_bytes, write_text
from cecdata.common.durable.files import FileRecord, describe_os_error, naming_errors
from cecdata.common.errors import CecError, DiskFullError, UsageError


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@given(st.binary(max_size=3000))
@settings(deadline=None)
def test_a_written_file_is_what_its_record_says(tmp_path_factory, data):
    """The record has the SHA-256 and size of what lies under the final name, alone there."""
    folder = tmp_path_factory.mktemp("w")
    record = write_bytes(folder / "a.bin", data)
    assert (folder / "a.bin").read_bytes() == data
    assert record == FileRecord(folder / "a.bin", hashlib.sha256(data).hexdigest(), len(data))
    assert names(folder) == {"a.bin"}


def test_text_is_utf8_and_replaces(tmp_path):
    """A second write replaces the first; folders are made; permissions are the usual ones."""
    path = tmp_path / "deep" / "a.txt"
    write_text(path, "旧")
    write_text(path, "新𠀀")
    assert path.read_text("utf-8") == "新𠀀"
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_failure_at_any_call_leaves_old_or_new(tmp_path):
    """Whatever call fails: the old file or the new one stands there whole, nothing else."""

    def fail() -> None:
        raise OSError(errno.EIO, "Input/output error")

    def rewrite(folder: Path) -> Path:
        path = write_bytes(folder / "out" / "a", b"old", tmp=folder / "tmp").path
        calls.append(counted(folder, lambda: write_bytes(path, b"new", tmp=folder / "tmp")))
        return write_bytes(path, b"old", tmp=folder / "tmp").path

    calls: list[list[str]] = []
    rewrite(tmp_path / "whole")
    assert len(calls[0]) > 5
    outcomes = set()
    for stop in range(len(calls[0])):
        folder = tmp_path / str(stop)
        path = rewrite(folder)
        said = ""
        try:
            with struck(folder, nth(stop, fail)):
                write_bytes(path, b"new", tmp=folder / "tmp")
        except CecError as error:
            said = str(error)
        if not calls[0][stop].startswith("os.mkdir"):  # of a folder that is there already
            assert f"{folder}" in said
            assert "Input/output error" in said
        outcomes.add((bool(said), path.read_bytes()))
        assert names(folder / "tmp") == set()
        assert names(path.parent) == {"a"}
    assert outcomes == {(True, b"old"), (True, b"new"), (False, b"new")}


def test_what_is_not_finished_never_appears(tmp_path):
    """Ctrl-C while a file is filled, and an output that cannot be read back, leave no trace."""

    def stopped(temporary: Path) -> None:
        temporary.write_bytes(b"half")
        raise KeyboardInterrupt

    def check(temporary: Path) -> None:
        raise ValueError(f"{temporary.suffix}: no footer")

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "a", stopped)
    with pytest.raises(ValueError, match=r"\.parquet: no footer"):
        write(tmp_path / "a.parquet", lambda temporary: temporary.write_bytes(b"PAR1"), check)
    assert names(tmp_path) == set()


def test_a_full_disk_is_named(tmp_path):
    """A real ENOSPC (/dev/full) becomes an error with the folder and its free bytes."""
    path = tmp_path / "out" / "shard.parquet"

    def fill(temporary: Path) -> None:
        temporary.write_bytes(b"x")
        with Path("/dev/full").open("wb", buffering=0) as full:
            full.write(b"y")

    with pytest.raises(DiskFullError) as caught:
        write(path, fill)
    message = str(caught.value)
    for part in (f"{path.parent}: no space left", "bytes free", "run the same command"):
        assert part in message
    assert names(path.parent) == set()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.EDQUOT, "Disk quota exceeded"), DiskFullError),
        (RuntimeError("IO error: No space left on device (os error 28)"), DiskFullError),
        (OSError(errno.EIO, "Input/output error"), CecError),
        (OSError(errno.EFBIG, "File too large"), CecError),
        (ValueError("unrelated"), type(None)),
    ],
)
def test_errors_of_the_disk_are_told_apart(tmp_path, error, expected):
    """Full and over quota are one thing, other disk errors another, the rest is not ours."""
    assert type(describe_os_error(error, tmp_path / "a")) is expected


def test_a_folder_is_published_whole(tmp_path):
    """The folder appears under its final name; a name that is taken moves nothing."""
    staged = tmp_path / "staged"
    (staged / "inner").mkdir(parents=True)
    (staged / "inner" / "a").write_text("1")
    publish(staged, tmp_path / "data")
    assert (tmp_path / "data" / "inner" / "a").read_text() == "1"
    assert not staged.exists()
    staged.mkdir()
    with pytest.raises(CecError, match="data: Directory not empty"):
        publish(staged, tmp_path / "data")
    assert staged.exists()


def test_the_journal_remembers(tmp_path):
    """What was recorded is there after a restart; the latest facts of a step count."""
    journal = Journal(tmp_path / "j")
    journal.record("chunk", "00001", counts={"kept": 3}, 名="值")
    journal.record("chunk", "00001", counts={"kept": 4})
    again = Journal(tmp_path / "j")
    assert list(again) == [("chunk", "00001")]
    assert again.get("chunk", "00001") == {"counts": {"kept": 4}}
    assert again.get("chunk", "00002") is None


@given(cut=st.integers(0, 10_000), flip=st.none() | st.integers(0, 10_000))
@settings(deadline=None, max_examples=150)
def test_a_damaged_journal_never_lies(tmp_path_factory, cut, flip):
    """However it is cut off or flipped, a journal has true facts or none, and can go on."""
    path = tmp_path_factory.mktemp("j") / "j"
    journal = Journal(path)
    for number in range(4):
        journal.record("step", str(number), value=number * 7)
    data = bytearray(path.read_bytes())
    if flip is not None:
        data[flip % len(data)] ^= 1 << (flip % 8)
    left = bytes(data[: len(data) - cut % len(data)])
    path.write_bytes(left)
    again = Journal(path)
    assert all(again.get(step, key) == {"value": int(key) * 7} for step, key in again)
    whole = sum(line.endswith(b'"}') for line in left.split(b"\n"))
    lost = whole - len(list(again))
    assert lost == 0 if flip is None else lost <= 2  # a flipped line end joins two lines
    again.record("step", "new", value=1)
    assert Journal(path).get("step", "new") == {"value": 1}


def test_a_failed_append_harms_no_other_line(tmp_path):
    """When a line cannot be written whole, it counts as none, and the next one stands alone."""
    journal = Journal(tmp_path / "j")
    journal.record("step", "a")
    size = (tmp_path / "j").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    usual = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, before[1]))
        with pytest.raises(CecError, match="File too large"):
            journal.record("step", "b")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, usual)
    assert journal.get("step", "b") is None
    journal.record("step", "c")
    assert list(Journal(tmp_path / "j")) == [("step", "a"), ("step", "c")]


def test_threads_share_a_journal(tmp_path):
    """Lines from several threads never mix."""
    from concurrent.futures import ThreadPoolExecutor

    journal = Journal(tmp_path / "j")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: journal.record("step", str(n), text="字" * n), range(64)))
    assert set(Journal(tmp_path / "j")) == {("step", str(n)) for n in range(64)}


def test_an_error_below_a_folder_names_that_folder(tmp_path):
    """Where a whole folder is written by others, it is the folder that is named, not its parent."""
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(DiskFullError, match=f"^{out}: no space left"), naming_errors(out):
        raise OSError(errno.ENOSPC, "No space left on device", str(out / "deep" / "file"))


def test_an_error_of_the_disk_is_told_through_a_librarys_own(tmp_path):
    """A library that raises its own error from the disk's hides nothing."""

    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(DiskFullError, match=f"^{tmp_path}: no space left"), naming_errors(tmp_path):
        raise RuntimeError("An error occurred while generating") from full
    with pytest.raises(RuntimeError, match="no disk"), naming_errors(tmp_path):
        raise RuntimeError("no disk in this")


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_permissions_are_the_usual_ones_whoever_wrote(tmp_path, umask):
    """Some libraries write what nobody else may read: a file, and those of a folder."""

    def fill(path: Path) -> None:
        path.write_bytes(b"x")
        path.chmod(0o600)

    before = os.umask(umask)
    try:
        write(tmp_path / "a", fill)
        (tmp_path / "staged" / "deep").mkdir(parents=True)
        fill(tmp_path / "staged" / "deep" / "b")
        publish(tmp_path / "staged", tmp_path / "final")
    finally:
        os.umask(before)
    for path in (tmp_path / "a", tmp_path / "final" / "deep" / "b"):
        assert path.stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed(tmp_path, there):
    """The file behind it is replaced, or made; the link stays, relative or through another."""
    (tmp_path / "deep").mkdir()
    target = tmp_path / "deep" / "target.txt"
    if there:
        target.write_text("old")
    (tmp_path / "one").symlink_to("deep/target.txt")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    write_text(tmp_path / "two", "new")
    assert target.read_text() == "new"
    assert (tmp_path / "one").is_symlink()
    assert (tmp_path / "two").is_symlink()
    assert names(tmp_path / "deep") == {"target.txt"}
    (tmp_path / "loop").symlink_to("loop")  # it leads nowhere
    write_text(tmp_path / "loop", "new")
    assert (tmp_path / "loop").read_text() == "new"


def test_a_pipe_is_refused_and_stays(tmp_path):
    """A rename over a device or a pipe would take it from whoever reads there."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    reads, writes = os.pipe()  # /dev/stdout is such a link, to no path
    for name in ("fifo", "link", f"/proc/self/fd/{writes}"):
        with pytest.raises(UsageError, match="is a device or a pipe: name a regular file"):
            write_text(tmp_path / name, "text")
    os.close(reads), os.close(writes)
    assert (tmp_path / "fifo").is_fifo()
    assert names(tmp_path) == {"fifo", "link"}


def test_what_a_killed_process_left_goes_with_the_next_write(tmp_path):
    """A hidden file of a dead process goes; one of a living process, or another's, stays."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = {
        f".{dead.pid}-0-a[1].txt": False,
        f".{os.getpid()}-7777-a[1].txt": True,
        f".{dead.pid}-0-b.txt": True,
        ".99999999999999999999-0-a[1].txt": False,
        ".notes-a[1].txt": True,
    }
    for name in left:
        (tmp_path / name).write_text("half")
    write_text(tmp_path / "a[1].txt", "whole")
    assert {name: (tmp_path / name).exists() for name in left} == left
