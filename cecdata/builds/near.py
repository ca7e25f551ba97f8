"""The second stage where near-duplicates are rejected: one task for all buckets, in order of ids.

A sentence is compared with all that were kept before it, so that its buckets depend on each other.

Two sentences are near-duplicates if their Levenshtein distance is at most k = min(3, length // 10)
of the shorter one; sentences under ten characters have none. If a sentence of length L is cut into
k + 1 segments, one of them is unchanged in every near-duplicate, moved by at most k positions
(Li et al., Pass-Join, PVLDB 5, 2011). So each kept sentence is filed under its segments, and for a
new one its substrings of those lengths at those positions are looked up. Unlike MinHash, this
misses no pair, unless more than 4,096 kept sentences of one length share a segment: then only the
latest 4,096 are compared. Each kept sentence takes about a kilobyte of memory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cecdata.builds.distinct import Distinct
from cecdata.builds.place import name_files
from cecdata.common.codec import Json
from cecdata.corpus.normalise import reject_rows
from cecdata.shards.manifest import File

_MOST_COMPARED = 4096


@dataclass(frozen=True)
class DistinctNear(Distinct):
    """The one task: it keeps the first of equal sentences, and of those that are near."""

    def make(self, number: int) -> tuple[list[File], dict[str, Json]]:
        """Write what is distinct in each bucket and near to nothing that was kept before."""
        del number
        seen, rejected = NearDuplicates(), Counter[str]()
        files: list[File] = []
        origins: list[Json] = []
        for bucket in range(1 << self.source.bits):
            kept, bad = self.select(bucket)
            kept, near = self._separate_near(kept, seen)
            facts: Any
            written, facts = self.write_bucket(bucket, kept, [*bad, near])
            files += written
            rejected.update(facts["rejected"])
            origins += facts["origins"]
        return files, {"rejected": dict(rejected), "origins": origins}

    def _separate_near(
        self, kept: pa.RecordBatch, seen: NearDuplicates
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return the sentences that are near to none kept before, and the others as rejected."""
        near = [seen.find_or_add(text) for text in kept.column("text").to_pylist()]
        bad = pa.array([pair is not None for pair in near], pa.bool_())
        details = [f"{distance} edits from {text}" for text, distance in filter(None, near)]
        rows = name_files(kept.filter(bad), self.source.labels)
        return kept.filter(pc.invert(bad)), reject_rows(rows, "near_duplicate", details)


class NearDuplicates:
    """The sentences that were kept so far."""

    def __init__(self) -> None:
        # by the hash of a sentence's length, a segment's number and the segment
        self._filed: defaultdict[int, list[str]] = defaultdict(list)

    def find_or_add(self, text: str) -> tuple[str, int] | None:
        """Return a kept sentence that this one is near to, and the distance; keep it without one.

        Later sentences are then compared with it.
        """
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import extractOne

        for length, number, start, stop, most in _find_places(len(text)):
            if others := self._filed.get(hash((length, number, text[start:stop]))):
                latest = others[-_MOST_COMPARED:]
                match = extractOne(text, latest, scorer=Levenshtein.distance, score_cutoff=most)
                if match is not None:
                    return match[0], int(match[1])
        for number, start, stop in _cut_segments(len(text)):
            self._filed[hash((len(text), number, text[start:stop]))].append(text)
        return None


def _find_most_edits(length: int) -> int:
    """Return the most edits between near sentences, the shorter of `length` characters."""
    return min(3, length // 10)


def _cut_segments(length: int) -> Iterator[tuple[int, int, int]]:
    """Yield the number, start and stop of each segment of a sentence, if it can have any near."""
    pieces = _find_most_edits(length) + 1
    for number in range(pieces if pieces > 1 else 0):
        yield number, number * length // pieces, (number + 1) * length // pieces


@cache
def _find_places(length: int) -> tuple[tuple[int, int, int, int, int], ...]:
    """Return where a sentence of this length may have the segments of others that are near to it.

    Each is the length of the other, the number of its segment, the segment's start and stop in
    this sentence, and the most edits.
    """
    places, farthest = [], _find_most_edits(length)
    for other_length in range(length - farthest, length + farthest + 1):
        most = min(farthest, _find_most_edits(other_length))
        for number, start, stop in _cut_segments(other_length):
            for shift in range(-most, most + 1):
                # the part before the segment needs |shift| edits, the part after it the rest
                edits = abs(shift) + abs(length - other_length - shift)
                if edits <= most and start + shift >= 0 and stop + shift <= length:
                    places.append((other_length, number, start + shift, stop + shift, most))
    return tuple(places)
