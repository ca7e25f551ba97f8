"""The Python API: perturb a sentence, build from paths, texts or frames, scan a dataset."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from cecdata.builds.build import build as build_dataset
from cecdata.builds.output import sync_copy
from cecdata.builds.pairs import make_pairs_of_text
from cecdata.common.errors import InputError, UsageError, did_you_mean
from cecdata.common.settings import require
from cecdata.common.store import is_remote
from cecdata.config import load
from cecdata.shards.manifest import SPLITS, Manifest
from cecdata.shards.reader import open_dataset

ORIGIN = "frame"  # the origin of rows without such a column
_SPLIT = pl.Enum(SPLITS)
_TEXT = (pl.String, pl.Categorical, pl.Enum)

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def perturb(text: str, recipe: str = "paper", **settings: object) -> list[dict[str, Any]]:
    """Return the pairs of one sentence, calibrated on itself, as `cecdata preview` shows them.

    Each has the columns of a dataset (docs/reference/format.md). `settings` are those of a recipe,
    such as ``seed=7`` or ``copies=8``. Raises InputError where the text is no sentence, and
    UsageError where it is no text.

    >>> import cecdata
    >>> pair = cecdata.perturb("他的病情已经好转。", recipe="typed", seed=1)[0]
    >>> pair["target"], pair["source"] == pair["target"], pair["distance"]
    ('他的病情已经好转。', False, 1)
    """
    require(isinstance(text, str), "text", text, "a sentence, in a str")
    return make_pairs_of_text(text, load(recipe, **settings))


def build(
    *,
    paths: Paths | None = None,
    texts: Iterable[str | None] | None = None,
    frame: Any = None,
    column: str | None = None,
    out: str | os.PathLike[str] | None = None,
    recipe: str = "paper",
    workers: int = 1,
    engine: str = "local",
    overwrite: bool = False,
    **settings: object,
) -> pl.DataFrame | Manifest:
    """Build pairs as `cecdata build` does, of paths, of a list of texts, or of a frame.

    `paths` are what the command takes; a frame is one of Polars, pandas or Arrow, or a dataset of
    the package `datasets`. `column` has its texts, by default `text` or the only string column; its
    columns `origin` and `licence` count, if it has them. With `out`, the pairs are written as a
    dataset to that folder or store, and its manifest is returned; without, the pairs are returned
    as a frame with a column `split`, the training pairs first. `settings` are those of a recipe.
    Raises UsageError for anything else than exactly one of the three.

    >>> import cecdata
    >>> frame = cecdata.build(texts=["他的病情已经好转。"], recipe="typed", copies=2)
    >>> frame.columns[:4], len(frame)
    (['id', 'copy', 'source', 'target'], 2)
    """
    if paths is not None and column is not None:
        settings["text_column"] = column
    if paths is None and "text_column" in settings:
        raise UsageError("text_column=… is for paths: name the column of a frame by column=…")
    config = load(recipe, **settings)
    place = None if out is None else _find_place(out)
    how: dict[str, Any] = {"workers": workers, "engine": engine, "overwrite": overwrite}
    if paths is None:
        how["named"] = "the frame"  # which is in a temporary file
    with _name_corpus(paths, texts, frame, column) as corpus:
        if place is not None:
            return build_dataset(corpus, place, config, **how)
        with TemporaryDirectory(prefix="cecdata-") as folder:
            build_dataset(corpus, Path(folder) / "out", config, **how)
            return scan(Path(folder) / "out").collect()


def scan(out: str | os.PathLike[str], split: str | None = None) -> pl.LazyFrame:
    """Return the pairs of a finished dataset as a lazy frame, training pairs first.

    The columns are those of docs/reference/format.md with their types, and `split`. The files are
    first compared with the manifest and hashed. A dataset in a store, such as s3://bucket/out, is
    read from a local copy, which is updated first. Raises InputError if `out` is no dataset,
    VerificationError if it is damaged, and UsageError for an unknown split.
    """
    place = _find_place(out)
    dataset = open_dataset(sync_copy(place) if isinstance(place, str) else place)
    names = SPLITS if split is None else (split,)
    return pl.concat([dataset.scan(n).with_columns(split=pl.lit(n, _SPLIT)) for n in names])


def _find_place(out: object) -> Path | str:
    is_place = isinstance(out, (str, os.PathLike))
    require(is_place, "out", out, "a folder or the URI of a store, as a str or a path")
    return str(out) if is_remote(out) else Path(str(out))


@contextmanager
def _name_corpus(
    paths: Paths | None, texts: Iterable[str | None] | None, frame: Any, column: str | None
) -> Iterator[list[str]]:
    """Yield the names of a corpus of what the caller gave; a list or frame is a file meanwhile."""
    every = {"paths": paths, "texts": texts, "frame": frame}
    stated = [name for name, value in every.items() if value is not None]
    if len(stated) != 1:
        raise UsageError(
            f"give exactly one of paths=…, texts=… and frame=…, not {', '.join(stated) or 'none'}"
        )
    if column is not None and texts is not None:
        raise UsageError("column=… is for frames and files; leave it out with texts=…")
    if paths is not None:
        listed = [paths] if isinstance(paths, (str, os.PathLike)) else paths
        yield [os.fspath(path) for path in _check_list("paths", listed, (str, os.PathLike))]
        return
    lazy = _make_frame(texts) if texts is not None else _to_lazy_frame(frame)
    with TemporaryDirectory(prefix="cecdata-") as folder:
        path = Path(folder) / "frame.parquet"
        _select_columns(lazy, column).sink_parquet(path)
        yield [str(path)]


def _make_frame(texts: Iterable[str | None]) -> pl.LazyFrame:
    listed = _check_list("texts", texts, (str, type(None)))
    try:
        return pl.LazyFrame({"text": pl.Series(listed, dtype=pl.String)})
    except UnicodeEncodeError as error:
        raise UsageError(f"{error.object!r} has an unpaired surrogate: remove it") from error


def _check_list(name: str, values: Any, kinds: tuple[type, ...]) -> list[Any]:
    """Return values as a list; raise UsageError unless each is of one of `kinds`."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        kind = type(values).__name__
        raise UsageError(
            f"{name} must be a list, not a {kind}; pass tables as frame=…, files as paths=…"
        )
    listed = list(values)
    for place, value in enumerate(listed):
        if not isinstance(value, kinds):
            kind = type(value).__name__
            raise UsageError(f"{name}[{place}] must be a {name[:-1]}, not a {kind}")
    return listed


def _to_lazy_frame(frame: Any) -> pl.LazyFrame:
    """Return a table of any library as a lazy frame of Polars; raise UsageError for others."""
    if isinstance(frame, pl.LazyFrame):
        return frame
    if hasattr(frame, "to_polars"):  # of the package `datasets`
        frame = frame.to_polars()
    try:
        if hasattr(frame, "__dataframe__") or hasattr(frame, "__arrow_c_stream__"):
            return pl.DataFrame(frame).lazy()
    except (TypeError, ValueError) as error:
        raise InputError(f"frame has a column with values of several types ({error})") from error
    raise UsageError(
        "frame must be a table of Polars, pandas or Arrow, or a dataset of `datasets`, not a "
        f"{type(frame).__name__}; pass lists of texts as texts=…, files as paths=…"
    )


def _select_columns(lazy: pl.LazyFrame, column: str | None) -> pl.LazyFrame:
    """Return the texts, origins and licences of a frame."""
    schema = lazy.collect_schema()
    strings = [name for name, kind in schema.items() if kind in _TEXT]
    name = column or ("text" if "text" in strings or len(strings) != 1 else strings[0])
    if name not in strings:
        hint = did_you_mean(name, strings)
        raise InputError(f"the frame has no string column {name!r}: name one by column=…; {hint}")
    origin = pl.col("origin") if "origin" in strings and name != "origin" else pl.lit(ORIGIN)
    licences = [n for n in ("licence", "license") if n in strings and n != name][:1]
    more = [pl.col(n).alias("licence") for n in licences]
    lazy = lazy.with_columns(pl.col(strings).cast(pl.String))
    return lazy.select(pl.col(name).alias("text"), origin.fill_null(ORIGIN).alias("origin"), *more)
