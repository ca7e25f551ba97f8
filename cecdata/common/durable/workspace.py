"""An output folder that belongs to one configuration and, at a time, to one run."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import final

from cecdata.common.codec import seal_object, unseal_object
from cecdata.common.durable import files
from cecdata.common.durable.state import Journal, Lock
from cecdata.common.errors import RefusedError

STATE = ".cecdata"  # the folder below OUT for what only the run itself reads
FIRST = "done/read"  # below STATE: the folder with the markers of a build's first tasks
FINGERPRINT = "fingerprint.json"  # below STATE: the identity of a run, readable and sealed
_WRITTEN = "file"  # a step: a file is written
_MOVED = "publish"  # a step: a folder was moved to `key`, with the files `facts["names"]`
_JOURNAL = "journal.jsonl"
_SHOWN = 12  # differences in a message


@final
class Workspace:
    """Open `out` for one run: `with Workspace(out, {"seed": 42}) as work: …`.

    Raises RefusedError (exit code 5) for a folder that this product did not make, for one in use by
    another process, and for one of another `identity` (JSON values), with each difference.
    `overwrite` removes the files that earlier runs wrote here, and refuses where others exist.
    With the same identity the run resumes: `journal` has the finished steps. `reads` are the files
    and folders that the run reads; one inside `out` is refused, as `overwrite` would remove it.
    """

    def __init__(
        self,
        out: Path | str,
        identity: Mapping[str, object],
        *,
        overwrite: bool = False,
        reads: Iterable[Path | str] = (),
    ) -> None:
        self.root = Path(out).absolute()
        self.state = self.root / STATE
        self.tmp = self.state / "tmp"
        self.resumed = False
        self.identity: Mapping[str, object] = json.loads(json.dumps(identity))
        self._fingerprint = self.state / FINGERPRINT
        self._overwrite = overwrite
        self._reads = [Path(name) for name in reads if name != ""]
        self._lock = Lock(self.state / "lock")
        self.journal: Journal  # the record of finished steps, while the workspace is open

    def __enter__(self) -> Workspace:
        _refuse_to_read_below(self.root, self._reads)
        _make_state(self.root, self.state)
        self._lock.acquire()
        try:
            self._open_state()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, _: object, error: object, __: object) -> None:
        self._lock.release()
        if isinstance(error, KeyboardInterrupt):
            error.args = (f"The same command, given again, continues {self.root}.",)

    def write(
        self, name: str, fill: Callable[[Path], None], check: Callable[[Path], None] | None = None
    ) -> files.FileRecord:
        """Write the file `name` below the root as `durable.write` does."""
        return files.write(self._record_file(name), fill, check, tmp=self.tmp)

    def write_bytes(self, name: str, data: bytes) -> files.FileRecord:
        """Write the file `name` below the root as `durable.write_bytes` does."""
        return files.write_bytes(self._record_file(name), data, tmp=self.tmp)

    def write_text(self, name: str, text: str) -> files.FileRecord:
        return self.write_bytes(name, text.encode("utf-8"))

    def publish(self, staged: str, final: str) -> None:
        """Rename the folder `staged` (below the root) to `final`, unless that is done already.

        If `final` was published before, the files of `staged` replace older ones one by one. The
        journal records the move first, so that a run killed between the two still knows its files.
        """
        source, target = self._find_path_below(staged), self._find_path_below(final)
        if not source.exists() and target.exists() and self.journal.get(_MOVED, final):
            return
        moved = {p.relative_to(source).as_posix() for p in source.rglob("*") if p.is_file()}
        before = self.journal.get(_MOVED, final)
        if before is not None:
            moved.update(before["names"])
        self.journal.record(_MOVED, final, names=sorted(moved))
        files.publish(source, target, again=before is not None and target.exists())

    def _record_file(self, name: str) -> Path:
        """Return the path of a file below the root, which the journal records as ours."""
        path = self._find_path_below(name)
        # Recorded before it exists, so that `overwrite` may remove it whenever the run ends.
        if not path.is_relative_to(self.state) and self.journal.get(_WRITTEN, name) is None:
            self.journal.record(_WRITTEN, name)
        return path

    def _find_path_below(self, name: str) -> Path:
        """Return a path below the root; raise RefusedError where a link leads elsewhere."""
        path = self.root / name
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.root)):
            raise RefusedError(f"{name!r} points outside {self.root}: nothing is written there")
        return path

    def _open_state(self) -> None:
        """Resume the run of the same identity, or clear the folder for a new one."""
        self.journal = Journal(self.state / _JOURNAL)
        if self._has_begun() and not self._overwrite:
            refuse_another(self._read_fingerprint(), self.identity, str(self.root))
            self.resumed = True
        elif self._overwrite or self._read_fingerprint() != fingerprint(self.identity):
            # A run without a recorded step (a mistyped column, an empty corpus) binds no later run.
            self.clear()
            self.journal = Journal(self.state / _JOURNAL)
        else:
            self.resumed = True
        with files.naming_errors(self.tmp):
            shutil.rmtree(self.tmp, ignore_errors=True)  # temporary files of a killed run
            self.tmp.mkdir(exist_ok=True)
        if not self._has_begun():
            self.write_bytes(f"{STATE}/{FINGERPRINT}", fingerprint(self.identity))

    def _read_fingerprint(self) -> bytes:
        """Return the bytes of the fingerprint; none where it is missing."""
        with files.naming_errors(self._fingerprint):
            return self._fingerprint.read_bytes() if self._fingerprint.exists() else b""

    def _has_begun(self) -> bool:
        """Return whether anything here depends on the configuration: a step, a task, a file."""
        recorded = any(path.stat().st_size for path in self.state.glob("*.jsonl"))
        marked = any(True for _ in self.state.glob(f"{FIRST}/*"))
        return recorded or marked or bool(self._list_files())

    def _list_owned(self) -> set[Path]:
        """Return the files outside `.cecdata` that runs here wrote or were about to write."""
        paths: set[Path] = set()
        for step, key in self.journal:
            if step == _WRITTEN:
                paths.add(self._find_path_below(key))
            elif (facts := self.journal.get(step, key)) and step == _MOVED:
                paths.update(self._find_path_below(f"{key}/{name}") for name in facts["names"])
        return paths

    def _list_files(self) -> list[Path]:
        paths = (path for path in self.root.rglob("*") if not path.is_dir())
        return sorted(path for path in paths if not path.is_relative_to(self.state))

    def clear(self) -> None:
        """Remove all files that runs here wrote; raise RefusedError where others exist."""
        owned = self._list_owned()
        foreign = [path for path in self._list_files() if path not in owned]
        if foreign:
            shown = ", ".join(str(p.relative_to(self.root)) for p in foreign[:5])
            raise RefusedError(
                f"{self.root} holds {len(foreign)} file(s) that this tool did not write: {shown}. "
                "Move these files elsewhere, or choose another output folder."
            )
        with files.naming_errors(self.root):
            for path in sorted(owned):
                path.unlink(missing_ok=True)
            for folder in sorted((p for p in self.root.rglob("*") if p.is_dir()), reverse=True):
                if not folder.is_relative_to(self.state) and not any(folder.iterdir()):
                    folder.rmdir()
            # The journal and then the fingerprint are removed last, so that the next run after a
            # kill still knows which files it may remove.
            last = [_JOURNAL, FINGERPRINT]
            for path in sorted(self.state.iterdir(), key=lambda p: (p.name in last, p.name)):
                if path.name not in ("lock", *last):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            for name in last:
                (self.state / name).unlink(missing_ok=True)


def _refuse_to_read_below(root: Path, paths: Iterable[Path]) -> None:
    """Raise RefusedError for an input that is the output folder or exists inside it."""
    real = os.path.realpath(root)
    for path in paths:
        if os.path.commonpath([real, os.path.realpath(path)]) == real and path.exists():
            raise RefusedError(
                f"{path} is in the output folder {root}, whose files a run may replace: choose "
                "another output folder"
            )


def _make_state(root: Path, state: Path) -> None:
    """Make the folder of the state, or raise an error for an `out` that cannot hold a run."""
    if root.exists() and not root.is_dir():
        raise RefusedError(f"{root} is a file: name a folder for the output")
    if root.is_symlink() and not root.exists():
        raise RefusedError(
            f"{root} is a link to {root.readlink()}, which does not exist: make that folder, or "
            "name another one"
        )
    with files.naming_errors(state):
        if root.is_dir() and not os.path.lexists(state) and any(root.iterdir()):
            raise RefusedError(
                f"{root} is not empty and has no {STATE}, which names the files of this tool: "
                f"choose another output folder, or copy {STATE}, too, if a copy left it out "
                "(--overwrite does not help here)"
            )
        _refuse_links(state)
        state.mkdir(parents=True, exist_ok=True)


def _refuse_links(state: Path) -> None:
    """Raise RefusedError for a link at `state` or anywhere below it.

    No run makes one there, but git and tar can bring one, and its target is not ours to remove.
    """
    links = [state] if state.is_symlink() else []
    for folder, folders, names in os.walk(state) if not links else ():
        links += (p for p in (Path(folder) / n for n in (*folders, *names)) if p.is_symlink())
    if links:
        raise RefusedError(
            f"{links[0]} is a link, which may point outside the folder: remove it, or choose "
            "another output folder"
        )


def write_beside(root: Path, texts: Mapping[str, str]) -> None:
    """Write files by name into an output folder after its run; `overwrite` removes them with it.

    Raises RefusedError for a link at one of the names or in the folder's state.
    """
    _refuse_links(root / STATE)
    for name in texts:
        try:
            files.find_path_below(root, name)
        except ValueError as error:
            raise RefusedError(f"{error}: remove it, or choose another output folder") from error
    if (path := root / STATE / _JOURNAL).is_file():
        journal = Journal(path)
        for name in texts:
            if journal.get(_WRITTEN, name) is None:
                journal.record(_WRITTEN, name)
    for name, text in texts.items():
        files.write_text(root / name, text)


def fingerprint(identity: Mapping[str, object]) -> bytes:
    """Return the bytes of the file that holds the identity of a run."""
    return seal_object(json.loads(json.dumps(identity, sort_keys=True)))


def refuse_another(saved: bytes, identity: Mapping[str, object], where: str) -> None:
    """Raise RefusedError unless `saved` is the fingerprint of a run with this identity."""
    try:
        was = unseal_object(saved)
    except ValueError as error:
        raise RefusedError(
            f"{where}/{STATE}/{FINGERPRINT} is missing, damaged, edited or of an earlier version, "
            "so the configuration of the files there is unknown: replace them with --overwrite, or "
            "choose another output."
        ) from error
    if was != identity:
        raise RefusedError(
            f"{where} holds a run with another configuration:{list_differences(was, identity)}\n"
            "Choose another output, or replace the run with --overwrite."
        )


def list_differences(was: Mapping[str, object], now: Mapping[str, object]) -> str:
    r"""Return the differences of two identities, one indented line for each of the first twelve.

    Of parts of two kinds, only the kinds are compared: their other keys are not the same things.
    """
    old, new = dict(_flatten(was, "")), dict(_flatten(now, ""))
    differing = [key for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key)]
    kinds = [key for key in differing if key.endswith(".kind") and key in old and key in new]
    parts = tuple(kind.removesuffix("kind") for kind in kinds)
    lines = [
        f"\n  {key}: {old.get(key, '(not set)')} → {new.get(key, '(not set)')}"
        for key in differing
        if key in kinds or not key.startswith(parts)
    ]
    more = f"\n  … and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return "".join(lines[:_SHOWN]) + more


def _flatten(value: object, name: str) -> Iterator[tuple[str, str]]:
    """Yield the leaves of nested JSON: the dotted path of each, and its value as text."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flatten(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value):
            yield from _flatten(inner, f"{name}[{place}]")
    else:
        yield name, json.dumps(value, ensure_ascii=False)
