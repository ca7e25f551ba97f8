"""Output of the commands: text and JSON to stdout, progress to stderr."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from cecdata.common.errors import without_userinfo
from cecdata.common.store import is_remote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cecdata.common.codec import Json
    from cecdata.shards.manifest import Manifest


class DatasetPath(click.ParamType[Path]):
    """The folder of a dataset; for one in a store, that of a local copy."""

    name = "path"

    def convert(
        self, value: Path | str, _param: click.Parameter | None, _ctx: click.Context | None
    ) -> Path:
        if not is_remote(value):
            return Path(value)
        from cecdata.builds.output import sync_copy

        return sync_copy(str(value))


def print_json(value: object) -> None:
    json.dump(value, sys.stdout, ensure_ascii=False, indent=1)
    sys.stdout.write("\n")


def summarise(out: str, manifest: Manifest) -> dict[str, Json]:
    """Return what `cecdata build --json` and `pool --json` print."""
    from cecdata.common.codec import encode
    from cecdata.shards.manifest import POOL

    whole = encode(manifest)
    assert isinstance(whole, dict)
    keys = ["fingerprint", "rows"]
    if manifest.kind == POOL:
        keys += ["origins"]
    else:
        keys += ["pairs", "operators", "calibration", "cosine"]
    splits: dict[str, Json] = {
        name: sum(file.rows for file in files) for name, files in manifest.outputs.items()
    }
    facts: dict[str, Json] = {"out": without_userinfo(out), "splits": splits}
    return facts | {key: whole[key] for key in keys}


def summarise_as_text(out: str, manifest: Manifest) -> str:
    from cecdata.shards.manifest import POOL

    out, pool = without_userinfo(out), manifest.kind == POOL
    amount = "" if pool else f"{manifest.pairs.kept:,} pairs from "
    lines = [f"{out}: {amount}{manifest.rows.kept:,} sentences of {manifest.rows.read:,} rows"]
    for name, files in manifest.outputs.items():
        rows, size = sum(f.rows for f in files), sum(f.bytes for f in files)
        lines.append(f"  {name:<12}{rows:>14,} rows   {describe_size(size, len(files))}")
    for what, counts in (("rows", manifest.rows), ("pairs", manifest.pairs)):
        lines += (
            f"  rejected {what:<6}{count:>11,}  {reason}"
            for reason, count in counts.rejected.items()
        )
    if pool:
        lines.append(f"  cecdata build {quote(out)} --out OUT   ·   cecdata verify {quote(out)}")
    else:
        lines += (*_list_operators(manifest), f"  {_describe_cosine(manifest)}")
        shown = f"cecdata report {quote(out)}   ·   cecdata verify {quote(out)}"
        lines.append(f'  load_dataset("{out}")   ·   {shown}')
    return "\n".join(lines) + "\n"


def _list_operators(manifest: Manifest) -> list[str]:
    """Return the table of operators with their pairs and rates, as lines."""
    rates = {
        c.operator: f"{c.target:>10.2%}{c.reachable:>11.2%}{c.achieved:>10.2%}"
        for c in manifest.calibration
    }
    wanted = float(str(manifest.configuration.get("unchanged", 0)))
    if wanted:
        share = manifest.operators.get("unchanged", 0) / max(1, manifest.pairs.kept)
        rates["unchanged"] = f"{wanted:>10.2%}{'':>11}{share:>10.2%}  (of the pairs)"
    return [
        "  operator           pairs    wanted  reachable  achieved   (distance / length)",
        *(
            f"  {name:<14}{manifest.operators.get(name, 0):>10,}{rates.get(name, '')}"
            for name in dict.fromkeys((*rates, *manifest.operators))  # mixed: without a rate
        ),
    ]


def describe_size(size: int, count: int) -> str:
    number, unit = (size / 2**20, "MiB") if size >= 2**20 else (size / 2**10, "KiB")
    return f"{number:.1f} {unit} in {count} file{'s' * (count != 1)}"


def _describe_cosine(manifest: Manifest) -> str:
    """Return the line that says how many cosines were measured, and how."""
    cosine = manifest.cosine
    if not cosine.encoder:
        return "cosine: not measured"
    share = f"{cosine.scored:,} of {manifest.pairs.read:,} pairs"
    more = ". The others were kept without one; --cosine all measures them"
    return f"cosine: measured on {share} by {cosine.encoder}{more * (cosine.policy == 'sample')}"


def print_facts(facts: Mapping[str, Json]) -> None:
    """Print a line for each fact on stdout."""
    for name, value in facts.items():
        click.echo(f"{name:24}{format_value(value)}")


def format_value(value: Json) -> str:
    """Return a JSON value as text: an object as `name value` pairs, thousands separated."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {format_value(part)}" for name, part in value.items()) or "none"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
