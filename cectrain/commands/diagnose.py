"""`cectrain diagnose`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

from cecdata.common.progress import suggest
from cectrain.commands.options import data_argument, recipe_options
from cectrain.config import load


@click.command()
@data_argument
@recipe_options
@click.option("--pairs", type=click.IntRange(8), help="Number of pairs, instead of the recipe's.")
@click.option(
    "--encoder",
    "encoder_name",
    help="Sentence encoder, instead of the recipe's; random: hashes, which teach nothing.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the page and the JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def diagnose(
    data: Path,
    recipe: str,
    settings: tuple[str, ...],
    pairs: int | None,
    encoder_name: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure on the pairs of DATA whether the reward can teach a policy, before training.

    The command derives candidates of known quality (right, copied, nearly right, over-corrected,
    garbage, right but different from the target) from held-out pairs, puts them into groups and
    rewards them. If DATA has no held-out pairs, it takes training pairs, and the page says so.
    The reward to beat is exact match: `teaches` in the JSON is false if the encoder cannot rank
    right texts that differ from the target above wrong ones.

    Example: cectrain diagnose out/data --out out/diagnosis
    """
    from cecdata.common import durable
    from cecdata.common.codec import encode
    from cecdata.embed import encoder
    from cectrain.data import shards
    from cectrain.diagnosis.diagnose import diagnose as measure
    from cectrain.diagnosis.random_encoder import NAME, RandomEncoder
    from cectrain.diagnosis.report_page import page, text

    config = load(recipe, settings)
    name = encoder_name or config.encoder
    dataset = shards.open_shards(data)
    split = shards.HELD_OUT if dataset.rows(shards.HELD_OUT) else shards.TRAIN
    count, longest = pairs or config.diagnose_pairs, config.policy.max_chars
    chosen = shards.sample(dataset, split, count, config.seed, longest)
    diagnosis = measure(
        chosen,
        RandomEncoder() if name == NAME else encoder(name),
        config.reward,
        train_pairs=dataset.rows(shards.TRAIN),
        size=config.ppo.candidates,
        seed=config.seed,
        recipe=", with ".join([f"recipe {recipe}", *settings]),
    )
    diagnosis = replace(diagnosis, split=split)
    as_text = json.dumps(encode(diagnosis), ensure_ascii=False, indent=1)
    click.echo(as_text if as_json else text(diagnosis))
    if out is not None:
        durable.write_text(out / "diagnosis.json", as_text + "\n")
        durable.write_text(out / "diagnosis.html", page(diagnosis))
        click.echo(f"wrote {out / 'diagnosis.html'} and diagnosis.json", err=True)
    if not as_json:
        suggest(f"cectrain train {data} --out out/train")
