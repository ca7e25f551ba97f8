"""The text of a field: its distinct Chinese sentences, in the order of their ids, and those among
them that seem to have an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import nsmallest
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cecdata.builds.build import build
from cecdata.builds.read import clean_rows
from cecdata.common.machine import count_usable_cores
from cecdata.common.progress import advance_bar
from cecdata.config import Config, load
from cecdata.corpus.reading import read_corpus
from cectrain.corrector.channel.proposer import ChannelProposer
from cectrain.corrector.correction import Correction
from cectrain.corrector.corrector import Corrector

QUALITY = ("han", "simplified", "mojibake")  # what else is no text of the corrector's language
_BLOCK, _READ_AT_ONCE = 16_384, 256  # sentences
READ = 20_000  # sentences; in more text an error is outweighed by what is right
USUAL = 3  # sentences in which the same doubt shows a usage of the field


@dataclass(frozen=True, slots=True)
class FieldText:
    """Sentences on disk, so that memory does not grow with them.

    left_out: how many rows were not used, by reason. texts, config: from what they were made, and
    how.
    """

    files: tuple[Path, ...]
    count: int
    left_out: dict[str, int]
    texts: Sequence[str]
    config: Config

    def read_blocks(self) -> Iterator[list[str]]:
        """Yield all sentences."""
        for path in self.files:
            for batch in pq.ParquetFile(path).iter_batches(_BLOCK, columns=["text"]):
                yield batch.column(0).to_pylist()

    def read_first(self, count: int) -> list[str]:
        """Return the first sentences; as ids are hashes, they are a fair sample."""
        return [*islice(chain.from_iterable(self.read_blocks()), count)]

    def choose_evenly(self, count: int) -> list[str]:
        """Return so many sentences: the first of each origin, the second of each, and so on."""
        seen: Counter[str] = Counter()

        def rank_sentences() -> Iterator[tuple[int, str]]:
            """Yield each sentence after its number among those of its origin."""
            for path in self.files:
                for batch in pq.ParquetFile(path).iter_batches(_BLOCK, columns=["text", "origin"]):
                    for row in batch.to_pylist():
                        seen[row["origin"]] += 1
                        yield seen[row["origin"]], row["text"]

        return [text for _, text in nsmallest(count, rank_sentences(), key=itemgetter(0))]

    def find_places(self, sentences: Collection[str]) -> dict[str, str]:
        """Return the file and the line or row in which each of these sentences stands first."""
        places: dict[str, str] = {}
        wanted = pa.array([*sentences], pa.string())
        read = {"text_column": self.config.text_column, "encoding": self.config.encoding}
        for rows in read_corpus(self.texts, **read) if sentences else ():
            batch = clean_rows(rows, self.config, None).batch
            found = batch.filter(pc.is_in(batch["text"], wanted))
            for text, file, row in zip(*map(found.column, ("text", "file", "row")), strict=True):
                places.setdefault(text.as_py(), f"{file}:{row}")
        return places


@contextmanager
def gather_text(
    texts: Sequence[str], *, names: bool, decontaminate: Sequence[str], **reading: str
) -> Iterator[FieldText]:
    """Yield the text of files as `cecdata pool` gathers it, in a folder that is then removed.

    names: False replaces the names of people that `cecdata` recognises by placeholders.
    decontaminate: benchmarks whose sentences are left out. reading: `text_column` and `encoding` of
    a `Config`. Raises InputError where no sentence is left.
    """
    config = load(
        split_sentences=True,
        mask=not names,
        decontaminate=tuple(decontaminate),
        quality=QUALITY,
        **reading,
    )
    with TemporaryDirectory(prefix="cectrain-") as folder:
        pool = Path(folder) / "pool"
        manifest = build(texts, pool, config, pool=True, workers=count_usable_cores())
        files = manifest.outputs["train"]
        paths = tuple(pool / file.path for file in files)
        left_out = dict(manifest.rows.rejected)
        count = sum(file.rows for file in files)
        yield FieldText(paths, count, left_out, texts, config)


@dataclass(frozen=True, slots=True)
class Doubt:
    """A sentence, what the corrector would have written, and its place, as FILE:LINE."""

    sentence: str
    suggestion: str
    place: str


def find_doubts(channel: ChannelProposer, text: FieldText) -> tuple[Doubt, ...]:
    """Return the doubts about the first sentences of a text.

    What is doubted in several sentences in the same way is taken for the usage of the field.
    """
    corrector = Corrector(channel)
    sentences = text.read_first(READ)
    blocks = [sentences[at : at + _READ_AT_ONCE] for at in range(0, len(sentences), _READ_AT_ONCE)]
    corrections: list[Correction] = []
    with ThreadPoolExecutor(count_usable_cores()) as threads:
        for block in threads.map(corrector.correct, blocks):
            corrections += (correction for correction in block if correction.edits)
            advance_bar("sentences read for doubts", len(block), len(sentences))
    times = Counter(change for c in corrections for change in {*_find_changes(c)})
    suggestions = {
        c.source: c.target
        for c in corrections
        if any(times[change] < USUAL for change in _find_changes(c))
    }
    places = text.find_places(suggestions)
    return tuple(Doubt(text, target, places[text]) for text, target in suggestions.items())


def _find_changes(correction: Correction) -> list[tuple[str, str]]:
    """Return each edit with the characters beside it, as written and as suggested."""
    source = correction.source
    return [
        (source[max(0, edit.start - 1) : edit.end + 1], edit.target) for edit in correction.edits
    ]
