"""From what the user names (files, globs, folders, `-`, `sample`) to the files to be read."""

from __future__ import annotations

import glob
import hashlib
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cecdata.common.errors import InputError, did_you_mean

SAMPLE = "sample"  # the corpus that ships with the package
STDIN = "-"
TEXT_FORMATS = (".txt", ".jsonl", ".ndjson", ".csv", ".tsv")
TABLE_FORMATS = (".parquet", ".arrow", ".feather", ".ipc")
COMPRESSIONS = (".gz", ".zst", ".bz2", ".xz")


@dataclass(frozen=True, slots=True)
class Source:
    """One file of a corpus: where it lies, what it is called in messages, how it is read."""

    path: Path | None  # None: standard input
    label: str  # as the user wrote it; goes into `file` and the manifest
    format: str  # a suffix of TEXT_FORMATS or TABLE_FORMATS
    compression: str = ""  # a suffix of COMPRESSIONS or ""

    @property
    def origin(self) -> str:
        """What stands in `origin` where the file has no such column: its name, no suffixes."""
        if self.path is None:
            return "stdin"
        name = self.path.name.removesuffix(self.compression)
        return name.removesuffix(self.format) or name


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input as the manifest lists it. Standard input has no hash beforehand: sha256 ""."""

    path: str
    sha256: str
    bytes: int


def inputs(paths: Sequence[str]) -> list[InputFile]:
    """The files behind `paths` with their SHA-256, in reading order; memory is constant."""
    return [_hashed(source) for source in resolve(paths)]


def resolve(paths: Sequence[str]) -> list[Source]:
    """The files behind `paths`: their order is kept, a glob or a folder is sorted.

    Raises `InputError` for what is missing, empty, of unknown suffix, or a folder that is no
    dataset.
    """
    if not paths:
        raise InputError("no corpus was named: give a file, a glob, a dataset folder, or `sample`")
    return [source for path in paths for source in _resolve_one(str(path))]


@contextmanager
def opened(source: Source) -> Iterator[IO[bytes]]:
    """The decompressed bytes of a source; errors of the disk and of the archive name the file."""
    import lzma
    import zlib

    try:
        with _open(source) as stream:
            yield stream
    except InputError:
        raise
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise InputError(
            f"{source.label}: the compressed data is damaged or ends too early ({error}); "
            "what stood before was read. Fetch or compress the file again."
        ) from error
    except OSError as error:
        raise InputError(_reason(source, error)) from error


def _open(source: Source) -> IO[bytes]:
    import bz2
    import gzip
    import lzma

    if source.path is None:
        return io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
    if source.compression == ".gz":
        return io.BufferedReader(gzip.open(source.path, "rb"))
    if source.compression == ".bz2":
        return io.BufferedReader(bz2.open(source.path, "rb"))
    if source.compression == ".xz":
        return io.BufferedReader(lzma.open(source.path, "rb"))
    if source.compression == ".zst":
        import pyarrow as pa

        compressed: IO[bytes] = pa.CompressedInputStream(pa.OSFile(str(source.path)), "zstd")
        return compressed
    return source.path.open("rb")


def _reason(source: Source, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{source.label}: there is no such file"
    if isinstance(error, PermissionError):
        return f"{source.label}: not readable by this user (permission denied)"
    if source.compression:
        return (
            f"{source.label}: the compressed data is damaged or ends too early "
            f"({error}); what stood before was read. Fetch or compress the file again."
        )
    return f"{source.label}: cannot be read ({error.strerror or error})"


def _resolve_one(name: str) -> list[Source]:
    if name == STDIN:
        return [Source(None, STDIN, ".txt")]
    if name == SAMPLE and not Path(name).exists():
        return _sample()
    path = Path(name)
    if path.is_dir():
        return _dataset(path)
    if path.exists():
        return [_source(path)]
    if glob.has_magic(name):
        return _matches(name)
    raise InputError(f"{name}: there is no such file. {_neighbours(path)}")


def _source(path: Path, label: str | None = None) -> Source:
    if not _is_text(str(path)):
        raise InputError(f"{str(path)!a}: the file's name is not valid UTF-8: rename it")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else ""
    form = suffixes[-1] if suffixes else ""
    known = TEXT_FORMATS if compression else TEXT_FORMATS + TABLE_FORMATS
    if form not in known:
        raise InputError(
            f"{path}: unknown suffix {form + compression!r}; readable are "
            f"{' '.join(TEXT_FORMATS)} (each also with {' '.join(COMPRESSIONS)}) "
            f"and {' '.join(TABLE_FORMATS)}"
        )
    try:
        path.open("rb").close()
    except OSError as error:
        raise InputError(_reason(Source(path, str(path), form), error)) from error
    return Source(path, label or str(path), form, compression)


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _matches(pattern: str) -> list[Source]:
    # pathlib's glob takes no absolute pattern
    found = glob.glob(pattern, recursive=True)  # noqa: PTH207
    files = sorted(name for name in found if Path(name).is_file())
    if not files:
        raise InputError(f"{pattern}: no file matches this glob")
    return [_source(Path(file)) for file in files]


def _sample() -> list[Source]:
    from importlib.resources import files

    folder = Path(str(files("cecdata"))) / "sample"
    found = sorted(folder.glob("*.txt"))
    if not found:
        raise InputError(f"{folder}: the packaged sample corpus is missing; install again")
    return [_source(path, f"sample/{path.name}") for path in found]


def _dataset(folder: Path) -> list[Source]:
    """A Hugging Face dataset on disk: `data/*.parquet`, or the *.arrow files of `save_to_disk`."""
    saved = [folder / name for name in ("dataset_dict.json", "state.json")]
    if any(path.is_file() for path in saved):
        found = sorted(folder.rglob("*.arrow"))
    else:
        found = sorted((folder / "data").glob("*.parquet"))
        if not found and (folder / "README.md").is_file():
            found = sorted(p for p in folder.rglob("*.parquet") if ".cecdata" not in p.parts)
    if not found:
        kinds = {p.suffix for p in folder.iterdir() if p.suffix in TEXT_FORMATS + TABLE_FORMATS}
        hint = min(kinds) if kinds else ".txt"
        raise InputError(
            f"{folder} is a folder, and no Hugging Face dataset (README.md + data/*.parquet, or "
            f"save_to_disk). Name its files with a glob: '{folder}/*{hint}'"
        )
    return [_source(path) for path in found]


def _neighbours(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"{folder} does not exist either."
    names = sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))
    return did_you_mean(path.name, names[:20]) if names else f"{folder} is empty."


def _hashed(source: Source) -> InputFile:
    if source.path is None:
        return InputFile(source.label, "", 0)
    digest, size = hashlib.sha256(), 0
    try:
        with source.path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
                size += len(block)
    except OSError as error:
        raise InputError(_reason(source, error)) from error
    return InputFile(source.label, digest.hexdigest(), size)
