"""`cectrain sft`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

from cecdata.common.progress import suggest
from cectrain.commands.options import DEFAULT, configured, run_options
from cectrain.corrector.folder import BUILTIN
from cectrain.data.labelled import FORMATS, LabelledPairs, labelled_pairs
from cectrain.data.shards import TRAIN

#: labelled pairs have errors of their own, and as many clean sentences as the file has
_LABELLED = ("data.fresh=false", "data.clean_share=0.0")
_EPOCHS = 3  # passes over labelled pairs, without --sft-steps


@click.command()
@run_options
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="tsv",
    show_default=True,
    help="Columns of a file of labelled pairs: source and target, or CSCD-NS's label, source and "
    "target.",
)
@click.option(
    "--held-out",
    type=click.Path(path_type=Path),
    help="File of labelled pairs to score the policy on, instead of a tenth of the targets.",
)
def sft(
    data: Path,
    out: Path,
    recipe: str,
    settings: tuple[str, ...],
    policy: str | None,
    seed: int | None,
    sft_steps: int | None,
    overwrite: bool,
    as_json: bool,
    form: str,
    held_out: Path | None,
) -> None:
    """Train on the pairs of DATA by supervised steps only, without PPO.

    DATA is a dataset of `cecdata build`, or a file of labelled pairs: UTF-8, source, tab and target
    on each line, no header. A pair of equal sides is a clean sentence, which teaches the policy to
    leave text as it is. A tenth of the targets of a file are held out to score the policy on.
    Without --sft-steps a file is read three times, a dataset as the recipe says.

    \b
    cectrain sft out/data --out out/sft --sft-steps 2000
    cectrain sft pairs.tsv --out out/sft --policy Qwen/Qwen3-0.6B
    cectrain sft train.tsv --format cscd --held-out dev.tsv --out out/sft
    """
    from cectrain.run.progress import displayed
    from cectrain.train import train as run

    if recipe == DEFAULT:  # its rate and length suit the built-in policy
        longest = () if policy in (None, BUILTIN) else ("policy.max_chars=128",)
        settings = ("sft.learning_rate=null", *longest, *settings)
    if is_file := not data.is_dir():
        settings = (*_LABELLED, *settings)
    elif held_out or form != "tsv":
        raise click.UsageError(f"{data} is a dataset: --format and --held-out are for files")
    config = configured(
        recipe, settings, policy__name=policy, seed=seed, sft__steps=sft_steps, ppo__updates=0
    )
    pairs: Path | LabelledPairs = data
    if is_file:
        kept = config.data.held_out + config.data.held_out_clean
        pairs = labelled_pairs(data, form, held_out, kept)
        if sft_steps is None:
            steps = -(-_EPOCHS * pairs.rows(TRAIN) // config.sft.batch)
            config = replace(config, sft=replace(config.sft, steps=steps))
    if not config.sft.steps:
        raise click.UsageError("the recipe has no supervised steps: set --sft-steps")
    with displayed({"sft": config.sft.steps}) as to:
        if isinstance(pairs, LabelledPairs):
            to.log(pairs.described())
        summary = run(pairs, out, config, overwrite=overwrite, log=to.log, on_step=to.on_step)
    if not summary:
        return
    exact = summary["heldout_exact_after_sft"]
    known = isinstance(exact, float)
    line = f"held-out exact rate {exact:.1%}" if known else "the held-out exact rate is unknown"
    click.echo(json.dumps(summary, ensure_ascii=False, indent=1) if as_json else line)
    suggest(f"cectrain correct --policy {out} TEXT", f"cecbench run --system policy:{out} …")
