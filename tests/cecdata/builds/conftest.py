"""Real builds of a small corpus, in this process, in a warm child, and in a fresh one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from harness import Zygote, shared
from scenarios import sentences

from cecdata.cli import cli
from cecdata.common.command_group import run


def tree(out: Path) -> dict[str, bytes]:
    """Every file of a dataset that a second build repeats, with its bytes."""
    files = (path for path in out.rglob("*") if path.is_file())
    found = {path.relative_to(out).as_posix(): path for path in files}
    return {
        name: path.read_bytes()
        for name, path in sorted(found.items())
        if name != "run.json" and not name.startswith(".cecdata/")
    }


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """240 sentences, a duplicate, an empty line and two bad ones."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    lines = [line.encode() for line in sentences(240)]
    lines[100:100] = [lines[7], b"", b"\xe4\xbb\x96\xff\xe7\x9a\x84\xe7\x97\x85", "短".encode()]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


@pytest.fixture
def cecdata(capsys: pytest.CaptureFixture[str]):
    """Run a command line in this process: (exit code, stdout, stderr)."""

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(cli, [str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture(scope="session")
def flags() -> tuple[str, ...]:
    """Six chunks, no encoder."""
    return ("--filters", "levenshtein", "--shard-sentences", "40")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, corpus: Path, flags: tuple[str, ...]) -> Path:
    """A finished dataset, not to be touched."""
    out = tmp_path_factory.mktemp("built") / "out"
    assert run(cli, ["build", str(corpus), "--out", str(out), *flags]) == 0
    return out


@pytest.fixture
def copy_of_built(built: Path, tmp_path: Path) -> Path:
    """A finished dataset to be damaged."""
    return Path(shutil.copytree(built, tmp_path / "out"))


class Builds:
    """cecdata in warm children, by the zygote of tests/faults; the log is of the last one."""

    def __init__(self, zygote: Zygote) -> None:
        self.zygote = zygote
        self.log = zygote.log

    def run(self, *arguments: object, stdin: Path | str = os.devnull) -> int:
        """The exit code, or minus a signal."""
        path = {"PATH": os.environ["PATH"]}  # git is asked for its commit, as in this process
        return self.zygote.run("cecdata", *arguments, stdin=stdin, environment=path).code


@pytest.fixture(scope="session")
def zygote():
    return Builds(shared())


@pytest.fixture(scope="session")
def tree_of():
    """The function `tree`, for tests that are imported apart from this file."""
    return tree


@pytest.fixture(scope="session")
def lines_of():
    """The function `sentences`."""
    return sentences
