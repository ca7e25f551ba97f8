"""A dataset of the Hugging Face hub, streamed: `hf://OWNER/NAME?config=…&split=…&revision=…`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa

from cecdata.common.errors import CecError, InputError, MissingPackageError, how_to_install
from cecdata.common.hub import first_line, prepare_hub, quiet_hub
from cecdata.corpus.formats.tables import table_rows
from cecdata.corpus.rows import Format, Rows
from cecdata.corpus.sources import Columns, Source

HUB = "hf://"
_OPTIONS = ("config", "split", "revision")
_TIMEOUT_S = 20.0


def revision(name: str) -> str:
    """Return the commit of a dataset on the hub; raise InputError if the hub does not answer."""
    repository, options = _parsed(name)
    with _naming(name):
        from huggingface_hub import HfApi

        found = HfApi().dataset_info(
            repository, revision=options.get("revision"), timeout=_TIMEOUT_S
        )
    return str(found.sha)


def _read(source: Source, columns: Columns, batch_rows: int) -> Iterator[Rows]:
    """Yield the rows of a split (`train` unless one is named) as they come from the hub."""
    with _naming(source.label):
        yield from table_rows(source, columns, _batches(source, batch_rows))


def _values(source: Source) -> Iterator[object]:
    with _naming(source.label):
        yield from _batches(source, 10_000)


def _batches(source: Source, rows: int) -> Iterator[pa.RecordBatch]:
    import datasets

    repository, options = _parsed(source.label)
    split = datasets.load_dataset(
        repository,
        options.get("config"),
        split=options.get("split", "train"),
        revision=options.get("revision"),
        streaming=True,
    )
    for table in split.with_format("arrow").iter(batch_size=min(rows, 10_000)):
        yield from table.to_batches()


def _parsed(name: str) -> tuple[str, dict[str, str]]:
    """Return the repository and the options in a name; raise InputError if its form is wrong."""
    parts = urlsplit(name)
    repository = (parts.netloc + parts.path).removeprefix("datasets/").strip("/")
    options = dict(parse_qsl(parts.query))
    if repository.count("/") > 1 or not repository or set(options) - set(_OPTIONS):
        raise InputError(
            f"{name}: a dataset of the hub is named {HUB}OWNER/NAME, with any of ?config=…&split=…"
            "&revision=… after it"
        )
    return repository, options


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Turn any error of the hub or its client into an InputError that names the dataset.

    Raises UsageError where HF_ENDPOINT is no address. No message or log record has its login.
    """
    prepare_hub()
    try:
        with quiet_hub():
            yield
    except (CecError, GeneratorExit):
        raise
    except ImportError as error:
        raise MissingPackageError(
            f"{name}: reading from the hub needs datasets: {how_to_install('embed')}"
        ) from error
    except Exception as error:  # noqa: BLE001 - the hub and its client may raise anything
        raise InputError(
            f"{name}: the hub has no such dataset, or did not answer ({type(error).__name__}: "
            f"{first_line(error)}). Check the name and the network (HF_ENDPOINT names another "
            "server), or download the dataset and give its folder"
        ) from None  # the original message may have a password


FORMAT = Format(_read, _values, (), stream=False)
