"""`cecdata pool`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cecdata.commands.build import refuse_rejects, warn_of_unreadable
from cecdata.commands.corpus_options import corpus_options
from cecdata.commands.show import OutPath, files_shown, print_json
from cecdata.common.machine import usable_cores
from cecdata.common.progress import Progress
from cecdata.common.redact import without_userinfo
from cecdata.config import load

if TYPE_CHECKING:
    from cecdata.common.codec import Json
    from cecdata.shards.manifest import Manifest


@click.command()
@corpus_options
@click.option(
    "--out",
    required=True,
    type=OutPath(),
    help="Folder of the pool, or its place in a store: s3://BUCKET/NAME.",
)
@click.option(
    "--max-reject-rate",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    help="Exit with code 3 if a larger share of rows is rejected.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Number of threads; default: the cores of this machine.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Run on threads of this machine, or on a Ray cluster.",
)
@click.option("--overwrite", is_flag=True, help="Replace the pool of an earlier run in OUT.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def pool(
    corpus: tuple[str, ...],
    out: Path | str,
    max_reject_rate: float,
    workers: int | None,
    engine: str,
    overwrite: bool,
    as_json: bool,
    **settings: object,
) -> None:
    """Gather the clean, distinct sentences of CORPUS into a dataset that `cecdata build` reads.

    \b
    cecdata pool 'pages/*.warc.gz' notes.txt --split-sentences --mask --out out/pool
    cecdata build out/pool --out out/data

    `cecdata build CORPUS` does both in one step. The pool has a licence for each row, a card, and
    the rejected rows with their reasons. The same command checks a finished OUT.
    """
    from cecdata.builds.build import make_pool

    config = load(**settings)  # type: ignore[arg-type]
    command = shlex.join(["cecdata", *sys.argv[1:]])
    with Progress():
        made = make_pool(
            corpus,
            out,
            config,
            workers=workers or usable_cores(),
            engine=engine,
            overwrite=overwrite,
            command=command,
        )
    warn_of_unreadable(made)
    if as_json:
        print_json(_facts(out, made))
    else:
        click.echo(_summary(out, made))
    refuse_rejects(out, max_reject_rate, (("rows", made.rows),))


def _facts(out: Path | str, made: Manifest) -> dict[str, Json]:
    from cecdata.common.codec import encode

    rows = made.rows
    counts: dict[str, Json] = {
        "read": rows.read,
        "kept": rows.kept,
        "rejected": dict(rows.rejected),
    }
    shards = len(made.outputs["train"])
    name = without_userinfo(str(out))
    return {"out": name, "rows": counts, "shards": shards, "origins": encode(made.origins)}


def _summary(out: Path | str, made: Manifest) -> str:
    out, shards = without_userinfo(str(out)), made.outputs["train"]
    size = sum(file.bytes for file in shards)
    rows = f"{made.rows.kept:,} sentences of {made.rows.read:,} rows"
    lines = [f"{out}: {rows}, {files_shown(size, len(shards))}"]
    lines += (f"  rejected {count:>11,}  {reason}" for reason, count in made.rows.rejected.items())
    lines.append(f"  cecdata build {out} --out OUT   ·   cecdata verify {out}")
    return "\n".join(lines)
