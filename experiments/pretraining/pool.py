"""The sentences of a pretraining: openly licensed, in no benchmark, not too many of an origin.

read = kept + left out, and every sentence that is left out has a reason.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from cecdata.common import durable
from cecdata.common.codec import Json
from cecdata.common.errors import InputError
from cecdata.contamination.benchmarks import decontaminate
from cecdata.contamination.benchmarks import load_index as known_benchmarks
from cecdata.contamination.index import CONTAMINATED, SHARED
from cecdata.corpus.ids import is_validation
from cecdata.corpus.normalise import Normalised, normalise, reject_rows
from cecdata.corpus.reading import read_corpus
from cecdata.hanzi.characters import is_han
from cectrain.data import shards
from experiments.pretraining.config import PretrainConfig
from experiments.pretraining.model import placeholders, vocabulary

_COLUMNS = ["id", "text", "origin"]
FILE = "pool.arrow"


@dataclass(frozen=True, slots=True)
class Pool:
    """Sentences (id, text, origin) in random order; the first ones are held out."""

    table: pa.Table
    held_out: int
    counts: dict[str, Json]  # {"read": …, "kept": {origin: …}, "left_out": {reason: …}}

    @property
    def watched(self) -> pa.Table:
        """The sentences that are never trained on."""
        return self.table.slice(0, self.held_out)

    @property
    def trained(self) -> pa.Table:
        """The other sentences."""
        return self.table.slice(self.held_out)


def make_pool(
    corpus: Sequence[str], benchmarks: Sequence[str], config: PretrainConfig, folder: Path
) -> Pool:
    """Read the corpus and write the pool to `folder`; later calls read it from there.

    Sentences of the files `benchmarks` are left out. Raises InputError if too few sentences are
    left.
    """
    path = folder / FILE
    if path.is_file():
        return _opened(path, config)
    tables, left_out, total = _chosen(corpus, benchmarks, config)
    table = pa.concat_tables(tables) if tables else pa.table({n: [] for n in _COLUMNS})
    table, over = _capped(table, config)
    left_out += Counter({"origin has enough": over})
    if len(table) <= config.held_out:
        reasons = ", ".join(f"{name} {count:,}" for name, count in left_out.most_common())
        raise InputError(
            f"{', '.join(corpus)}: {len(table):,} sentences are left, and {config.held_out:,} "
            f"must be held out; left out: {reasons}. The recipe must list the origins to use."
        )
    table = table.take(shards.order_rows(len(table), config.seed, 0))
    counts = {"read": str(total), **{f"left_out.{k}": str(v) for k, v in left_out.items() if v}}
    table = table.replace_schema_metadata(counts)

    def fill(where: Path) -> None:
        with pa.OSFile(str(where), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)

    durable.write(path, fill)
    return _opened(path, config)


def _opened(path: Path, config: PretrainConfig) -> Pool:
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
    stored = {k.decode(): int(v) for k, v in (table.schema.metadata or {}).items()}
    kept = Counter(table.column("origin").to_pylist())
    counts: dict[str, Json] = {
        "read": stored.pop("read"),
        "kept": {name: kept[name] for name in sorted(kept)},
        "left_out": {name.removeprefix("left_out."): n for name, n in sorted(stored.items())},
    }
    return Pool(table, config.held_out, counts)


def _chosen(
    corpus: Sequence[str], benchmarks: Sequence[str], config: PretrainConfig
) -> tuple[list[pa.Table], Counter[str], int]:
    """Return the sentences to use, the number left out by reason, and the number read."""
    known = frozenset(token for token in vocabulary() if len(token) == 1)
    bench = known_benchmarks(benchmarks) if benchmarks else None
    seen, left_out, tables, total = set[int](), Counter[str](), list[pa.Table](), 0
    for rows in read_corpus(list(corpus)):
        total += rows.batch.num_rows + rows.rejected.num_rows
        left_out += Counter(rows.rejected.column("reason").to_pylist())
        listed = pa.array([o in config.origins for o in rows.batch.column("origin").to_pylist()])
        left_out["origin not listed"] += rows.batch.num_rows - sum(listed.to_pylist())
        chosen = rows.batch.filter(listed)
        sentences = _distinct(normalise(chosen, config.min_chars, config.max_chars), seen)
        if bench is not None:
            sentences = decontaminate(sentences, bench, kinds=CONTAMINATED | SHARED)
        left_out += Counter(sentences.rejected.column("reason").to_pylist())
        texts = sentences.batch.column("text").to_pylist()
        fit = np.array([_fits(text, known, config.min_han) for text in texts], np.bool_)
        left_out["few Han characters, or rare ones"] += len(texts) - int(fit.sum())
        kept_back = is_validation(sentences.batch.column("id").to_numpy(), config.evaluation)
        left_out["kept for evaluation"] += int((fit & kept_back).sum())
        fit &= ~kept_back
        tables.append(
            pa.Table.from_batches([sentences.batch.filter(pa.array(fit))]).select(_COLUMNS)
        )
    return tables, left_out, total


def _distinct(clean: Normalised, seen: set[int]) -> Normalised:
    """Keep the sentences whose id is new to `seen`; reject the others as `duplicate`."""
    first = np.zeros(len(clean.batch), np.bool_)
    for row, one in enumerate(clean.batch.column("id").to_pylist()):
        first[row] = one not in seen
        seen.add(one)
    again = clean.batch.filter(pa.array(~first))
    rejected = reject_rows(
        again, "duplicate", [f"id {value}" for value in again.column("id").to_pylist()]
    )
    merged = pa.concat_batches([clean.rejected, rejected])
    return Normalised(clean.batch.filter(pa.array(first)), merged)


def _fits(text: str, known: frozenset[str], min_han: float) -> bool:
    """Return whether every character or placeholder is a token and enough characters are Han."""
    bare = text
    if "<" in text:
        for name in placeholders():
            bare = bare.replace(name, "")
    han = sum(is_han(ord(character)) for character in bare)
    return han >= min_han * len(bare) and known.issuperset(bare)


def _capped(table: pa.Table, config: PretrainConfig) -> tuple[pa.Table, int]:
    """Return a random sample of the large origins, and the number of sentences that it drops."""
    origins = np.array(table.column("origin").to_pylist(), object)
    keep = np.ones(len(table), np.bool_)
    for name, origin in config.origins.items():
        places = np.flatnonzero(origins == name)
        if origin.most is not None and len(places) > origin.most:
            walk = shards.order_rows(len(places), config.seed, zlib.crc32(name.encode()))
            keep[places[walk[origin.most :]]] = False
    return table.filter(pa.array(keep)), int((~keep).sum())
