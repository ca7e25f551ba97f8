"""The rows of a seed do not change unnoticed.

To renew: run this test, copy the digest that it prints, and say in CHANGELOG, section Scores, that
the same seed gives other rows from this version on. Over toy operators: a new weight in a real
confusion set is seen by its SHA-256 in the manifest, and does not belong here.
"""

from __future__ import annotations

import hashlib
import json

from perturb_toys import TOYS, perturber, sentences, settings, toy_tables

from cecdata.perturbation.engine import Histogram

# Made with version 0.1.0, schema version 2: SHA-256 of the rows as JSON, one a line. With unsigned
# ids it is that of schema version 1, 330185e1….
GOLDEN = "cb0bd1b2a8e9164a96f3cb20b9b0f6ed66841118419b688b7852abb025f44ed1"
CORPUS = (
    "明日好女子已在日月会再误。",
    "他已经好了，明天再会！",
    "😀在👨\u200d👩\u200d👧明<ADDR>好。",
    "the quick brown fox",
    "𠀀𠀁好e\u0301明🇨🇳日",
    "误会已经再明白不好在乎。" * 6,
)


def test_the_papers_recipe_gives_the_golden_rows():
    """Source, edits, operator, distance of every copy: byte for byte those of version 0.1.0."""
    config = settings(mixed=0.1, unchanged=0.05, copies=50, keep_duplicates=True)
    batch = sentences(CORPUS)
    histogram = Histogram(config, toy_tables())
    histogram.add(batch.column("text"))
    rates = histogram.rates().values()
    per_position = [round(rate.per_position, 6) for rate in rates]  # the tail differs by libm
    rows = perturber(config, per_position).pairs(batch).table.to_pylist()
    assert len(rows) == 50 * len(CORPUS)
    assert {row["operator"] for row in rows} > {toy.name for toy in TOYS}
    lines = "".join(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows)
    assert hashlib.sha256(lines.encode()).hexdigest() == GOLDEN
