"""`cectrain calibrate`: the weight of a language model beside the corrector."""

from __future__ import annotations

import json

import click


@click.command()
@click.argument("model")
@click.option("--lm", help="N-gram model of the noisy channel, as in `cectrain correct`.")
@click.option(
    "--sentences",
    type=click.IntRange(20),
    default=600,
    help="Number of clean sentences to put errors into.",
)
@click.option(
    "--corpus",
    default="sample",
    help="Clean text, as CORPUS of `cecdata build`; `sample` is the packaged text.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the calibration as JSON.")
def calibrate(model: str, lm: str | None, sentences: int, corpus: str, as_json: bool) -> None:
    """Fit the weights of `cectrain correct --rescore` for MODEL, a causal language model.

    The command makes the errors itself, and needs no labels. A model gets the weight 0 if it
    separates right changes from wrong ones no better than n-grams. The result is saved in the
    user's data folder for `cectrain correct --rescore`.

    Example: cectrain calibrate Qwen/Qwen3-0.6B-Base
    """
    from cecdata.common.progress import Progress
    from cecdata.lm import open_scorer
    from cectrain.corrector import calibration
    from cectrain.corrector.combined import CombinedProposer
    from cectrain.corrector.rescoring import write_weights

    scorer = open_scorer(model)
    proposer = CombinedProposer(lm=lm, rescore=scorer)
    texts = calibration.sample_corpus(sentences, corpus)
    pairs = calibration.make_pairs(texts)
    with Progress():
        changes = calibration.judge_changes(proposer, scorer, open_scorer(lm), pairs)
    fitted = calibration.fit_calibration(changes, proposer.weights)
    facts = {"model": scorer.name, "pairs": len(pairs), **fitted._asdict()}
    ngrams = str(proposer.channel.identity["model"])
    path = write_weights(scorer.identity, ngrams, fitted.weights, facts)
    if as_json:
        click.echo(json.dumps({**facts, "weights": fitted.weights._asdict(), "file": str(path)}))
        return
    click.echo(f"{len(pairs)} pairs; {fitted.right} of {fitted.changes} proposed changes are right")
    click.echo(
        f"right changes ranked above wrong ones: by {scorer.name} {fitted.auc:.1%}, by n-grams "
        f"{fitted.ngrams_auc:.1%}; gain per change: {fitted.gain:+.4f} nats; highest F1 of "
        f"changes: {fitted.f1:.1%}, without it {fitted.f1_without:.1%}"
    )
    weights = fitted.weights._asdict()
    click.echo(f"default of --confidence: {weights.pop('least'):.2f}")
    click.echo("weights: " + ", ".join(f"{name} {value:.2f}" for name, value in weights.items()))
    if not fitted.weights.model:
        click.echo("--rescore will not use this model, because it adds nothing to the n-grams.")
    click.echo(f"saved to {path}")
