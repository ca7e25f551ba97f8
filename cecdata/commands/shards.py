"""`cecdata merge` and `status`, for builds that several jobs share or that are still running."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cecdata.commands.show import OutPath, print_json
from cecdata.common.progress import Progress
from cecdata.common.redact import without_userinfo
from cecdata.config import Config

if TYPE_CHECKING:
    from cecdata.pipeline.status import Status

_OUT = click.argument("out", type=OutPath())


@click.command()
@_OUT
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def merge(out: Path | str, as_json: bool) -> None:
    """Publish the dataset OUT, all shards of which were built with `cecdata build --shard i/N`.

    \b
    cecdata merge out/big

    The files are those of a build without --shard, byte for byte. If shards are missing, the
    command names them and changes nothing.
    """
    from cecdata.commands.show import summary, summary_text
    from cecdata.pipeline import remote, sharded

    command = shlex.join(["cecdata", *sys.argv[1:]])
    with Progress() as progress:
        if isinstance(out, str):
            made = remote.merge(out, command=command, progress=progress)
        else:
            made = sharded.merge(out, command=command, progress=progress)
    if as_json:
        print_json(summary(out, made))
    else:
        click.echo(summary_text(out, made), nl=False)


@click.command()
@_OUT
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def status(out: Path | str, as_json: bool) -> None:
    """Show how far the build in OUT is: stage, rate, time left, slow and failed shards.

    \b
    cecdata status out/big
    """
    from dataclasses import asdict

    now = _status_of(out)
    if as_json:
        print_json(asdict(now))
        return
    total = "?" if now.total is None else f"{now.total:,}"
    rate = "" if now.chunks_per_s is None else f", {now.chunks_per_s:.3g} a second"
    left = "" if now.eta_s is None else f", about {now.eta_s / 60:,.0f} minutes left"
    click.echo(f"{now.out}: {now.stage}, {now.done:,} of {total} chunks{rate}{left}")
    for shard in now.shards:
        note = shard.error or shard.holder
        slow = " (slow)" if shard.shard in now.stragglers else ""
        counts = f"{shard.done:>8,} of {shard.total:,}"
        click.echo(f"  {shard.shard:>9}  {shard.state:<8}{counts}  {note}{slow}".rstrip())


def _status_of(out: Path | str) -> Status:
    from cecdata.pipeline.status import status

    if isinstance(out, Path):
        return status(out)
    from dataclasses import replace

    from cecdata.pipeline.remote import skeleton

    with skeleton(out) as folder:
        return replace(status(folder), out=without_userinfo(out))


def build_part(
    corpus: tuple[str, ...],
    out: Path | str,
    config: Config,
    text: str,
    workers: int | None,
    engine: str,
    as_json: bool,
) -> None:
    """Make one shard of a build for `cecdata build --shard`, and print the shards left."""
    from cecdata.common.cores import usable_cores
    from cecdata.pipeline import remote, sharded

    shard = sharded.Shard.parse(text)
    with Progress() as progress:
        how: dict[str, Any] = {"workers": workers or usable_cores()}
        how |= {"engine": engine, "progress": progress}
        if isinstance(out, str):
            made = remote.build_shard(corpus, out, config, shard, **how)
        else:
            made = sharded.build_shard(corpus, out, config, shard, **how)
    name = without_userinfo(str(out))
    left = [] if made else [each.shard for each in _status_of(out).shards if each.state != "done"]
    if as_json:
        print_json({"out": name, "shard": text, "merged": made is not None, "left": left})
    elif made:
        click.echo(f"{name}: all shards are already merged")
    elif left:
        click.echo(f"{name}: shard {shard} is done; not done are {', '.join(left)}")
    else:
        click.echo(f"{name}: all {shard.total} shards are done; next is `cecdata merge {name}`")
