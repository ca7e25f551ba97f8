"""The records of a finished build: manifest, card, run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from itertools import zip_longest
from typing import TypeVar

from cecdata import __version__
from cecdata.common.codec import Json
from cecdata.common.durable import FileRecord, Workspace
from cecdata.common.git import git_commit
from cecdata.common.redact import without_userinfo
from cecdata.config import Config, from_manifest
from cecdata.contamination.lists import SUFFIX, load, write_list
from cecdata.corpus.inputs import InputFile
from cecdata.corpus.reading import FileReport
from cecdata.filters import Tally, active
from cecdata.operators import OPERATORS
from cecdata.perturbation.engine import MIXED, UNCHANGED
from cecdata.pipeline.chunks import REJECTS, SPLITS, STAGED, Outcome
from cecdata.pipeline.identity import versions
from cecdata.pipeline.pool import Pool, drop
from cecdata.shards.card import CARD, Example, card
from cecdata.shards.manifest import (
    MANIFEST,
    RUN,
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

SAMPLE = "sample"
HASHES = f"benchmarks{SUFFIX}"  # of the benchmarks that the corpus was compared with
_Number = TypeVar("_Number", int, float)


def publish(
    work: Workspace,
    given: Sequence[InputFile],
    pool: Pool,
    outcomes: Sequence[Outcome],
    corpus: Sequence[str],
    started: float,
    workers: int,
    command: str,
) -> Manifest:
    """Publish the chunks' files, write the documents, and return the manifest, written last."""
    recorded = _manifest(given, pool, outcomes)
    for staged, final in ((STAGED, "data"), (REJECTS, "rejects")):
        if (work.root / staged).is_dir():
            work.publish(staged, final)
    write_run(work, started, workers, command)
    about = SAMPLE_ABOUT if tuple(corpus) == (SAMPLE,) else About()
    recorded = replace(recorded, about=about, pools=pools_among(corpus))
    documents = [work.write_text(CARD, card(recorded, _examples(outcomes)))]
    whole = close(work, recorded, documents, from_manifest(recorded.configuration))
    drop(work)
    return whole


def _manifest(given: Sequence[InputFile], pool: Pool, outcomes: Sequence[Outcome]) -> Manifest:
    """Return the manifest without the documents.

    Sums run in the order of the chunks, because sums of floats depend on it.
    """
    survey = pool.survey
    rates = survey.histogram.rates()
    config = survey.histogram.config
    parts = [part for outcome in outcomes for part in outcome.parts]
    operators = _sums(part.operators for part in parts)
    distance = _sums(part.relative_distance for part in parts)
    rows = {part.shard: part.kept for part in parts}
    rows |= {p.rejects: sum(sum(n.values()) for n in p.rejected.values()) for p in parts}
    files = [final(f, rows[f.path.name]) for outcome in outcomes for f in outcome.files]
    bad_rows = [final(file, count) for file, count in pool.rejects]
    reasons = sorted({reason for part in parts for reason in part.rejected})
    rejected = {name: _sums(part.rejected.get(name, {}) for part in parts) for name in reasons}
    plain = Manifest(
        version=__version__,
        configuration=config.as_dict(),
        versions=versions(),
        tables=survey.histogram.tables.sha256,
        inputs=tuple(input_file(file, read) for file, read in zip_longest(given, survey.files)),
        outputs={s: tuple(f for f in files if f.path.startswith(f"data/{s}-")) for s in SPLITS},
        rows=Counts(survey.rows, survey.sentences, survey.rejected),
        pairs=Counts(
            survey.sentences * config.copies,
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
            for name, rate in rates.items()
        ),
        rejects=(*bad_rows, *(file for file in files if file.path.startswith("rejects/"))),
    )
    if survey.contaminated:
        plain = replace(plain, extra={"contaminated": dict(survey.contaminated)})
    for name, each in active(config).items():
        counts = _sums(part.counts.get(name, {}) for part in parts)
        plain = each.facts(plain, config, Tally(counts, rejected.get(each.reason, {})))
    return plain


def input_file(file: InputFile, read: FileReport | None) -> File:
    """Return an input with its rows; 0 for a file that the limit left out."""
    if read is None:
        return File(file.path, file.sha256, file.bytes, 0)
    extra: dict[str, Json] = {}
    if read.unreadable:
        extra = {"unreadable": read.unreadable, "rejected": read.rejected.total()}
    if read.damage:
        extra["damage"] = read.damage
    return File(file.path, file.sha256, file.bytes, read.rows, extra)


def _sums(parts: Iterable[Mapping[str, _Number]]) -> dict[str, _Number]:
    total: dict[str, _Number] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total[name] + value if name in total else value
    return total


def close(
    work: Workspace, recorded: Manifest, documents: Sequence[FileRecord], config: Config
) -> Manifest:
    """Write the hashes of the benchmarks, then the manifest with the SHA-256 of all documents."""
    written = list(documents)
    if config.decontaminate:
        lists = load(config.decontaminate).lists
        written.append(work.write(HASHES, lambda path: write_list(path, lists)))
    files = tuple(File(f.path.name, f.sha256, f.bytes, 0) for f in written)
    whole = replace(recorded, documents=files)
    work.write_bytes(MANIFEST, dumps(whole))
    return whole


def write_run(work: Workspace, started: float, workers: int, command: str) -> None:
    """Write `run.json`: the facts that differ from run to run."""
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    seconds = round(time.monotonic() - started, 3)
    shown = without_userinfo(command)
    run = Run(now, seconds, shown, git_commit(), os.cpu_count() or 0, workers)
    work.write_bytes(RUN, dump_run(run))


def _examples(outcomes: Sequence[Outcome]) -> list[Example]:
    """Return a pair of each operator for the card, in the operators' order."""
    by_operator: dict[str, Example] = {}
    for outcome in outcomes:
        for part in outcome.parts:
            for name, (target, source) in part.examples.items():
                by_operator.setdefault(name, Example(name, target, source))
    # a fixed order, because the journal returns sorted keys
    names = (*OPERATORS, MIXED, UNCHANGED)
    return [by_operator[name] for name in names if name in by_operator]


SAMPLE_ABOUT = About(
    title="CEC-Zero sample pairs",
    licence="cc0-1.0",
    description="The sentences were written for this project and are dedicated to the public "
    "domain (CC0 1.0); so are the pairs made from them. Nine domains: cars, contracts, "
    "encyclopedia, games, medicine, news, novels, microblog, customer service.",
)


def final(record: FileRecord, rows: int) -> File:
    """Return a file under the name that it has after publishing."""
    path = f"{record.path.parent.name}/{record.path.name}"
    return File(path, record.sha256, record.bytes, rows)
