"""`cecdata push`: upload a finished dataset."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from cecdata.commands.show import print_json
from cecdata.common.errors import UsageError


@click.command()
@click.argument("dataset", type=click.Path(path_type=Path))
@click.argument("repository")
@click.option("--dry-run", is_flag=True, help="List the files without contacting the hub.")
@click.option("--private", is_flag=True, help="Make a new repository private.")
@click.option("--rejects", is_flag=True, help="Upload the rejected rows and pairs as well.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def push(
    dataset: Path, repository: str, dry_run: bool, private: bool, rejects: bool, as_json: bool
) -> None:
    """Upload DATASET (pairs or a pool) to REPOSITORY (OWNER/NAME) of the Hugging Face hub.

    All files arrive in one commit.

    \b
    cecdata push out/data OWNER/NAME --dry-run
    cecdata push out/pool OWNER/NAME --private

    The card, manifest.json and the shards are uploaded. `hf auth login` or the
    environment variable HF_TOKEN says who you are.
    """
    from cecdata.shards import push as hub
    from cecdata.shards.manifest import PAIRS, POOL
    from cecdata.shards.reader import open_dataset

    if len([part for part in repository.split("/") if part.strip(".")]) != 2:
        raise UsageError(f"{repository!r} is no repository: it must be named OWNER/NAME")
    files = hub.uploads(open_dataset(dataset, PAIRS, POOL), rejects=rejects)
    address = "" if dry_run else hub.push(dataset, repository, private=private, rejects=rejects)
    if as_json:
        listed = [asdict(file) for file in files]
        print_json({"repository": repository, "files": listed, "commit": address or None})
        return
    for file in files:
        click.echo(f"{file.bytes:>14,}  {file.path}")
    done = f"uploaded: {address}" if address else "not uploaded (--dry-run)"
    click.echo(f"{sum(file.bytes for file in files):>14,}  bytes, {len(files)} files, {done}")
