"""`cectrain adapt`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cecdata.commands.build import make_repeatable_option
from cecdata.common.errors import MissingPackageError
from cecdata.common.progress import Progress, print_lines
from cectrain.commands.train import prepare_process

if TYPE_CHECKING:
    from cectrain.adapt.adapt import Report


@click.command()
@click.argument("texts", nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder of the adapted model.",
)
@click.option(
    "--no-policy",
    is_flag=True,
    help="Adapt only the n-grams, in seconds. The policy takes minutes, and the extra `train`.",
)
@click.option(
    "--no-names",
    is_flag=True,
    help="Leave out names of people and other personal data that `cecdata` recognises.",
)
@click.option("--text-column", help="Column with the text.  [default: text, or the only one]")
@click.option("--encoding", help="Encoding of text files.  [default: detected in each file]")
@make_repeatable_option(
    "--decontaminate", "FILE", "Leave out sentences of this benchmark or folder of benchmarks"
)
@click.option("--report", is_flag=True, help="List the new words and the doubtful sentences, too.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def adapt(
    texts: tuple[str, ...],
    out: Path,
    no_policy: bool,
    no_names: bool,
    text_column: str | None,
    encoding: str | None,
    decontaminate: tuple[str, ...] | None,
    report: bool,
    as_json: bool,
) -> None:
    """Adapt the corrector to a field from clean TEXTS of the field, without labels.

    TEXTS are files, globs, folders or datasets, as CORPUS of `cecdata build`. The words of the text
    join the n-gram model, the policy is trained on errors put into its sentences, and `--model`
    takes the folder in `cectrain correct` and elsewhere. No sentence of the text is in the folder.
    The same command continues where it was interrupted.

    \b
    cectrain adapt contracts.txt 'letters/*.csv' --out out/field
    cectrain correct --model out/field --file draft.txt
    """
    from cectrain.adapt.adapt import adapt as learn
    from cectrain.run.stages import check_packages

    lack = ""  # why the policy cannot be trained
    if not no_policy:
        prepare_process()
        try:
            check_packages()
        except MissingPackageError as error:
            lack = str(error)
    reading = {"text_column": text_column, "encoding": encoding}
    with Progress():
        made = learn(
            texts,
            out,
            policy=not (no_policy or lack),
            names=not no_names,
            decontaminate=decontaminate or (),
            **{name: value for name, value in reading.items() if value is not None},
        )
    if lack:
        print_lines(f"the policy is not adapted: {lack}")
    if as_json:
        click.echo(json.dumps({"out": str(out), **asdict(made)}, ensure_ascii=False))
        return
    click.echo(_summarise(out, made, advise_policy=no_policy))
    if report:
        click.echo(f"new words:\n  {' '.join(made.words)}\ndoubtful sentences:")
        for doubt in made.doubts:
            click.echo(f"{doubt.place}: {doubt.sentence}\n  → {doubt.suggestion}")


def _summarise(out: Path, made: Report, *, advise_policy: bool) -> str:
    """Return what was learned and what it is worth, as text.

    advise_policy: say how to train the policy, too, where it was not.
    """
    from cectrain.adapt.adapt import BOTH

    left_out = ", ".join(f"{count:,} {reason}" for reason, count in made.left_out.items())
    lines = [f"{out}: {made.sentences:,} sentences{f' (left out: {left_out})' if left_out else ''}"]
    if made.scores:
        lines.append(
            f"{len(made.words):,} new words; {len(made.doubts):,} doubtful sentences left out\n"
            f"on {made.held_out} sentences that were held out, by what is adapted:"
        )
        lines += [
            f"  {name}: F1 {score.f1:.1%}, right sentences changed {score.changed:.1%}"
            for name, score in made.scores.items()
        ]
        lines.append(f"used: {made.used}, from a confidence of {made.threshold:g}")
        if advise_policy and BOTH not in made.scores:
            lines.append(
                "The policy was not trained. It may correct more: leave out --no-policy; the "
                "training takes minutes and needs the extra `train`"
            )
    if made.kept:  # the reason why the corrector stays as it was
        lines.append(
            f"The text was not used: {made.kept}. The folder corrects as without adaptation"
        )
    return "\n".join(lines)
