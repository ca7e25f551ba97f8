"""The records of a dataset: `manifest.json`, and `run.json` for the facts of a single run.

Two builds of the same input with the same configuration write the same `manifest.json`, byte for
byte. Its last key is a seal (`cecdata.common.codec`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cecdata.common.codec import Json, decode, encode, parse, seal_object, unseal_object
from cecdata.common.durable.files import check_inside
from cecdata.common.errors import InputError, VerificationError
from cecdata.shards.schema import FIRST_VERSION, SCHEMA_VERSION

MANIFEST = "manifest.json"
RUN = "run.json"
SPLITS = ("train", "validation")
PRODUCT = "cec-zero"
PAIRS, POOL = "pairs", "pool"  # kinds of datasets
_ROWS = {PAIRS: "pairs", POOL: "sentences"}


@dataclass(frozen=True, slots=True)
class File:
    """A file of the dataset, or an input; `path` is relative to the dataset, with slashes."""

    path: str
    sha256: str
    bytes: int
    rows: int
    extra: Mapping[str, Json] = field(default_factory=dict)

    @property
    def ids(self) -> tuple[int, int] | None:
        """Return the smallest and the largest id of a shard; None in a layout without ranges."""
        ids: Any = self.extra.get("ids")
        return None if ids is None else (int(ids[0]), int(ids[1]))


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of rows or pairs: ``read == kept + sum(rejected.values())``."""

    read: int
    kept: int
    rejected: Mapping[str, int] = field(default_factory=dict)  # reason → how many

    def __post_init__(self) -> None:
        lost = self.read - self.kept - sum(self.rejected.values())
        if lost:
            raise ValueError(
                f"{self.read:,} read, but {self.kept:,} kept and {self.rejected} rejected: "
                f"{lost:,} unaccounted for"
            )


@dataclass(frozen=True, slots=True)
class About:
    """What the publisher of a dataset says about it; an empty text is not stated."""

    title: str = ""
    licence: str = ""  # an identifier of the Hub, such as "cc-by-4.0"
    contact: str = ""  # who answers questions: an address, or a page
    description: str = ""  # a paragraph


@dataclass(frozen=True, slots=True)
class Origin:
    """The sentences of one origin under one licence."""

    origin: str
    licence: str | None  # as the corpus states it
    sentences: int
    characters: int


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """A pool whose sentences were used, with the settings that had already been applied to them."""

    path: str
    version: str  # of the product
    fingerprint: str
    content_sha256: str
    configuration: Mapping[str, Json]
    rows: Counts
    inputs: tuple[File, ...] = ()


@dataclass(frozen=True, slots=True)
class Calibration:
    """One operator's rates: E[distance / length], as fractions."""

    operator: str
    target: float  # what the configuration asks for
    reachable: float  # the nearest to it that the corpus allows
    rate: float  # the frozen rate per eligible place
    achieved: float  # measured over the kept pairs


@dataclass(frozen=True, slots=True)
class Cosine:
    """The cosines of source and target: by which encoder, of how many pairs."""

    encoder: str = ""
    threshold: float | None = None
    policy: str = "none"  # "all", "sample" or "none"
    scored: int = 0
    extra: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that decides the rows, and the resulting counts and files."""

    version: str  # of the product
    configuration: Mapping[str, Json]
    versions: Mapping[str, str]  # packages that can change bytes
    tables: Mapping[str, str]  # name → SHA-256
    inputs: tuple[File, ...]
    outputs: Mapping[str, tuple[File, ...]]  # split → shards, in order
    rows: Counts  # of the corpus
    pairs: Counts
    operators: Mapping[str, int] = field(default_factory=dict)  # kept pairs by operator
    calibration: tuple[Calibration, ...] = ()
    cosine: Cosine = Cosine()
    rejects: tuple[File, ...] = ()
    embeddings: tuple[File, ...] = ()  # of the targets, where the cosine was measured
    documents: tuple[File, ...] = ()  # card, hashes of benchmarks; `rows` is 0
    about: About = About()
    origins: tuple[Origin, ...] = ()  # of the sentences, the most frequent first
    pools: tuple[PoolRecord, ...] = ()  # that the sentences came from, where they came from pools
    fingerprint: str = ""  # of the configuration; always computed
    content_sha256: str = ""  # of the shards' SHA-256, by path; always computed
    schema_version: int = SCHEMA_VERSION
    product: str = PRODUCT
    extra: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fingerprint", fingerprint(self.configuration))
        object.__setattr__(self, "content_sha256", content_sha256(self.outputs))
        for record in self.files():
            check_inside(record.path)
        stored = sum(record.rows for shards in self.outputs.values() for record in shards)
        rows_passed = (self.rows if self.kind == POOL else self.pairs).kept
        if stored != rows_passed:
            raise ValueError(
                f"{rows_passed:,} {_ROWS[self.kind]} kept, but the shards hold {stored:,}"
            )

    @property
    def kind(self) -> str:
        """Return the kind of rows: "pairs", or "pool" for sentences."""
        return POOL if self.extra.get("kind") == POOL else PAIRS

    def files(self) -> tuple[File, ...]:
        """Return every file of the dataset that the manifest names."""
        shards = [record for records in self.outputs.values() for record in records]
        return (*shards, *self.rejects, *self.embeddings, *self.documents)


@dataclass(frozen=True, slots=True)
class Run:
    """Facts that differ between runs, kept apart so that equal builds have equal manifests."""

    created: str  # UTC, ISO 8601
    seconds: float
    command: str
    git_commit: str = ""
    cpus: int = 0
    workers: int = 0


def fingerprint(configuration: Mapping[str, Json]) -> str:
    """Return the SHA-256 of a configuration as canonical JSON: sorted keys, no spaces."""
    text = json.dumps(
        encode(configuration),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )
    return hashlib.sha256(text.encode()).hexdigest()


def content_sha256(outputs: Mapping[str, tuple[File, ...]]) -> str:
    """Return one SHA-256 of all shards: of the lines "SHA-256, two spaces, path", sorted by path.

    `sha256sum data/*.parquet | sha256sum` prints it in the dataset's folder.
    """
    records = sorted((file.path, file.sha256) for files in outputs.values() for file in files)
    lines = "".join(f"{digest}  {path}\n" for path, digest in records)
    return hashlib.sha256(lines.encode()).hexdigest()


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the bytes of `manifest.json`, sealed."""
    keys = ("product", "version", "schema_version", "fingerprint", "content_sha256")
    first: dict[str, Json] = dict.fromkeys(keys)
    document = encode(manifest)
    assert isinstance(document, dict)
    return seal_object({**first, **document}, indent=2)


def decode_manifest(data: bytes, where: str = MANIFEST) -> Manifest:
    """Return the manifest in these bytes.

    Raises VerificationError if a bit has changed since it was written, or if a later version wrote
    it.
    """
    try:
        document = parse(data)
    except ValueError as error:
        raise VerificationError(f"{where}: not JSON ({error}). {_REBUILD}") from error
    # before the seal, of which a later version may have another form
    version = document.get("schema_version") if isinstance(document, dict) else None
    if isinstance(version, int) and not FIRST_VERSION <= version <= SCHEMA_VERSION:
        raise VerificationError(
            f"{where}: schema version {version}, but this release reads {FIRST_VERSION} to "
            f"{SCHEMA_VERSION}. Install a newer {PRODUCT}, or rebuild an older dataset."
        )
    try:
        sealed = unseal_object(data)
    except ValueError as error:
        raise VerificationError(f"{where}: damaged or edited ({error}). {_REBUILD}") from error
    try:
        return decode(Manifest, sealed, "")
    except ValueError as error:
        raise VerificationError(f"{where}: {error}. {_REBUILD}") from error


def read_manifest(out: Path, *kinds: str) -> Manifest:
    """Return the manifest of the dataset at `out`; it must be one of `kinds`, by default of pairs.

    Raises InputError if the folder is no dataset or one of another kind, and VerificationError if
    it is damaged or unfinished.
    """
    path = out / MANIFEST
    if not out.is_dir():
        raise InputError(f"{out}: no such folder. Name a folder that `cecdata build` has written")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise _explain_missing(out) from None
    except OSError as error:
        raise VerificationError(f"{path}: cannot be read ({error.strerror})") from error
    manifest = decode_manifest(data, str(path))
    if manifest.kind not in (kinds or (PAIRS,)):
        uses = "a pool of sentences: `cecdata build` makes pairs from it"
        raise InputError(f"{out} is {uses if manifest.kind == POOL else 'a dataset of pairs'}")
    return manifest


def find_pools(corpus: Sequence[str]) -> tuple[PoolRecord, ...]:
    """Return the records of the pools among the folders that a build was given."""
    found = []
    for name in corpus:
        if not (Path(name) / MANIFEST).is_file():
            continue
        pool = read_manifest(Path(name), PAIRS, POOL)
        if pool.kind == POOL:
            made = (pool.version, pool.fingerprint, pool.content_sha256, pool.configuration)
            found.append(PoolRecord(name, *made, pool.rows, pool.inputs))
    return tuple(found)


_REBUILD = "Rebuild the dataset with `cecdata build … --overwrite`."


def _explain_missing(out: Path) -> InputError | VerificationError:
    if (out / ".cecdata").is_dir():
        return VerificationError(
            f"{out} has no {MANIFEST}: its build is not finished, or it is not a dataset. To "
            "continue an interrupted build, run the same `cecdata build` again."
        )
    return InputError(f"{out} is not a dataset of {PRODUCT}: it has no {MANIFEST}")
