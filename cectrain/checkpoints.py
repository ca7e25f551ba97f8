"""Checkpoints with a sealed list of digests; one that is incomplete or changed is not used."""

from __future__ import annotations

import contextlib
import errno
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.common import durable
from cecdata.common.codec import Json, seal_object, unseal_object
from cecdata.common.durable.files import fsync_folder, naming_errors, sync_files
from cecdata.common.errors import CecError

if TYPE_CHECKING:
    import torch


PROOF = "checkpoint.json"  # {"files": {name: [sha256, bytes]}, "step": n}, sealed
_FULL = 2**16  # a disk with fewer free bytes counts as full
_NAME = re.compile(r"checkpoint-(\d+)")


def save_checkpoint(folder: Path, fill: Callable[[Path], None], step: int) -> None:
    """Let `fill` write the files of a checkpoint; `folder` appears complete or not at all.

    The proof keeps `step`. Raises DiskFullError or CecError with the path; older checkpoints stay.
    """
    staged = folder.parent / f".{folder.name}.tmp"
    with naming_errors(folder):
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir(parents=True)
        try:
            fill(staged)
            seal_folder(staged, step)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise
        if folder.exists():  # a damaged one, because a whole one is never written twice
            shutil.rmtree(folder)
    durable.publish(staged, folder)


@contextlib.contextmanager
def naming_full_disk(folder: Path) -> Iterator[None]:
    """Raise OSError where torch.save fails on a full disk: its own error hides the system's."""
    try:
        yield
    except RuntimeError as error:
        nearest = next(path for path in (folder, *folder.parents) if path.is_dir())
        if isinstance(error, CecError) or shutil.disk_usage(nearest).free > _FULL:
            raise
        raise OSError(errno.ENOSPC, "no space left on device", str(folder)) from error


def seal_folder(folder: Path, step: int) -> None:
    """Write the proof of a folder's files, after all of them are on the disk."""
    files = {}
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != PROOF)
    for path in sorted(paths):
        files[path.relative_to(folder).as_posix()] = _prove_file(path)
    with naming_errors(folder):
        sync_files(folder)
    durable.write_bytes(folder / PROOF, seal_object({"files": files, "step": step}))
    with naming_errors(folder):
        fsync_folder(folder.parent)


def read_step(folder: Path) -> int | None:
    """Return a checkpoint's step; None if a file is missing, cut short or changed."""
    try:
        body = unseal_object((folder / PROOF).read_bytes())
        files, step = body["files"], body["step"]
        if not isinstance(files, dict) or not isinstance(step, int):
            return None
        whole = all(_prove_file(folder / name) == proof for name, proof in files.items())
    except (OSError, ValueError, KeyError):
        return None
    return step if whole else None


def _prove_file(path: Path) -> list[Json]:
    """Return the digest and the size of a file."""
    record = durable.sha256_of(path)
    return [record.sha256, record.bytes]


def find_newest(
    parent: Path, log: Callable[[str], None] = lambda _line: None
) -> tuple[Path, int] | None:
    """Return the latest whole checkpoint below `parent` and its step; log damaged ones after it."""
    for _, folder in sorted(_find_numbered(parent), reverse=True):
        step = read_step(folder)
        if step is not None:
            return folder, step
        log(f"{folder.name} is damaged and is skipped")
    return None


def find_newest_step(parent: Path) -> int:
    """Return the step of the latest whole checkpoint below `parent`; 0 without one."""
    latest = find_newest(parent)
    return latest[1] if latest else 0


def remove_older(parent: Path, keep: int, step: int) -> None:
    """Remove all checkpoints but the newest `keep` up to `step`, which has just been saved.

    Those beyond `step` go, too: they were damaged, or the run would have resumed from them.
    """
    numbered = sorted(_find_numbered(parent))
    up_to_step = [folder for number, folder in numbered if number <= step]
    beyond = [folder for number, folder in numbered if number > step]
    for folder in [*up_to_step[:-keep], *beyond]:
        # One that cannot be removed now does no harm.
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)


def _find_numbered(parent: Path) -> Iterator[tuple[int, Path]]:
    """Yield the step and the folder of each checkpoint below a folder, whole or not."""
    if not parent.is_dir():
        return
    for path in parent.iterdir():
        name = _NAME.fullmatch(path.name)
        if name and path.is_dir():
            yield int(name[1]), path


def name_states(optimizer: torch.optim.Optimizer, prefix: str) -> dict[str, torch.Tensor]:
    """Return the state by name, PREFIX.PARAMETER.NAME, on the CPU; learning rates are not in it."""
    return {
        f"{prefix}.{parameter}.{name}": value.detach().cpu().contiguous()
        for parameter, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }


def load_optimizer(
    optimizer: torch.optim.Optimizer, prefix: str, tensors: Mapping[str, torch.Tensor]
) -> None:
    """Set the state from tensors of that prefix; the reverse of `name_states`."""
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in tensors.items():
        head, _, rest = key.partition(".")
        if head == prefix:
            parameter, _, name = rest.partition(".")
            state.setdefault(int(parameter), {})[name] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
