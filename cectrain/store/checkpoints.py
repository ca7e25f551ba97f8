"""Checkpoints that are whole or not there: written beside, proved by a list of hashes, renamed."""

from __future__ import annotations

import contextlib
import errno
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from cecdata.common import durable
from cecdata.common.codec import Json
from cecdata.common.durable.files import fsync_folder, naming, settle
from cecdata.common.errors import CecError
from cecdata.common.seal import sealed, unsealed

PROOF = "checkpoint.json"  # {"files": {name: [sha256, bytes]}, "step": n}, sealed
_NOTHING = 2**16  # bytes that are free on a disk that is full
_ARCHIVE = "inline_container"  # where torch's writer of archives stands, in its own messages
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


@contextlib.contextmanager
def removed_on_error(folder: Path, *, owner: bool) -> Iterator[None]:
    """What is written inside stands in `folder` itself; should it fail, nothing is left of it.

    A half one would only stand in the way; those before stay as they are. `ours`: whether this
    process is the one that clears away.
    """
    try:
        with naming(folder), archiving(folder):
            yield
    except BaseException:
        if owner:
            shutil.rmtree(folder, ignore_errors=True)
        raise


@contextlib.contextmanager
def archiving(folder: Path) -> Iterator[None]:
    """torch.save does not say what the system said: its errors are the system's again.

    Raises OSError for an error of an archive: ENOSPC where hardly anything is free, else EIO.
    """
    try:
        yield
    except RuntimeError as error:
        nearest = next(path for path in (folder, *folder.parents) if path.is_dir())
        if not isinstance(error, CecError) and shutil.disk_usage(nearest).free <= _NOTHING:
            raise OSError(errno.ENOSPC, "no space left on device", str(folder)) from error
        if _ARCHIVE not in str(error):
            raise
        words = f"an archive could not be written ({str(error).splitlines()[0]})"
        raise OSError(errno.EIO, words, str(folder)) from error


def seal(folder: Path, **facts: object) -> None:
    """Write the proof of a folder's files; what lies there now is what must lie there later.

    All of it is on the disk before the proof is, and the folder's own name before this returns.
    """
    files = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != PROOF):
        found = durable.sha256_of(path)
        files[path.relative_to(folder).as_posix()] = [found.sha256, found.bytes]
    with naming(folder):
        settle(folder)
    durable.write_bytes(folder / PROOF, sealed({"files": files, **facts}))
    with naming(folder):
        fsync_folder(folder.parent)


def facts_of(folder: Path) -> dict[str, object] | None:
    """What a checkpoint says of itself; None if a file is missing, cut short or changed."""
    try:
        body = unsealed((folder / PROOF).read_bytes())
        files = body["files"]
        if not isinstance(files, dict) or not isinstance(body["step"], int):
            return None
        whole = all(_is_whole(folder, name, files[name]) for name in files)
    except (OSError, ValueError, KeyError):
        return None
    return {name: body[name] for name in body if name != "files"} if whole else None


def _is_whole(folder: Path, name: str, proof: Json) -> bool:
    if not isinstance(proof, list) or len(proof) != 2:
        return False
    sha256, size = proof
    path = folder / name
    inside = path.resolve().is_relative_to(folder.resolve())
    same = inside and path.is_file() and path.stat().st_size == size
    return same and durable.sha256_of(path).sha256 == sha256


def newest(parent: Path) -> tuple[Path, dict[str, object]] | None:
    """The latest whole checkpoint below `parent`; damaged ones are passed over."""
    for _, folder in sorted(_numbered(parent), reverse=True):
        facts = facts_of(folder)
        if facts is not None:
            return folder, facts
    return None


def newest_step(parent: Path) -> int:
    """Return the step of the latest whole checkpoint below `parent`; 0 without one."""
    found = newest(parent)
    step = found[1]["step"] if found else 0
    assert isinstance(step, int)
    return step


def damaged(parent: Path) -> list[Path]:
    """Checkpoints that fail their proof, to be told and not used."""
    return [folder for _, folder in sorted(_numbered(parent)) if facts_of(folder) is None]


def prune(parent: Path, keep: int, step: int) -> None:
    """Remove all but the newest `keep` up to `step`, which has just been saved, and all beyond it:
    those were passed over as damaged, and must not count for the whole ones.
    """
    found = sorted(_numbered(parent))
    behind = [folder for number, folder in found if number <= step]
    for folder in [*behind[:-keep], *(folder for number, folder in found if number > step)]:
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
