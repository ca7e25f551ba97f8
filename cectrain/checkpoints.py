"""Checkpoints that are whole or not there: written beside, proved by a list of hashes, renamed."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from cecdata import durable
from cecdata.durable.files import naming

PROOF = "checkpoint.json"  # {"files": {name: [sha256, bytes]}, …facts}
_NAME = re.compile(r"checkpoint-(\d+)")


def save(folder: Path, fill: Callable[[Path], None], **facts: object) -> None:
    """Let `fill` write the files of a checkpoint; `folder` appears whole, or not at all.

    Raises DiskFullError or CecError naming the path; older checkpoints stay as they are.
    """
    staged = folder.parent / f".{folder.name}.tmp"
    with naming(folder):
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir(parents=True)
        try:
            fill(staged)
            seal(staged, **facts)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise
        if folder.exists():  # one that failed its proof: a whole one is never written twice
            shutil.rmtree(folder)
    durable.publish(staged, folder)


def seal(folder: Path, **facts: object) -> None:
    """Write the proof of a folder's files; what lies there now is what must lie there later."""
    files = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != PROOF):
        found = durable.sha256_of(path)
        files[path.relative_to(folder).as_posix()] = [found.sha256, found.bytes]
    body = json.dumps({"files": files, **facts}, indent=1, sort_keys=True)
    durable.write_text(folder / PROOF, body + "\n")


def facts_of(folder: Path) -> dict[str, object] | None:
    """What a checkpoint says of itself; None if a file is missing, cut short or changed."""
    try:
        body = json.loads((folder / PROOF).read_text("utf-8"))
        files = dict(body.pop("files"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    for name, (sha256, size) in files.items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != size:
            return None
        if durable.sha256_of(path).sha256 != sha256:
            return None
    return dict(body)


def newest(parent: Path) -> tuple[Path, dict[str, object]] | None:
    """The latest whole checkpoint below `parent`; damaged ones are passed over."""
    for _, folder in sorted(_numbered(parent), reverse=True):
        facts = facts_of(folder)
        if facts is not None:
            return folder, facts
    return None


def damaged(parent: Path) -> list[Path]:
    """Checkpoints that fail their proof, to be told and not used."""
    return [folder for _, folder in sorted(_numbered(parent)) if facts_of(folder) is None]


def prune(parent: Path, keep: int) -> None:
    """Remove all but the newest `keep` checkpoints."""
    for _, folder in sorted(_numbered(parent))[:-keep]:
        # What cannot be removed now is in nobody's way.
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)


def _numbered(parent: Path) -> Iterator[tuple[int, Path]]:
    if not parent.is_dir():
        return
    for path in parent.iterdir():
        found = _NAME.fullmatch(path.name)
        if found and path.is_dir():
            yield int(found[1]), path
