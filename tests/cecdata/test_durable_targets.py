"""What a user names in place of a file stays what it is, and is given all that was written."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cecdata.common.durable import sha256_of, write, write_text
from cecdata.common.errors import CecError, DiskFullError

TEXT = "".join(f"第{n}行\n" for n in range(20_000))  # more than a pipe holds


@pytest.fixture
def room(tmp_path, monkeypatch):
    """A folder; where other temporary files go lies beside it and is empty at the end."""
    folder, other = tmp_path / "room", tmp_path / "tmp"
    folder.mkdir()
    other.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(other))
    yield folder
    assert list(other.iterdir()) == []


def device(path, number):
    """A node like one in /dev: never one of those themselves, which a failure would destroy."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, number))
        path.open("wb").close()
    except OSError:
        pytest.skip("making a device needs root, and a filesystem that allows them")
    return path


def test_a_device_stays_a_device(room):
    """As root, a rename over /dev/null would break the machine."""
    null, link = device(room / "null", 3), room / "link"
    link.symlink_to(null)
    for path in (null, link):
        write_text(path, TEXT)
        assert stat.S_ISCHR(null.stat().st_mode)
    assert sorted(path.name for path in room.iterdir()) == ["link", "null"]


def test_a_full_device_is_told(room):
    """What does not go through is an error that names it."""
    full = device(room / "full", 7)
    with pytest.raises(DiskFullError, match=f"{room}: no space left .* while writing full"):
        write_text(full, TEXT)
    assert stat.S_ISCHR(full.stat().st_mode)


def test_the_reader_of_a_pipe_gets_all(room):
    """A FIFO stays, and its reader is given every byte; the record is of these."""
    fifo, got = room / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: got.append(fifo.read_text("utf-8")))
    reader.start()
    record = write_text(fifo, TEXT)
    reader.join(30)
    assert got == [TEXT]
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    (room / "same").write_text(TEXT, "utf-8")
    assert (record.sha256, record.bytes) == (sha256_of(room / "same").sha256, len(TEXT.encode()))


def test_a_pipe_gets_nothing_that_failed_its_check(room):
    """What is not whole is not handed on."""

    def half(path: Path) -> None:
        path.write_text("half")

    def check(path: Path) -> None:
        raise CecError(f"{path} has no footer")

    read, written = os.pipe()
    with pytest.raises(CecError, match="no footer"):
        write(Path(f"/proc/self/fd/{written}"), half, check)
    os.close(written)
    assert os.read(read, 10) == b""
    os.close(read)


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed(room, there):
    """The file behind it is replaced, or made; the link stays, relative or through another."""
    (room / "deep").mkdir()
    target = room / "deep" / "target.txt"
    if there:
        target.write_text("old")
    (room / "one").symlink_to("deep/target.txt")
    (room / "two").symlink_to(room / "one")
    write_text(room / "two", "new")
    assert target.read_text() == "new"
    assert (room / "one").is_symlink()
    assert (room / "two").is_symlink()
    assert sorted(path.name for path in (room / "deep").iterdir()) == ["target.txt"]


SCRIPT = """
import sys
from pathlib import Path
from cecdata.common.durable import write_text
print("before")
write_text(Path(sys.argv[1]), "text\\n")
print("after")
"""


@pytest.mark.parametrize("name", ["stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_the_standard_output(room, name):
    """Piped, into a file, or at the end of one: in its turn, and nothing before it is lost."""
    (room / "stdout").symlink_to("/proc/self/fd/1")  # as /dev/stdout is, which is to live on
    words = [sys.executable, "-c", SCRIPT, room / name]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "before\ntext\nafter\n"
    path = room / "out.txt"
    path.write_text("first\n")
    with path.open("a") as file:
        subprocess.run(words, stdout=file, check=True)
    assert path.read_text() == "first\nbefore\ntext\nafter\n"
    with path.open("w") as file:
        subprocess.run(words, stdout=file, check=True)
    assert path.read_text() == "before\ntext\nafter\n"


def test_what_a_killed_process_left_goes_with_the_next_write(room):
    """A hidden file of a dead process goes; one of a living process, or another's, stays."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    names = {
        f".{dead.pid}-0-a[1].txt": False,
        f".{os.getpid()}-7777-a[1].txt": True,
        f".{dead.pid}-0-b.txt": True,
        ".99999999999999999999-0-a[1].txt": False,
        ".notes-a[1].txt": True,
    }
    for name in names:
        (room / name).write_text("half")
    write_text(room / "a[1].txt", "whole")
    assert {name: (room / name).exists() for name in names} == names
