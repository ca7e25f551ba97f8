"""The records of a finished build: manifest, card, run."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from itertools import zip_longest
from typing import Any, TypeVar

from cecdata.builds.blocks import Input
from cecdata.builds.corrupt import Part
from cecdata.builds.distinct import Pool
from cecdata.builds.identity import versions
from cecdata.builds.output import Output
from cecdata.builds.place import Done
from cecdata.common.codec import Json, decode
from cecdata.common.redact import without_userinfo
from cecdata.common.version import __version__, git_commit
from cecdata.config import Config
from cecdata.corpus.inputs import SAMPLE
from cecdata.corpus.reading import FileReport
from cecdata.filters import Tally, active
from cecdata.operators import OPERATORS
from cecdata.perturbation.engine import MIXED, UNCHANGED, Histogram
from cecdata.shards.card import CARD, Example, card
from cecdata.shards.manifest import (
    MANIFEST,
    POOL,
    RUN,
    SPLITS,
    About,
    Calibration,
    Counts,
    File,
    Manifest,
    Run,
    dump_run,
    dumps,
    pools_among,
)

_Number = TypeVar("_Number", int, float)


def publish_pool(
    output: Output, source: Input, pool: Pool, config: Config, chunks: Sequence[Done], run: Run
) -> Manifest:
    """Publish a pool's shards, write its documents and return the manifest, written last."""
    shards = tuple(_with_ids(file, done) for done in chunks for file in done.files)
    recorded = Manifest(
        version=__version__,
        configuration=config.intake(),
        versions=versions(),
        tables={},
        inputs=_inputs(source, pool),
        outputs={"train": shards},
        rows=Counts(pool.rows, pool.sentences, pool.rejected),
        pairs=Counts(0, 0),
        rejects=pool.rejects,
        origins=pool.origins,
        extra={"kind": POOL, **_extra(source)},
    )
    return _published(output, recorded, card(recorded), run)


def publish_pairs(
    output: Output,
    source: Input,
    pool: Pool,
    histogram: Histogram,
    chunks: Sequence[Done],
    run: Run,
) -> Manifest:
    """Publish the shards of pairs, write the documents and return the manifest, written last."""
    plain, parts = _manifest(source, pool, histogram, chunks)
    about = SAMPLE_ABOUT if source.names == (SAMPLE,) else About()
    recorded = replace(plain, about=about, pools=pools_among(source.names))
    _close_embeddings(output, histogram.config, chunks)
    return _published(output, recorded, card(recorded, _examples(parts)), run)


def _close_embeddings(output: Output, config: Config, chunks: Sequence[Done]) -> None:
    """Write the contents of the store of embeddings, if the chunks have any."""
    files = [file for done in chunks for file in done.files if file.path.endswith(".faiss")]
    if not files:
        return
    from cecdata.embed import encoder
    from cecdata.embed.store import STORE, Range, contents_bytes

    ranges = []
    for file in files:
        name, (first, last) = file.path.rpartition("/")[2], file.ids or (0, 0)
        ranges.append(Range(name, first, last, file.rows, file.bytes, file.sha256))
    data = contents_bytes(encoder(config.encoder), ranges)
    name = f"{files[0].path.rpartition('/')[0]}/{STORE}"
    output.place.write(name, lambda path: path.write_bytes(data))


def _manifest(
    source: Input, pool: Pool, histogram: Histogram, chunks: Sequence[Done]
) -> tuple[Manifest, list[Part]]:
    """Return the manifest without the documents, and the counts of each chunk's splits.

    Sums run in the order of the chunks, because sums of floats depend on it.
    """
    config = histogram.config
    facts: list[Any] = [done.facts["parts"] for done in chunks]
    parts = [decode(Part, each[split], "part") for each in facts for split in SPLITS]
    operators = _sums(part.operators for part in parts)
    distance = _sums(part.relative_distance for part in parts)
    files = [_with_ids(file, done) for done in chunks for file in done.files]
    reasons = sorted({reason for part in parts for reason in part.rejected})
    rejected = {name: _sums(part.rejected.get(name, {}) for part in parts) for name in reasons}
    known: dict[str, Json] = {}
    if pool.contaminated:
        known = {"contaminated": dict(pool.contaminated)}
    plain = Manifest(
        version=__version__,
        configuration=config.as_dict(),
        versions=versions(),
        tables=histogram.tables.sha256,
        inputs=_inputs(source, pool),
        outputs={s: tuple(f for f in files if f.path.startswith(f"data/{s}-")) for s in SPLITS},
        rows=Counts(pool.rows, pool.sentences, pool.rejected),
        pairs=Counts(
            config.pairs or pool.sentences * config.copies,
            sum(part.kept for part in parts),
            {reason: sum(counts.values()) for reason, counts in rejected.items()},
        ),
        operators=dict(sorted(operators.items())),
        calibration=tuple(
            Calibration(
                operator=name,
                target=rate.target,
                reachable=rate.reachable,
                rate=rate.per_place,
                achieved=distance.get(name, 0.0) / max(1, operators.get(name, 0)),
            )
            for name, rate in histogram.rates().items()
        ),
        rejects=(*pool.rejects, *(file for file in files if file.path.startswith("rejects/"))),
        origins=pool.origins,
        extra={**_extra(source), **known},
    )
    for name, each in active(config).items():
        counts = _sums(part.counts.get(name, {}) for part in parts)
        plain = each.facts(plain, config, Tally(counts, rejected.get(each.reason, {})))
    return plain, parts


def _extra(source: Input) -> dict[str, Json]:
    return {"sources": list(source.sources)} if source.sources else {}


def _with_ids(file: File, done: Done) -> File:
    """Return a shard's file with the range of ids of its chunk."""
    return replace(file, extra={"ids": done.facts["ids"]})


def _inputs(source: Input, pool: Pool) -> tuple[File, ...]:
    """Return the inputs with their rows; 0 for a file that the limit left out."""
    reports = [
        FileReport(r["path"], r["rows"], Counter(r["rejected"]), r["damage"]) for r in pool.inputs
    ]
    files = []
    for file, read in zip_longest(source.given, reports):
        extra: dict[str, Json] = {}
        if read and read.unreadable:
            extra = {"unreadable": read.unreadable, "rejected": read.rejected.total()}
        if read and read.damage:
            extra["damage"] = read.damage
        files.append(File(file.path, file.sha256, file.bytes, read.rows if read else 0, extra))
    return tuple(files)


def _sums(parts: Iterable[Mapping[str, _Number]]) -> dict[str, _Number]:
    total: dict[str, _Number] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total[name] + value if name in total else value
    return total


def _published(output: Output, recorded: Manifest, text: str, run: Run) -> Manifest:
    """Let the shards appear, then the documents, then the manifest with their sums."""
    output.publish()
    output.document(RUN, dump_run(run))
    written = [output.document(CARD, text.encode())]
    whole = replace(recorded, documents=tuple(written))
    output.document(MANIFEST, dumps(whole))
    output.drop()
    return whole


def run_of(started: float, workers: int, command: str) -> Run:
    """Return the facts that differ from run to run."""
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    seconds = round(time.monotonic() - started, 3)
    shown = without_userinfo(command)
    return Run(now, seconds, shown, git_commit(), os.cpu_count() or 0, workers)


def _examples(parts: Sequence[Part]) -> list[Example]:
    """Return a pair of each operator for the card, in the operators' order."""
    by_operator: dict[str, Example] = {}
    for part in parts:
        for name, (target, source) in part.examples.items():
            by_operator.setdefault(name, Example(name, target, source))
    # a fixed order, because markers have sorted keys
    names = (*OPERATORS, MIXED, UNCHANGED)
    return [by_operator[name] for name in names if name in by_operator]


SAMPLE_ABOUT = About(
    title="CEC-Zero sample pairs",
    licence="cc0-1.0",
    description="The sentences were written for this project and are dedicated to the public "
    "domain (CC0 1.0); so are the pairs made from them. Nine domains: cars, contracts, "
    "encyclopedia, games, medicine, news, novels, microblog, customer service.",
)
