"""Files of an object store such as S3, by the filesystems of Arrow and, through it, of fsspec.

A URI begins with s3://, gs://, abfs://, hdfs:// or, for fsspec, with fsspec+NAME://. Credentials
and addresses come from the environment: AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL …
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from cecdata.common.durable import STATE, write
from cecdata.common.durable.files import FileRecord, check_inside
from cecdata.common.errors import CecError, InputError, without_userinfo
from cecdata.common.machine import find_user_folder

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.fs import FileInfo, S3FileSystem

_BLOCK = 1 << 22
_RESERVED = "%/:@?&=+$,;!~*'()#"  # signs that have a meaning in a URI, or need no escape
_URI = re.compile(r"(s3|gs|gcs|abfss?|hdfs|viewfs|fsspec\+[a-z0-9+.-]+)://[^/]+", re.IGNORECASE)
# words of the stores' clients for denied access
_DENIED = re.compile("access.?denied|forbidden|code: 403|access.?key|signature|unrecognized_client")
_FLAT = ("s3", "gcs", "abfs")  # Arrow's names of stores with buckets and without folders
# An S3 client waits so long for a connection and for the next byte, and asks so often, before it
# gives up; Arrow's own 3 seconds are too few for a store under load, and its 31 tries too many.
_CONNECT_S, _ANSWER_S, _ATTEMPTS = 10, 20, 4


def is_remote(name: object) -> bool:
    """Return whether a name is the URI of a store."""
    return _URI.match(str(name)) is not None


class Store:
    """The objects below one URI. Raises InputError for a URI that no filesystem knows.

    Every other failure is a CecError that names the URI, the cause, and what to do.
    """

    def __init__(self, uri: str) -> None:
        from pyarrow import fs

        self.uri = without_userinfo(uri.rstrip("/"))
        with self._naming(""):
            try:
                # Arrow takes a URI as RFC 3986 wants it, and people write names as they are.
                quoted = quote(uri.rstrip("/"), safe=_RESERVED)
                files, self._path = fs.FileSystem.from_uri(quoted)
                is_s3 = files.type_name == "s3"
                self._files = _open_s3(quoted, files.region) if is_s3 else files
            except (TypeError, ValueError) as error:  # ArrowInvalid is one
                what = f"this kind of store is not supported ({error})"
                raise InputError(f"{self.uri}: {what}") from error

    def list(self) -> dict[str, FileInfo]:
        """Return all objects below the URI by name, sorted; raise CecError if no bucket exists."""
        from pyarrow import fs

        with self._naming(""):
            root = fs.FileSelector(self._path, recursive=True, allow_not_found=True)
            files = [f for f in self._files.get_file_info(root) if f.type == fs.FileType.File]
            if not files and self._files.type_name in _FLAT:
                bucket = self._path.strip("/").split("/")[0]
                if self._files.get_file_info(bucket).type == fs.FileType.NotFound:
                    raise CecError(f"{self.uri}: there is no bucket {bucket!r}")
        start = len(self._path.rstrip("/")) + 1
        return dict(sorted((self._find_relative_name(f.path[start:]), f) for f in files))

    def find(self, name: str = "") -> FileInfo | None:
        """Return the object `name`, by default the one that the URI itself names, or None."""
        from pyarrow import fs

        with self._naming(name):
            info = self._files.get_file_info(self._find_path(name))
        return info if info.type == fs.FileType.File else None

    @contextmanager
    def open_object(self, name: str) -> Iterator[NativeFile]:
        """Open an object for reading at any place."""
        with self._naming(name), self._files.open_input_file(self._find_path(name)) as file:
            yield file

    def fetch(self, name: str, path: Path, size: int, tmp: Path) -> FileRecord:
        """Write an object of `size` bytes to a local file, durably; `name` "" is the URI itself.

        Until it is whole, it is in the folder `tmp`.
        """

        def fill(temporary: Path) -> None:
            with (
                self._naming(name),
                self._files.open_input_stream(self._find_path(name)) as stream,
                temporary.open("wb") as file,
            ):
                shutil.copyfileobj(stream, file, _BLOCK)
            if (actual := temporary.stat().st_size) != size:
                where = f"{self.uri}/{name}" if name else self.uri
                raise CecError(_explain_failure(where, f"it sent {actual:,} of {size:,} bytes"))

        return write(path, fill, tmp=tmp)

    def put(self, path: Path, name: str) -> None:
        """Write a local file to the object `name`, which appears whole or not at all."""
        full = self._find_path(name)
        with path.open("rb") as file, self._naming(name):
            if self._files.type_name not in _FLAT:
                self._files.create_dir(full.rpartition("/")[0], recursive=True)
            try:
                with self._files.open_output_stream(full) as stream:
                    shutil.copyfileobj(file, stream, _BLOCK)
            except BaseException:  # closing the stream has stored what was written
                with suppress(OSError):  # the store may have failed; the error above says so
                    self._files.delete_file(full)
                raise

    def read(self, name: str) -> bytes:
        with self.open_object(name) as file:
            return bytes(file.read())

    def remove(self, name: str) -> None:
        with self._naming(name):
            self._files.delete_file(self._find_path(name))

    def _find_relative_name(self, name: str) -> str:
        """Return an object's name below the URI; raise CecError for one that may lead elsewhere."""
        try:
            return check_inside(name)
        except ValueError as error:
            raise CecError(
                f"{self.uri}: {error}. Such objects are not read: remove the object, or use "
                "another place"
            ) from error

    def _find_path(self, name: str) -> str:
        """Return the path of the object `name` in the filesystem; "" is the URI itself."""
        return f"{self._path}/{name}" if name else self._path

    @contextmanager
    def _naming(self, name: str) -> Iterator[None]:
        """Turn a client's error into one whose message has the URI, the cause and what to do."""
        from pyarrow import ArrowException  # the base of those that are no OSError or ValueError

        where = f"{self.uri}/{name}" if name else self.uri
        try:
            yield
        except FileNotFoundError as error:
            raise InputError(f"{where}: there is no such object") from error
        except (OSError, ValueError, ArrowException) as error:  # ValueError: of some names
            if isinstance(error, CecError):
                raise
            raise CecError(_explain_failure(where, without_userinfo(str(error)))) from error


def _open_s3(uri: str, region: str) -> S3FileSystem:
    """Return the filesystem of a URI with our limits of time and tries, which a URI cannot name."""
    from pyarrow import fs

    parts = urlsplit(uri)
    switches = {"true": True, "false": False}
    address = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    stated: dict[str, Any] = {"region": region, "endpoint_override": address}
    stated |= {name: switches.get(value, value) for name, value in parse_qsl(parts.query)}
    if parts.username and parts.password:
        stated["access_key"] = unquote(parts.username)
        stated["secret_key"] = unquote(parts.password)
    if "allow_delayed_open" in fs.S3FileSystem.__doc__:  # not in older versions
        stated["allow_delayed_open"] = True  # one request for a small object in place of three
    limits = {"connect_timeout": _CONNECT_S, "request_timeout": _ANSWER_S}
    tries = fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS)
    return fs.S3FileSystem(**stated, **limits, retry_strategy=tries)


def _explain_failure(where: str, said: str) -> str:
    """Return the message about an error of a store, which `said` this."""
    if _DENIED.search(said.lower()):
        return (
            f"{where}: the store refuses access ({said}). Check the credentials "
            "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE), and their "
            "permissions to list, read and write"
        )
    return (
        f"{where}: the store gave an error ({said}). Finished uploads are kept: run the same "
        "command again when the store can be reached, to continue"
    )


def fetch_copies(uri: str) -> dict[str, Path]:
    """Update the local copies of the object `uri`, or of all objects below it, and return them.

    A copy is kept while size and time of the object agree. The state of a build is not copied.
    """
    store = Store(uri)
    base = os.environ.get("CECDATA_SCRATCH") or find_user_folder("XDG_CACHE_HOME") / "cecdata"
    root = Path(base).absolute() / "copies" / hashlib.sha256(uri.encode()).hexdigest()[:16]
    single = store.find()  # the object of the URI itself has the name ""
    objects: Mapping[str, FileInfo] = {"": single} if single else store.list()
    objects = {name: item for name, item in objects.items() if not name.startswith(f"{STATE}/")}
    if not objects:
        raise InputError(f"{store.uri}: there is neither an object with this name nor a folder")
    copies = {name: root / (name or store.uri.rpartition("/")[2]) for name in objects}
    for path in root.rglob("*"):
        if path.is_file() and path not in copies.values():  # of an object that is gone
            path.unlink()
    tmp = root.with_name(f"{root.name}.tmp")  # another process may be reading what is in `root`
    for name, path in copies.items():
        item, here = objects[name], path.stat() if path.exists() else None
        written_s = item.mtime.timestamp() if item.mtime else 0.0  # some filesystems have no times
        if here is None or (here.st_size, here.st_mtime) != (item.size, written_s):
            store.fetch(name, path, item.size, tmp)
            os.utime(path, (written_s, written_s))
    return copies
