"""The text of a field: its distinct Chinese sentences, in the order of their ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

from cecdata.builds.build import build
from cecdata.common.machine import usable_cores
from cecdata.config import load

QUALITY = ("han", "simplified", "mojibake")  # what else is no text of the corrector's language
_BLOCK = 16_384  # sentences


@dataclass(frozen=True, slots=True)
class FieldText:
    """Sentences on disk, so that memory does not grow with them.

    left_out: how many rows were not used, by reason.
    """

    files: tuple[Path, ...]
    count: int
    left_out: dict[str, int]

    def blocks(self) -> Iterator[list[str]]:
        """Yield all sentences."""
        for path in self.files:
            for batch in pq.ParquetFile(path).iter_batches(_BLOCK, columns=["text"]):
                yield batch.column(0).to_pylist()

    def first(self, count: int) -> list[str]:
        """Return the first sentences; as ids are hashes, they are a fair sample."""
        sentences: list[str] = []
        for block in self.blocks():
            sentences += block[: count - len(sentences)]
            if len(sentences) == count:
                break
        return sentences


@contextmanager
def gather_text(
    texts: Sequence[str], *, names: bool, decontaminate: Sequence[str]
) -> Iterator[FieldText]:
    """Yield the text of files as `cecdata pool` gathers it, in a folder that is then removed.

    names: False replaces the names of people that `cecdata` recognises by placeholders.
    decontaminate: benchmarks whose sentences are left out. Raises InputError where no sentence is
    left.
    """
    config = load(
        split_sentences=True, mask=not names, decontaminate=tuple(decontaminate), quality=QUALITY
    )
    with TemporaryDirectory(prefix="cectrain-") as folder:
        manifest = build(texts, Path(folder) / "pool", config, pool=True, workers=usable_cores())
        files = manifest.outputs["train"]
        paths = tuple(Path(folder) / "pool" / file.path for file in files)
        left_out = dict(manifest.rows.rejected)
        yield FieldText(paths, sum(file.rows for file in files), left_out)
