"""The second stage where near-duplicates are rejected: one task for all buckets, in order of ids.

A sentence is compared with all that were kept before it, so that its buckets depend on each other.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cecdata.builds.distinct import Distinct
from cecdata.builds.rows import name_files
from cecdata.common.codec import Json
from cecdata.corpus.near_duplicates import NearDuplicates
from cecdata.corpus.normalise import reject
from cecdata.shards.manifest import File


@dataclass(frozen=True)
class DistinctNear(Distinct):
    """The one task: it keeps the first of equal sentences, and of those that are near."""

    buckets: int = 1

    def make(self, number: int) -> tuple[list[File], dict[str, Json]]:
        """Write what is distinct in each bucket and near to nothing that was kept before."""
        del number
        seen, rejected = NearDuplicates(), Counter[str]()
        files: list[File] = []
        origins: list[Json] = []
        for bucket in range(self.buckets):
            kept, bad = self.select(bucket)
            kept, near = self._without_near(kept, seen)
            written, facts = self.write_bucket(bucket, kept, [*bad, near])
            found: Any = facts
            files += written
            rejected.update(found["rejected"])
            origins += found["origins"]
        return files, {"rejected": dict(rejected), "origins": origins}

    def _without_near(
        self, kept: pa.RecordBatch, seen: NearDuplicates
    ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return the sentences that are near to none kept before, and the others as rejected."""
        near, edits = seen.first(kept.column("text"))
        bad = near >= 0
        details = [
            f"{apart} edits from {seen.text(row)}"
            for row, apart in zip(near[bad].tolist(), edits[bad].tolist(), strict=True)
        ]
        rows = name_files(kept.filter(pa.array(bad)), self.labels)
        return kept.filter(pa.array(~bad)), reject(rows, "near_duplicate", details)
