"""The command line of cectrain: its commands, each imported when it is called."""

from __future__ import annotations

import click

from cecdata.common import command_group

#: command → (module:attribute, what `--help` says of it)
COMMANDS = {
    "diagnose": (
        "cectrain.commands.diagnose:diagnose",
        "What the reward can teach, before the hours are spent.",
    ),
    "sft": ("cectrain.commands.sft:sft", "Supervised training on the pairs."),
    "pretrain": (
        "cectrain.commands.pretrain:pretrain",
        "The built-in policy from nothing, on openly licensed sentences.",
    ),
    "train": (
        "cectrain.commands.train:train",
        "Warm start, then PPO with the cluster-consensus reward.",
    ),
    "evidence": (
        "cectrain.commands.evidence:evidence",
        "Is PPO above its start, and above supervised steps of the same cost?",
    ),
    "ablation": ("cectrain.commands.ablation:ablation", "The reward's two terms apart."),
    "sweep": ("cectrain.commands.sweep:sweep", "Thresholds τ × β, or the prior of homophones."),
    "scaling": ("cectrain.commands.scaling:scaling", "Backbones, supervised and by reward."),
    "encoders": ("cectrain.commands.encoders:encoders", "The reward's encoder, and ratings."),
    "search": ("cectrain.commands.search:search", "Hyper-parameters, the best retrained."),
    "correct": ("cectrain.commands.correct:correct", "Correct sentences with a trained policy."),
    "export": (
        "cectrain.commands.export:export",
        "A finished policy as one folder for transformers and vLLM.",
    ),
}


@click.group(
    "cectrain",
    cls=command_group.LazyGroup,
    table=COMMANDS,
    context_settings=command_group.CONTEXT,
)
@click.version_option(package_name="cec-zero", prog_name="cectrain")
def cli() -> None:
    """A Chinese spelling corrector out of the pairs that cecdata built, without labels.

    \b
    cectrain diagnose out/data                    can the reward teach anything?
    cectrain train out/data --out out/train       warm start, PPO, held-out figures
    cectrain correct --policy out/train 他己经来了。

    Exit codes: 0 done, 1 error, 2 usage, 4 verification failed, 5 refused, 130 interrupted.
    """


def main() -> None:
    """Entry point: expected failures are one line on stderr and their exit code."""
    command_group.start(cli)
