"""★ The main path of `cectrain adapt`: text in, a folder of a field out.

The sentences are gathered, some are held out, and those that the corrector doubts are left out. The
words of the others are counted, new ones among them; the counts join the n-gram models that ship
and that the user has, with the weights under which the held-out sentences are likeliest. Synthetic
errors in the held-out sentences then say at which confidence to correct, and whether to adapt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path

from cecdata.lm.interpolation import Mixture
from cecdata.lm.ngrams import WEIGHTS, default_models
from cectrain.adapt.counts import FieldCounts
from cectrain.adapt.doubts import Doubt, find_doubts
from cectrain.adapt.text import FieldText, gather_text
from cectrain.adapt.trial import Score, Trial
from cectrain.corrector.channel.tables import tables_of
from cectrain.corrector.combined import CombinedProposer
from cectrain.corrector.field import Field, write_field

FEWEST = 100  # sentences
HELD_OUT, MOST_HELD_OUT = 1 / 3, 200  # of the sentences


@dataclass(frozen=True, slots=True)
class Report:
    """What was learned from a text, and what that is worth on sentences that were held out.

    kept: why what ships is kept, or ''. share: that of the field's n-grams in the mean of all.
    """

    sentences: int
    left_out: dict[str, int]
    kept: str = ""
    held_out: int = 0
    words: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    share: float = 0.0
    threshold: float = 0.0
    before: Score | None = None
    after: Score | None = None


def adapt(
    texts: Sequence[str],
    out: Path,
    *,
    names: bool = True,
    decontaminate: Sequence[str] = (),
    seed: int = 1,
) -> Report:
    """Write the folder of a field that is learned from its text, and return what was learned.

    names: False leaves out the names of people that `cecdata` recognises. Raises InputError where
    the text has no sentence in simplified Chinese.
    """
    with gather_text(texts, names=names, decontaminate=decontaminate) as text:
        if text.count < FEWEST:
            amount = (
                "1 different sentence" if text.count == 1 else f"{text.count} different sentences"
            )
            refusal = f"it has {amount}, and {FEWEST} are needed"
            report = Report(text.count, text.left_out, refusal)
            write_field(out, None, Field(text.count, None, "", {"kept": refusal}))
            return report
        return _learn(text, out, seed)


def _learn(text: FieldText, out: Path, seed: int) -> Report:
    """Count, weigh, try and write."""
    held_out = text.first(min(MOST_HELD_OUT, int(HELD_OUT * text.count)))
    base = CombinedProposer()
    doubts = find_doubts(base.channel, text)
    suspected = {doubt.sentence for doubt in doubts}
    models = default_models()
    counts = FieldCounts(models, text, suspected | set(held_out))
    mixture, others = Mixture([*models, counts.model()]), WEIGHTS[len(models)]
    share = mixture.share_of_last(others, held_out)
    weights = [*((1 - share) * weight for weight in others), share]
    adapted = CombinedProposer(lm=tables_of(mixture.model(weights, "field")))
    trial = Trial(held_out, seed)
    before, after, threshold = trial.compare(base, adapted)
    refusal = ""
    if after.f1 < before.f1 or after.changed > before.changed:
        refusal = "what ships corrects its held-out sentences better"
    counts.add(sorted(set(held_out) - suspected))
    ngrams = replace(counts.model(), name=_name(text), share=share)
    facts: dict[str, object] = {"kept": refusal, "before": asdict(before), "after": asdict(after)}
    chosen = adapted.weights._replace(least=threshold)
    write_field(
        out, None if refusal else ngrams, Field(text.count, None if refusal else chosen, "", facts)
    )
    return Report(
        text.count,
        text.left_out,
        refusal,
        len(held_out),
        tuple(counts.new),
        doubts,
        share,
        threshold,
        before,
        after,
    )


def _name(text: FieldText) -> str:
    """Return the name of a field's n-grams, which differs where its text does."""
    digest = sha256()
    for block in text.blocks():
        digest.update("\n".join(block).encode())
    return f"field {digest.hexdigest()[:8]}"
