"""The options of commands that correct text, and the corrector that they describe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cecdata.common.errors import how_to_install
from cecdata.common.progress import print_lines
from cectrain.corrector import whole_text
from cectrain.corrector.folder import COMBINED
from cectrain.corrector.table import BUILT_IN, FIELD, POLICY, find_model

if TYPE_CHECKING:
    from cectrain.corrector.corrector import Corrector

F = TypeVar("F", bound=Callable[..., object])


def add_corrector_options(function: F) -> F:
    """Add --model, --lm, --confidence, --script and the word lists; see `open_corrector`."""
    file = click.Path(path_type=Path)
    models = "; ".join(f"`{model.form}`: {model.meaning}" for model in BUILT_IN)
    for option in (
        click.option(
            "--dictionary",
            multiple=True,
            type=file,
            help="File of replacements to make before all other corrections. Each line has the "
            "wrong text, a tab, and the right text. Repeatable.",
        ),
        click.option(
            "--terms",
            multiple=True,
            type=file,
            help="File of words of your field, one per line, each with an optional tab and weight. "
            "Text that sounds or looks like such a word is replaced by that word. Repeatable.",
        ),
        click.option(
            "--protect", type=file, help="File of names that must not be changed, one per line."
        ),
        click.option(
            "--rescore",
            metavar="MODEL",
            help="Language model that judges the proposed edits: a folder or hub name of a "
            "causal model, a .gguf file, or the URL of an endpoint.",
        ),
        click.option(
            "--script",
            type=click.Choice(["simplified", "traditional", "auto"]),
            default="simplified",
            help="Script of the texts; auto detects it for each text. Traditional characters need "
            f"an extra: {how_to_install('script')}.",
        ),
        click.option(
            "--confidence",
            type=click.FloatRange(0, 1),
            show_default="0.4 for combined, 0.5 for others",
            help="Minimum confidence of an edit. A higher value makes fewer, surer edits. With "
            "--rescore the default is higher, as `cectrain calibrate` prints.",
        ),
        click.option(
            "--lm",
            help="N-gram model of the noisy channel: an ARPA file, an n-gram table, or "
            "`words`, the packaged table of open texts.  [default: the mean of that one and of the "
            "packaged table of an input method]",
        ),
        click.option(
            "--model",
            default=COMBINED,
            help=f"Model to correct with. {models}; {FIELD.meaning}; or, with torch, "
            f"{POLICY.meaning}. Installed "
            "packages may add others.",
        ),
    ):
        function = option(function)
    return function


def make_corrector_arguments(
    protect: Path | None, terms: Sequence[Path], dictionary: Sequence[Path], **settings: Any
) -> dict[str, Any]:
    """Return the arguments of the `Corrector` that `add_corrector_options` describe.

    Each list is read once, because it may be a pipe.
    """
    from cectrain.corrector.wordlists import read_dictionary, read_names, read_terms

    return {
        "protect": read_names(protect) if protect else (),
        "terms": read_terms(terms),
        "dictionary": read_dictionary(dictionary),
        **settings,
    }


def open_corrector(**settings: Any) -> Corrector:
    """Return the corrector that `add_corrector_options` describe, loaded."""
    return load_corrector(make_corrector_arguments(**settings))


def load_corrector(arguments: dict[str, Any]) -> Corrector:
    """Return a corrector that is loaded."""
    from cectrain.corrector.corrector import Corrector

    corrector = Corrector(**arguments)
    corrector.correct("好")  # loads the tables and compiles the kernels before a client waits
    if note := corrector.proposer.note:  # where a language model has no weights of its own
        print_lines(note)
    return corrector


def load_corrector_for_text(
    arguments: dict[str, Any], prevalence: float | None, sample: Sequence[str]
) -> Corrector:
    """Return the corrector of `make_corrector_arguments`, with the confidences that suit the text.

    sample: texts on which the share of sentences with an error is estimated if it is not given;
    none where they are not known beforehand. Raises UsageError where the share is given for a model
    whose confidences are not calibrated, or together with a threshold.
    """
    model, _ = find_model(arguments["model"])
    is_calibrated = "prevalence" in model.takes and arguments["rescore"] is None
    has_threshold = arguments["confidence"] is not None
    if prevalence is not None and (has_threshold or not is_calibrated):
        raise click.UsageError(
            "--prevalence is for combined and for fields, without --rescore and --confidence"
        )
    if has_threshold or not is_calibrated or not (sample or prevalence):
        return load_corrector(arguments)
    from cectrain.corrector.combined import CombinedProposer

    corrector = load_corrector({**arguments, "confidence": whole_text.SEEN})
    assert isinstance(corrector.proposer, CombinedProposer)
    least = corrector.proposer.weights.least
    verb = "has" if prevalence else "seems to have"
    share = prevalence or _estimate_prevalence(corrector, sample)
    if share is None:
        return corrector.also(confidence=least)
    threshold = whole_text.find_threshold(share, least)
    is_rare = share <= whole_text.RAREST
    subject = "hardly a sentence" if is_rare else f"about one sentence in {1 / share:,.0f}"
    print_lines(
        f"{subject} {verb} an error: a confidence of {threshold:g} becomes {least:g} "
        "(see --prevalence)"
    )
    return corrector.move(whole_text.find_move(threshold, least), least)


def _estimate_prevalence(corrector: Corrector, sample: Sequence[str]) -> float | None:
    """Return the share of the sentences of texts that seem to have an error; None for too few."""
    memory = whole_text.Memory(sample)
    confidences: list[float] = []
    for correction in corrector.stream(sample):
        reviewed = memory.review(correction, whole_text.SEEN)
        confidences += whole_text.find_greatest(reviewed)
    return whole_text.estimate_prevalence(confidences)
