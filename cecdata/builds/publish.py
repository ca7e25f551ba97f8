"""The records of a finished build: manifest, card, run."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar

from cecdata.builds.blocks import Input, read_versions
from cecdata.builds.corrupt import Part
from cecdata.builds.distinct import Pool
from cecdata.builds.output import Folder, Remote
from cecdata.builds.place import Done
from cecdata.common.codec import Json, decode, encode
from cecdata.common.errors import without_userinfo
from cecdata.common.machine import __version__, find_git_commit
from cecdata.config import Config
from cecdata.corpus.inputs import SAMPLE
from cecdata.embed.base import FOLDER
from cecdata.filters import open_filters
from cecdata.filters.base import Tally
from cecdata.perturbation.engine import MIXED, UNCHANGED, Histogram
from cecdata.shards.card import CARD, make_card
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
    encode_manifest,
    find_pools,
)

_FOLDERS = re.compile(r"(?<![^\s='\"])/[^\s'\"]*/")  # of absolute paths in a command
_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, slots=True)
class Finished:
    """A build whose tasks are all done."""

    source: Input
    pool: Pool
    chunks: Sequence[Done]
    run: Run
    about: About | None

    def list_files(self) -> list[File]:
        """Return the files of all chunks, each with its range of ids."""
        return [
            replace(file, extra={"ids": done.facts["ids"]})
            for done in self.chunks
            for file in done.files
        ]

    def make_common_fields(self, build: str, config: Config) -> dict[str, Any]:
        """Return the fields that the manifests of pairs and of pools have in common."""
        source, pool = self.source, self.pool
        extra: dict[str, Json] = {"build": build}
        if pool.contaminated:
            extra["contaminated"] = dict(pool.contaminated)
        return {
            "version": __version__,
            "versions": read_versions(config),
            "inputs": _describe_inputs(source, pool),
            "rows": Counts(
                pool.sentences + sum(pool.rejected.values()), pool.sentences, pool.rejected
            ),
            "origins": pool.origins,
            "pools": tuple(
                replace(pool, path=drop_folders(pool.path)) for pool in find_pools(source.names)
            ),
            "about": self.about or (SAMPLE_ABOUT if source.names == (SAMPLE,) else About()),
            "extra": extra,
        }


def publish_pool(output: Folder | Remote, finished: Finished, config: Config) -> Manifest:
    """Let the shards of a pool appear, then the documents; return the manifest, written last."""
    fields = finished.make_common_fields(output.build, config)
    fields["extra"] |= {"kind": POOL}
    manifest = Manifest(
        **fields,
        configuration=drop_folders(config.pool_settings()),
        tables={},
        outputs={"train": tuple(finished.list_files())},
        pairs=Counts(0, 0),
        rejects=finished.pool.rejects,
    )
    return _write_documents(output, finished.run, manifest)


def publish_pairs(output: Folder | Remote, finished: Finished, histogram: Histogram) -> Manifest:
    """Let the shards of pairs appear, then the documents; return the manifest, written last.

    Sums run in the order of the chunks, because sums of floats depend on it.
    """
    config, pool, files = histogram.config, finished.pool, finished.list_files()
    chunks: list[Any] = [done.facts["parts"] for done in finished.chunks]
    parts = [decode(Part, chunk[split], "part") for chunk in chunks for split in SPLITS]
    reasons = sorted({reason for part in parts for reason in part.rejected})
    rejected = {name: _add_up(part.rejected.get(name, {}) for part in parts) for name in reasons}
    fields = finished.make_common_fields(output.build, config)
    fields["extra"] |= {"examples": _choose_examples(parts, config.find_operators())}
    manifest = Manifest(
        **fields,
        configuration=drop_folders(config.as_dict()),
        tables=histogram.tables.sha256,
        outputs={s: tuple(f for f in files if f.path.startswith(f"data/{s}-")) for s in SPLITS},
        pairs=Counts(
            pool.sentences * config.copies,
            sum(part.kept for part in parts),
            {reason: sum(counts.values()) for reason, counts in rejected.items()},
        ),
        operators=dict(sorted(_add_up(part.operators for part in parts).items())),
        calibration=_describe_rates(histogram, parts),
        rejects=(*pool.rejects, *(file for file in files if file.path.startswith("rejects/"))),
        embeddings=tuple(file for file in files if file.path.startswith(f"{FOLDER}/")),
    )
    for name, filter_of in open_filters(config).items():
        counts = _add_up(part.counts.get(name, {}) for part in parts)
        tally = Tally(counts, rejected.get(filter_of.reason, {}))
        manifest = filter_of.facts(manifest, config, tally)
    return _write_documents(output, finished.run, manifest)


def _describe_rates(histogram: Histogram, parts: Sequence[Part]) -> tuple[Calibration, ...]:
    """Return the rate of each operator, as it was wanted and as it is in the pairs."""
    operators = _add_up(part.operators for part in parts)
    distance = _add_up(part.relative_distance for part in parts)
    return tuple(
        Calibration(
            operator=name,
            target=rate.target,
            reachable=rate.reachable,
            rate=rate.per_position,
            achieved=distance.get(name, 0.0) / max(1, operators.get(name, 0)),
        )
        for name, rate in histogram.rates().items()
    )


def _write_documents(output: Folder | Remote, run: Run, manifest: Manifest) -> Manifest:
    """Publish the shards, then write the documents and the manifest, which is returned."""
    output.publish()
    text = json.dumps(encode(run), ensure_ascii=False, indent=2, allow_nan=False)
    output.write_file(RUN, f"{text}\n".encode())
    return _write_card_and_manifest(output, manifest)


def update_about(output: Folder | Remote, finished: Manifest, about: About | None) -> Manifest:
    """Return a finished dataset's manifest, written anew with its card if `about` changed."""
    if about in (None, finished.about):
        return finished
    return _write_card_and_manifest(output, replace(finished, about=about))


def _write_card_and_manifest(output: Folder | Remote, manifest: Manifest) -> Manifest:
    """Write the card, then the manifest, which lists it; return this manifest."""
    card = output.write_file(CARD, make_card(manifest).encode())
    whole = replace(manifest, documents=(card,))
    output.write_file(MANIFEST, encode_manifest(whole))
    output.drop_working_files()
    return whole


def _describe_inputs(source: Input, pool: Pool) -> tuple[File, ...]:
    """Return the files of the corpus, with what was read of each that a limit did not leave out."""
    files = []
    for file, read in zip_longest(source.inputs, pool.inputs):
        extra: dict[str, Json] = {}
        if read and read.unreadable:
            extra = {"unreadable": read.unreadable, "rejected": read.rejected.total()}
        if read and read.damage:
            extra["damage"] = read.damage
        path = str(drop_folders(file.path))
        files.append(replace(file, path=path, rows=read.rows if read else 0, extra=extra))
    return tuple(files)


def drop_folders(value: Any) -> Any:
    """Return a JSON value whose absolute paths are names: a dataset says nothing of a machine."""
    if isinstance(value, dict):
        return {name: drop_folders(part) for name, part in value.items()}
    if isinstance(value, list):
        return [drop_folders(part) for part in value]
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def _add_up(parts: Iterable[Mapping[str, _Number]]) -> dict[str, _Number]:
    """Return the sum of the numbers of each name."""
    total: dict[str, _Number] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total[name] + value if name in total else value
    return total


def describe_run(started: float, workers: int, command: str) -> Run:
    """Return the facts that differ from run to run."""
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    seconds = round(time.monotonic() - started, 3)
    shown = _FOLDERS.sub("", without_userinfo(command))
    return Run(now, seconds, shown, find_git_commit(), os.cpu_count() or 0, workers)


def _choose_examples(parts: Sequence[Part], operators: Iterable[str]) -> list[Json]:
    """Return (operator, target, source) of each operator's first example, in their order."""
    examples_so_far: dict[str, tuple[str, str]] = {}
    for part in parts:
        examples_so_far = {**part.examples, **examples_so_far}
    # a fixed order, because markers have sorted keys
    return [
        [name, *examples_so_far[name]]
        for name in (*operators, MIXED, UNCHANGED)
        if name in examples_so_far
    ]


SAMPLE_ABOUT = About(
    title="CEC-Zero sample pairs",
    licence="cc0-1.0",
    description="The sentences were written for this project and are dedicated to the public "
    "domain (CC0 1.0); so are the pairs made from them. Nine domains: cars, contracts, "
    "encyclopedia, games, medicine, news, novels, microblog, customer service.",
)
