"""The one table of benchmarks and the one of readers."""

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

#: how a file of one's own is read, by the end of its name
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
    """Every known benchmark by name, in the order of the paper's table, then the others."""
    families = (lemon, cscd_ns, cs, sighan, ecspell, mcsc)
    return {entry.name: entry for family in families for entry in family.entries()}


def lookup(name: str) -> Benchmark:
    """The entry of a name, or UsageError with the nearest one."""
    known = benchmarks()
    if name not in known:
        raise UsageError(
            f"no benchmark and no file is called {without_userinfo(name)!r}: "
            f"{did_you_mean(name, list(known))}; a file of your own may end in "
            f"{', '.join(READER_OF_SUFFIX)}"
        )
    return known[name]
