"""The table of benchmarks and the table of readers."""

from __future__ import annotations

from functools import cache

from cecbench.benchmarks import (
    cs,
    cscd_ns,
    ecspell,
    lemon,
    mcsc,
    readers,
    records,
    sighan,
)
from cecbench.benchmarks.row import Benchmark
from cecdata.common.errors import UsageError, did_you_mean
from cecdata.common.redact import without_userinfo

READERS: dict[str, readers.Reader] = {
    "lemon": readers.lemon,
    "tsv": readers.tsv,
    "parallel": readers.parallel,
    "sighan_truth": readers.sighan_truth,
    "m2": readers.m2,
    "jsonl": records.jsonl,
    "json": records.json_list,
    "parquet": records.parquet,
}

#: suffix of a user's own file → reader
READER_OF_SUFFIX = {
    ".tsv": "tsv",
    ".txt": "tsv",
    ".jsonl": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".m2": "m2",
}


@cache
def benchmarks() -> dict[str, Benchmark]:
    """Return all benchmarks by name: those of the paper's table in its order, then the others."""
    families = (lemon, cscd_ns, cs, sighan, ecspell, mcsc)
    return {entry.name: entry for family in families for entry in family.entries()}


def lookup(name: str) -> Benchmark:
    """Return the entry of a name; raise UsageError with the nearest name if there is none."""
    known = benchmarks()
    if name not in known:
        raise UsageError(
            f"no benchmark and no file is called {without_userinfo(name)!r}: "
            f"{did_you_mean(name, list(known))}; a file of your own may end in "
            f"{', '.join(READER_OF_SUFFIX)}"
        )
    return known[name]
