"""The version of the product and the commit of its source tree, which records of runs hold."""

from __future__ import annotations

import subprocess
from pathlib import Path

__version__ = "0.1.0"


def git_commit(of: Path = Path(__file__)) -> str:
    """Return the commit of the tree that contains this source file; `-dirty` marks changed files.

    Return "" for an installed package, also inside another project's tree, and without git.
    """
    here = of.resolve()
    if not _git(here.parent, "ls-files", here.name):
        return ""
    return _git(here.parent, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
