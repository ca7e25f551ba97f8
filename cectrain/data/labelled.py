"""Labelled pairs from a file in any of the forms that cecbench reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rapidfuzz.distance import Levenshtein

from cecbench.tables import read_texts
from cecdata.common.durable import sha256_of
from cecdata.common.errors import InputError
from cecdata.corpus.ids import id_column
from cecdata.shards.schema import PAIR
from cectrain.data.shards import HELD_OUT, TRAIN, drawn_ids

#: number of columns → what they are, where no first line names them; a label is no id
_WIDTHS = {2: ("source", "target"), 3: ("id", "source", "target")}
_SCHEMA = pa.schema([PAIR.field(name) for name in ("id", "copy", "source", "target", "operator")])
_ALIKE = 0.5  # least share of characters that the sides of a pair have in common
UNCHANGED = "unchanged"  # operator of a pair with equal sides, as in datasets
_COPIES = 2**15  # values of the column `copy`


@dataclass(frozen=True, slots=True)
class LabelledPairs:
    """Pairs by split, with the rows and batches of a `Dataset`, but without a manifest."""

    path: Path
    digests: Mapping[str, str]  # file → SHA-256
    tables: Mapping[str, pa.Table]  # split → pairs
    remark: str = ""  # numbers of pairs that may be wrong, as sentences; empty: none

    def rows(self, split: str) -> int:
        """Return the number of pairs of a split."""
        return int(self.tables[split].num_rows)

    def batches(
        self, split: str, columns: Sequence[str] | None = None, rows: int = 65_536
    ) -> Iterator[pa.RecordBatch]:
        """Yield the pairs of a split, at most `rows` at a time."""
        table = self.tables[split]
        yield from table.select(columns or _SCHEMA.names).to_batches(max_chunksize=rows)

    def described(self) -> str:
        """Return the numbers of pairs, and of those with equal sides, as one line."""
        equal = self.tables[TRAIN]["operator"].to_pylist().count(UNCHANGED)
        return (
            f"{self.rows(TRAIN):,} labelled pairs to train on, {equal:,} of them clean sentences "
            f"(equal sides); {self.rows(HELD_OUT):,} held out"
            + (f". {self.remark}" if self.remark else "")
        )


def labelled_pairs(path: Path, held_out: Path | None, count: int) -> LabelledPairs:
    """Read training pairs from `path`, and pairs to score on from the file `held_out`.

    Without that file a tenth of the targets, at most `count`, are held out with all of their pairs,
    drawn by id. Pairs of equal sides are clean sentences. Raises InputError with the number of a
    line with other columns, if the sides of most pairs do not belong together, or if nothing can be
    held out.
    """
    table, remark = _read(path)
    digests = {path.name: sha256_of(path).sha256}
    if held_out is not None:
        kept, _ = _read(held_out)
        digests[f"{HELD_OUT}/{held_out.name}"] = sha256_of(held_out).sha256
        shared = pc.sum(pc.is_in(kept["id"], table["id"])).as_py()
        if shared:
            remark += (
                f"{' ' if remark else ''}{shared:,} of {len(kept):,} held-out pairs have a target "
                "that is trained on, so the scores may be too high."
            )
        return LabelledPairs(path, digests, {TRAIN: table, HELD_OUT: kept}, remark)
    ids = np.asarray(table["id"]).view(np.uint64)
    targets = np.unique(ids)
    if len(targets) < 2:
        raise InputError(
            f"{path}: all pairs have the same target, so none can be held out for scoring: add "
            "pairs, or name a file with --held-out"
        )
    drawn = np.isin(ids, drawn_ids(targets, max(1, min(count, len(targets) // 10))))
    parts = {TRAIN: table.filter(pa.array(~drawn)), HELD_OUT: table.filter(pa.array(drawn))}
    return LabelledPairs(path, digests, parts, remark)


def _read(path: Path) -> tuple[pa.Table, str]:
    """Return the pairs of a file, and a sentence on those that are doubtful."""
    if not path.exists() or path.is_dir():
        raise InputError(
            f"{path} is not a file: name a file of pairs or, to train on, the folder of a dataset "
            "that `cecdata build` wrote"
        )
    rows = []
    seen: Counter[str] = Counter()
    doubtful: list[int] = []  # numbers of lines whose sides have little in common
    for number, where, texts in read_texts(path, ("source", "target"), _WIDTHS):
        for name in ("source", "target"):
            if not texts[name].strip():
                raise InputError(f"{where}: the {name} is empty; write a pair, or remove the line")
        source, target = texts["source"], texts["target"]
        operator = UNCHANGED if source == target else "labelled"
        if Levenshtein.normalized_similarity(source, target) < _ALIKE:
            doubtful.append(number)
        rows.append((seen[target] % _COPIES, source, target, operator))
        seen[target] += 1
    if not rows:
        raise InputError(f"{path} has no pairs: write source, tab, target on each line")
    remark = ""
    if doubtful:
        remark = (
            f"{len(doubtful):,} of {len(rows):,} pairs have sides that differ in more than half of "
            f"their characters: the first is line {doubtful[0]}."
        )
    if 2 * len(doubtful) > len(rows):
        raise InputError(f"{path}: {remark} Are the columns aligned?")
    copies, *columns = zip(*rows, strict=True)
    named = dict(zip(("source", "target", "operator"), map(pa.array, columns), strict=True))
    ids = id_column(named["target"])
    return pa.table({"id": ids, "copy": pa.array(copies, pa.int16()), **named}, _SCHEMA), remark
