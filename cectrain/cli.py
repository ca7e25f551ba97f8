"""The command line of cectrain: its commands, each imported when it is called."""

from __future__ import annotations

import click

from cecdata.common import command_group

#: title of a group → command → (file in commands/, its line in `--help`)
COMMANDS = {
    "Correct text": {
        "correct": ("correct", "Correct sentences, or list suspicious places in files."),
        "serve": ("serve", "Serve a web page for correcting text."),
        "lsp": ("serve", "Show the edits in an editor (language server protocol)."),
        "mcp": ("serve", "Let agents check and correct text (model context protocol)."),
        "adapt": ("adapt", "Adapt the corrector to a field from its own clean text."),
        "calibrate": ("calibrate", "Fit the weight of a language model for `correct --rescore`."),
    },
    "Train a policy": {
        "diagnose": ("train", "Measure before training whether the reward can teach a policy."),
        "sft": ("train", "Train by supervised steps only."),
        "train": ("train", "Train by supervised steps, then by PPO (reinforcement learning)."),
    },
}


@click.group(
    "cectrain", cls=command_group.LazyGroup, table=COMMANDS, context_settings=command_group.CONTEXT
)
@click.version_option(package_name="cec-zero", prog_name="cectrain")
def cli() -> None:
    """Correct Chinese text, and train spelling correctors on pairs that cecdata built.

    \b
    cectrain diagnose out/data                    measure what the reward can teach
    cectrain train out/data --out out/train       supervised steps, PPO, held-out scores
    cectrain correct --model out/train 他己经来了。

    Exit codes: 0 done, 1 error, 2 usage, 4 verification failed, 5 refused, 130 interrupted.
    """


def main() -> None:
    """Run the command line; an expected error is one line on stderr and an exit code."""
    command_group.start(cli)
