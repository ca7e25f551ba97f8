"""The records of a finished build: manifest, card, run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from itertools import zip_longest
from typing import Any, TypeVar

from cecdata.builds.blocks import Input
from cecdata.builds.corrupt import Part
from cecdata.builds.distinct import Pool
from cecdata.builds.output import Folder, Remote, planned, versions
from cecdata.builds.place import Done
from cecdata.common.codec import Json, decode, is_sealed
from cecdata.common.errors import VerificationError, without_userinfo
from cecdata.common.version import __version__, git_commit
from cecdata.config import Config
from cecdata.corpus.inputs import SAMPLE
from cecdata.filters import Tally, active
from cecdata.operators import OPERATORS
from cecdata.perturbation.engine import MIXED, UNCHANGED, Histogram
from cecdata.shards.card import CARD, card
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

_FAISS = ".faiss"
_Number = TypeVar("_Number", int, float)


def publish(
    output: Folder | Remote,
    source: Input,
    pool: Pool,
    counted: Histogram | Config,
    chunks: Sequence[Done],
    run: Run,
    about: About | None,
) -> Manifest:
    """Let the shards of all chunks appear, then the documents; return the manifest, written last.

    `counted` has the rates of a dataset of pairs, or is the configuration of a pool.
    """
    stated = about or (SAMPLE_ABOUT if source.names == (SAMPLE,) else About())
    common: dict[str, Any] = {
        "version": __version__,
        "versions": versions(),
        "inputs": _inputs(source, pool),
        "rows": Counts(pool.rows, pool.sentences, pool.rejected),
        "origins": pool.origins,
        "pools": pools_among(source.names),
        "about": stated,
    }
    extra: dict[str, Json] = {"sources": list(source.sources)} if source.sources else {}
    if pool.contaminated:
        extra["contaminated"] = dict(pool.contaminated)
    files = [replace(f, extra={"ids": done.facts["ids"]}) for done in chunks for f in done.files]
    if isinstance(counted, Config):
        recorded = Manifest(
            **common,
            configuration=counted.intake(),
            tables={},
            outputs={"train": tuple(files)},
            pairs=Counts(0, 0),
            rejects=pool.rejects,
            extra={"kind": POOL, **extra},
        )
    else:
        recorded = _of_pairs(common, extra, pool, counted, chunks, files)
        _close_embeddings(output, counted.config, chunks)
    output.publish()
    output.document(RUN, dump_run(run))
    return _closed(output, recorded)


def restated(output: Folder | Remote, finished: Manifest, about: About | None) -> Manifest:
    """Return a finished dataset's manifest, written anew with its card if `about` changed."""
    if about in (None, finished.about):
        return finished
    return _closed(output, replace(finished, about=about))


def _closed(output: Folder | Remote, recorded: Manifest) -> Manifest:
    """Write the card, then the manifest with its sum."""
    written = output.document(CARD, card(recorded).encode())
    whole = replace(recorded, documents=(written,))
    output.document(MANIFEST, dumps(whole))
    output.drop()
    return whole


def _close_embeddings(output: Folder | Remote, config: Config, chunks: Sequence[Done]) -> None:
    """Write the contents of the store of embeddings, if the chunks have any."""
    files = [file for done in chunks for file in done.files if file.path.endswith(_FAISS)]
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


def embeddings_whole(output: Folder | Remote) -> bool:
    """Return whether the embeddings that the tasks of a finished build wrote are undamaged."""
    place, folders = output.place, set()
    try:
        tasks = planned(place).get("corrupt", 0)
    except VerificationError:  # the build writes it anew
        return False
    for number in range(tasks):
        done = place.marker(f"corrupt/{number:05d}", output.build)
        for file in done.files if done is not None else ():
            if file.path.endswith(_FAISS):
                folders.add(file.path.rpartition("/")[0])
                if not place.is_true(file):
                    return False
    if not folders:
        return True
    from cecdata.embed.store import STORE

    return all(is_sealed(place.read(f"{folder}/{STORE}") or b"") for folder in folders)


def _of_pairs(
    common: Mapping[str, Any],
    extra: Mapping[str, Json],
    pool: Pool,
    histogram: Histogram,
    chunks: Sequence[Done],
    files: Sequence[File],
) -> Manifest:
    """Return the manifest of a dataset of pairs.

    Sums run in the order of the chunks, because sums of floats depend on it.
    """
    config = histogram.config
    facts: list[Any] = [done.facts["parts"] for done in chunks]
    parts = [decode(Part, each[split], "part") for each in facts for split in SPLITS]
    operators = _sums(part.operators for part in parts)
    distance = _sums(part.relative_distance for part in parts)
    reasons = sorted({reason for part in parts for reason in part.rejected})
    rejected = {name: _sums(part.rejected.get(name, {}) for part in parts) for name in reasons}
    plain = Manifest(
        **common,
        configuration=config.as_dict(),
        tables=histogram.tables.sha256,
        outputs={s: tuple(f for f in files if f.path.startswith(f"data/{s}-")) for s in SPLITS},
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
                rate=rate.per_position,
                achieved=distance.get(name, 0.0) / max(1, operators.get(name, 0)),
            )
            for name, rate in histogram.rates().items()
        ),
        rejects=(*pool.rejects, *(file for file in files if file.path.startswith("rejects/"))),
        extra={**extra, "examples": _examples(parts)},
    )
    for name, each in active(config).items():
        counts = _sums(part.counts.get(name, {}) for part in parts)
        plain = each.facts(plain, config, Tally(counts, rejected.get(each.reason, {})))
    return plain


def _inputs(source: Input, pool: Pool) -> tuple[File, ...]:
    """Return the inputs with their rows; 0 for a file that the limit left out."""
    files = []
    for file, read in zip_longest(source.given, pool.inputs):
        extra: dict[str, Json] = {}
        if read and read.unreadable:
            extra = {"unreadable": read.unreadable, "rejected": read.rejected.total()}
        if read and read.damage:
            extra["damage"] = read.damage
        files.append(replace(file, rows=read.rows if read else 0, extra=extra))
    return tuple(files)


def _sums(parts: Iterable[Mapping[str, _Number]]) -> dict[str, _Number]:
    total: dict[str, _Number] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total[name] + value if name in total else value
    return total


def run_of(started: float, workers: int, command: str) -> Run:
    """Return the facts that differ from run to run."""
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    seconds = round(time.monotonic() - started, 3)
    shown = without_userinfo(command)
    return Run(now, seconds, shown, git_commit(), os.cpu_count() or 0, workers)


def _examples(parts: Sequence[Part]) -> list[Json]:
    """Return (operator, target, source) of each operator, in the operators' order."""
    found: dict[str, tuple[str, str]] = {}
    for part in parts:
        found = {**part.examples, **found}
    # a fixed order, because markers have sorted keys
    return [[name, *found[name]] for name in (*OPERATORS, MIXED, UNCHANGED) if name in found]


SAMPLE_ABOUT = About(
    title="CEC-Zero sample pairs",
    licence="cc0-1.0",
    description="The sentences were written for this project and are dedicated to the public "
    "domain (CC0 1.0); so are the pairs made from them. Nine domains: cars, contracts, "
    "encyclopedia, games, medicine, news, novels, microblog, customer service.",
)
