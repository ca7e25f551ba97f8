"""A build that is stopped, killed or starved goes on to the very bytes of one that was not."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

KILLS = 12


@pytest.fixture(scope="session")
def long_corpus(tmp_path_factory, lines_of):
    """So many chunks that a build takes long enough to be hit."""
    path = tmp_path_factory.mktemp("long") / "long.txt"
    path.write_text("\n".join([*lines_of(320), "短"]), "utf-8")
    return path


@pytest.fixture(scope="session")
def command(long_corpus):
    return ("build", long_corpus, "--filters", "levenshtein", "--shard-sentences", "40")


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory, zygote, command, tree_of):
    """The tree of a build that nobody disturbed, and the seconds it took.

    The second build is timed: the first may have to compile the kernels.
    """
    for name in ("cold", "warm"):
        out = tmp_path_factory.mktemp("unbroken") / name
        started = time.monotonic()
        assert zygote.run(*command, "--out", out, "--workers", 2) == 0
        seconds = time.monotonic() - started
    return tree_of(out), seconds


def whole_or_absent(out: Path) -> None:
    """Nothing that looks like a dataset lies there unless its manifest vouches for it."""
    if (out / "manifest.json").exists():
        assert (out / "data").is_dir()
        assert (out / "README.md").is_file()
    for path in (out / "data").glob("*"):
        assert path.suffix == ".parquet"
        assert not path.name.startswith(".")


def test_killed_at_random_and_resumed(tmp_path, zygote, command, unbroken, tree_of):
    """SIGKILL at any instant, over and over: the last run's tree is that of an unbroken build."""
    wanted, seconds = unbroken
    rng = random.Random(20)
    out = tmp_path / "out"
    killed = attempts = 0
    while killed < KILLS:
        attempts += 1
        assert attempts <= 6 * KILLS, f"only {killed} of {attempts} builds could be killed"
        code = zygote.run(*command, "--out", out, "--workers", 2, after_s=rng.random() * seconds)
        assert code in {0, -signal.SIGKILL}, zygote.log.read_text()
        killed += code == -signal.SIGKILL
        if out.exists():
            whole_or_absent(out)
        if code == 0:  # done before the signal: from the start again, and strike earlier
            assert tree_of(out) == wanted
            shutil.rmtree(out)
            seconds *= 0.8
    assert zygote.run(*command, "--out", out) == 0, zygote.log.read_text()
    assert tree_of(out) == wanted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_and_resumed(tmp_path, zygote, command, unbroken, tree_of, number):
    """SIGINT and SIGTERM end with 130 and a word; the same command goes on to the same bytes."""
    wanted, seconds = unbroken
    out = tmp_path / "out"
    codes = []
    for share in (0.3, 0.5, 0.8):
        shutil.rmtree(out, ignore_errors=True)
        codes.append(zygote.run(*command, "--out", out, after_s=share * seconds, number=number))
        if codes[-1] == 130:
            log = zygote.log.read_text()
            assert "Interrupted. The same command goes on from here." in log
            assert "Traceback" not in log
            assert not (out / "manifest.json").exists()
        assert zygote.run(*command, "--out", out) == 0, zygote.log.read_text()
        assert tree_of(out) == wanted
    assert 130 in codes
    assert set(codes) <= {0, 130}


def test_interrupt_of_a_fresh_process(tmp_path, long_corpus):
    """The console script itself answers SIGINT with 130 (and nothing is half published)."""
    out = tmp_path / "out"
    script = "from cecdata.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", script, "build", str(long_corpus), "--out", str(out), "--filters",
         "levenshtein", "--shard-sentences", "5"],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not (out / ".cecdata" / "pool").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert not (out / "data").exists()


def test_a_file_size_limit_is_told(tmp_path, long_corpus):
    """Where a file cannot grow, the error names it and nothing looks whole."""
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000));"
        "from cecdata.cli import main; main()"
    )
    out = tmp_path / "out"
    arguments = ["build", str(long_corpus), "--out", str(out), "--filters", "levenshtein",
                 "--shard-sentences", "40"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "File too large" in done.stderr
    assert str(out) in done.stderr
    assert not (out / "data").exists()


def test_a_full_disk_is_told_and_survived(tmp_path, zygote, command, unbroken, tree_of):
    """Without space the error says where and how much is left; with space the build goes on."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    size = ["-t", "tmpfs", "-o", "size=96k", "tmpfs", str(disk)]
    if mount is None or subprocess.run([mount, *size], capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        assert zygote.run(*command, "--out", disk / "out") == 1
        log = zygote.log.read_text()
        assert "no space left" in log
        assert "run the same command again" in log
        assert "Traceback" not in log
        assert not (disk / "out" / "data").exists()
        assert not (disk / "out" / "manifest.json").exists()
        subprocess.run([mount, "-o", "remount,size=64m", str(disk)], check=True)
        assert zygote.run(*command, "--out", disk / "out") == 0
        assert tree_of(disk / "out") == unbroken[0]
    finally:
        subprocess.run(["umount", str(disk)], check=True)
