"""The one table of readers that are fuzzed."""

from __future__ import annotations

from functools import cache

import fuzz_bench
import fuzz_corpus
import fuzz_state
from fuzz_case import Reader


@cache
def readers() -> dict[str, Reader]:
    """Name → reader, in the order in which they are listed."""
    found = (*fuzz_corpus.readers(), *fuzz_state.readers(), *fuzz_bench.readers())
    table = {reader.name: reader for reader in found}
    assert len(table) == len(found)
    return table
