"""The files to read for the names that a user gives: files, globs, folders, `-`, `sample`."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cecdata.common.durable import sha256_of
from cecdata.common.errors import InputError, UsageError, did_you_mean, without_userinfo
from cecdata.common.store import fetch_copies, is_remote
from cecdata.common.text import HEAD, advise_decompression, split_at_folder
from cecdata.corpus.encodings import AUTO, choose_encoding, find_codec
from cecdata.corpus.formats import FORMATS
from cecdata.corpus.sources import COMPRESSIONS, STDIN, UTF8, Source, describe_error
from cecdata.shards.manifest import File

_NOT_UTF8 = re.compile("[\ud800-\udfff]")  # as Python reads such bytes in a name
SAMPLE = "sample"  # the corpus that ships with the package


def find_sources(
    paths: Sequence[str], form: str | None = None, encoding: str | None = None
) -> list[Source]:
    """Return the files of a corpus. Paths keep their order; a glob or a folder is sorted.

    `form`, a name in FORMATS, overrides the suffixes of files. `encoding` is that of text formats;
    None and "auto" detect it. Raises InputError for a file that is missing, has an unknown suffix
    or is not a regular file, and for a folder without a readable file; UsageError for an unknown
    format or encoding.
    """
    if not paths:
        raise InputError("no corpus was named: name a file, a glob, a dataset folder, or `sample`")
    if form is not None and form not in FORMATS:
        raise UsageError(f"unknown format {form!r}; {did_you_mean(form, list(FORMATS))}")
    sources = [source for path in paths for source in _find_named(str(path), form)]
    try:
        named = "" if encoding in (None, AUTO) else find_codec(encoding)
    except (LookupError, UnicodeError) as error:
        raise UsageError(
            f"unknown text encoding {encoding!r}: use one such as gb18030, big5 or utf-16"
        ) from error
    return [_set_encoding(source, named) for source in sources]


def _set_encoding(source: Source, named: str) -> Source:
    """Return a text file with the encoding that the user named, or its own if that is ""."""
    if source.problem or not FORMATS[source.format].stream:
        return source
    if not named:
        named = choose_encoding(source) if source.path else UTF8  # a pipe is taken for UTF-8
    return replace(source, encoding=named)


def _find_named(name: str, form: str | None) -> list[Source]:
    """Return the files that one name stands for: a path, a glob, a URI, `-` or `sample`."""
    if name == STDIN:
        if form is not None and not FORMATS[form].stream:
            raise InputError(f"{form} cannot be read from standard input: name a file")
        return [Source(None, STDIN, form or "text", guessed=form is None)]
    if is_remote(name):
        return _fetch_remote(name, form)
    if name == SAMPLE and not Path(name).exists():
        return _list_sample()
    path = Path(name)
    if path.is_dir():
        return _list_folder(path)
    if path.exists():
        return [_check_file(path, form=form)]
    if glob.has_magic(name):
        return _match_glob(name, form)
    if "://" in name:
        raise InputError(
            f"{name}: this kind of store is not supported. Download the data, and name the file "
            "or folder"
        )
    raise InputError(f"{name}: there is no such file. {_suggest_name(path)}")


def _check_file(path: Path, label: str | None = None, form: str | None = None) -> Source:
    """Return a file, `label` in messages, in the format `form`; raise InputError if unreadable."""
    if _NOT_UTF8.search(str(path)):
        raise InputError(f"{str(path)!a}: the file's name is not valid UTF-8: rename it")
    format_of_suffix, compression, suffix = parse_suffixes(path)
    name = form or format_of_suffix
    if not name or (compression and not FORMATS[name].stream):
        raise InputError(f"{path}: {_explain_suffixes(suffix + compression)}")
    # Arrow takes a relative name such as "s3:x" for an address.
    source = Source(
        path.absolute(),
        label or str(path),
        name,
        compression,
        suffix if suffix in _list_suffixes() else "",
        guessed=form is None,
    )
    _check_content(path, source)
    return source


def _explain_suffixes(suffix: str) -> str:
    """Return what follows the name of a file whose suffix is unknown in the message about it."""
    formats = _list_suffixes().items()
    streams = " ".join(known for known, name in formats if FORMATS[name].stream)
    tables = " ".join(known for known, name in formats if not FORMATS[name].stream)
    return (
        f"unknown suffix {suffix!r}; known suffixes are {streams} (each also with "
        f"{' '.join(COMPRESSIONS)}) and {tables}. For other texts, rename the file, or set "
        "--format of `cecdata build`"
    )


def _check_content(path: Path, source: Source) -> None:
    """Raise InputError where a file cannot be read, is a device or is compressed unsaid."""
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
        head = b""
        if regular:
            with path.open("rb") as file:
                head = file.read(HEAD)
    except OSError as error:
        raise InputError(describe_error(source, error)) from error
    is_plain = FORMATS[source.format].stream and not source.compression
    if is_plain and (advice := advise_decompression(head)):
        raise InputError(f"{source.label} {advice}")
    if not regular:
        raise InputError(
            f"{source.label} is a pipe or a device, but a corpus is read more than once: write it "
            f"to a file, or pipe it into standard input and give `{STDIN}` as CORPUS"
        )


def parse_suffixes(path: Path) -> tuple[str, str, str]:
    """Return the format that a file's name stands for, or "", its compression, and its suffix."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else ""
    suffix = suffixes[-1] if suffixes else ""
    name = _list_suffixes().get(suffix, "")
    return (name if name and (not compression or FORMATS[name].stream) else ""), compression, suffix


def _list_suffixes() -> dict[str, str]:
    """Return suffix → name of the format of such files."""
    return {suffix: name for name, form in FORMATS.items() for suffix in form.suffixes}


def _match_glob(pattern: str, form: str | None) -> list[Source]:
    """Return the files that match a glob; raise InputError if none does or none can be read."""
    folder, rest = split_at_folder(pattern)  # pathlib's glob takes no absolute pattern
    names = glob.glob(rest, root_dir=folder or None, recursive=True)  # noqa: PTH207
    paths = sorted(path for path in (folder / name for name in names) if not path.is_dir())
    if not paths:
        brackets = ". In a glob, [x] stands for x, and [[]x] for [x]" if "[" in pattern else ""
        raise InputError(f"{pattern}: no file matches this glob{brackets}")
    sources = [
        _check_file(path, form=form)
        if path.is_file() and not _NOT_UTF8.search(str(path))
        else _check_leniently(path)
        for path in paths
    ]
    if all(source.problem for source in sources):
        raise InputError(sources[0].detail)
    return sources


def _fetch_remote(uri: str, form: str | None) -> list[Source]:
    """Return local copies of an object, or of all below a name."""
    label, copies = without_userinfo(uri.rstrip("/")), fetch_copies(uri)
    if shards := [name for name in copies if re.fullmatch(r"data/[^/]+\.parquet", name)]:
        copies = {name: copies[name] for name in shards}
    elif "" not in copies:
        hidden = {name for name in copies if name.startswith(".") or "/." in name}
        copies = {name: path for name, path in copies.items() if name not in hidden}
    if form is None and "" not in copies:  # the user named neither the format nor the object
        return [_check_leniently(path, f"{label}/{name}") for name, path in copies.items()]
    return [
        _check_file(path, f"{label}/{name}" if name else label, form)
        for name, path in copies.items()
    ]


def _list_sample() -> list[Source]:
    """Return the files of the corpus that ships with the package."""
    folder = Path(__file__).parents[1] / "sample"
    return [_check_file(path, f"sample/{path.name}") for path in sorted(folder.glob("*.txt"))]


def _list_folder(folder: Path) -> list[Source]:
    """Return the files of a folder, sorted by name.

    Of a Hugging Face dataset they are `data/*.parquet`, or all *.parquet files beside a
    `README.md`; of any other folder all files below it. An unreadable one there has a `problem`.
    """
    paths = sorted((folder / "data").glob("*.parquet"))
    if not paths and (folder / "README.md").is_file():
        paths = sorted(p for p in folder.rglob("*.parquet") if ".cecdata" not in p.parts)
    if paths:
        return [_check_file(path) for path in paths]
    sources = [_check_leniently(path) for path in list_files_below(folder)]
    if all(source.problem for source in sources):
        examples = ", ".join(source.label for source in sources[:3]) or "it is empty"
        raise InputError(
            f"{folder}: no file in this folder can be read ({examples}). A corpus is a Hugging "
            f"Face dataset, or files such as {' '.join(_list_suffixes())}"
        )
    return sources


def list_files_below(folder: Path) -> list[Path]:
    """Return the files below a folder, sorted; hidden files and folders are skipped.

    Each is visited once, so that a cycle of links ends. Raises InputError for an unreadable one.
    """

    def refuse(error: OSError) -> None:
        raise InputError(f"{error.filename}: the folder cannot be read ({error.strerror})")

    files: list[Path] = []
    visited: set[str] = set()
    for place, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        real = os.path.realpath(place)
        if real in visited:
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        files += (Path(place) / name for name in names if not name.startswith("."))
    return sorted(files)


def _check_leniently(path: Path, name: str | None = None) -> Source:
    """Return a file that the user did not name itself; if it is rejected unread, with `problem`."""
    try:
        return _check_file(path, name)
    except InputError as error:
        detail = str(error)
    is_known = path.suffix.lower() in _list_suffixes() or path.suffix.lower() in COMPRESSIONS
    problem = "unreadable_file" if is_known or not path.is_file() else "unknown_format"
    if _NOT_UTF8.search(str(path)):
        problem = "name_not_utf8"
    label = name or str(path).encode("utf-8", "backslashreplace").decode("utf-8")
    return Source(path, label, "text", problem=problem, detail=detail)


def _suggest_name(path: Path) -> str:
    """Return why a file is missing, or the nearest name, as the end of a message."""
    folder = path.parent
    if path.is_symlink():
        return f"It is a link to {path.readlink()}, which does not exist."
    if not folder.is_dir():
        return f"{folder} does not exist either."
    names = sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))
    return did_you_mean(path.name, names[:20]) if names else f"{folder} is empty."


def hash_file(source: Source) -> File:
    """Return a file of a corpus as the manifest lists it; its rows are not counted yet.

    Standard input has the SHA-256 "" before it is read.
    """
    if source.path is None or source.problem:
        return File(source.label, "", 0, 0)
    record = sha256_of(source.path)
    return File(source.label, record.sha256, record.bytes, 0)
