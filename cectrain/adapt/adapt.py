"""★ The main path of `cectrain adapt`: text in, a folder of a field out.

The sentences are gathered, some are held out, and those that the corrector doubts are left out. The
words of the others are counted, new ones among them; the counts join the n-gram models that ship
and that the user has, with the weights under which the held-out sentences are likeliest. The policy
is trained on errors in the others. Synthetic errors in the held-out sentences then say which of the
two to use, at which confidence to correct, and whether to adapt at all.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path

import numpy as np

from cecdata.builds.build import build
from cecdata.common.durable import write_text
from cecdata.common.progress import advance_bar
from cecdata.config import load as load_data
from cecdata.lm.counting import Segmenter, count_words, find_words, fit_back_off, remove_words
from cecdata.lm.interpolation import Mixture
from cecdata.lm.ngrams import WEIGHTS, load_default_models
from cecdata.lm.table import Ngrams
from cectrain import config
from cectrain.adapt.text import Doubt, FieldText, find_doubts, gather_text
from cectrain.adapt.trial import Score, Trial
from cectrain.corrector.calibration import SEED
from cectrain.corrector.channel.tables import make_tables
from cectrain.corrector.combined import CombinedProposer
from cectrain.corrector.field import WORK, refuse_foreign, write_field
from cectrain.corrector.field_proposer import FieldProposer
from cectrain.corrector.folder import COMBINED, MODEL

FEWEST = 100  # sentences
HELD_OUT, MOST_HELD_OUT = 1 / 3, 200  # of the sentences
#: what may be adapted
NOTHING, NGRAMS, BOTH = "nothing", "n-grams", "n-grams and policy"
MARGIN = 0.03  # of F1, which chance seldom makes of so few sentences
RECIPE = "warm-consensus"  # of the policy
RATE = 8e-4  # of its steps: twice the usual one, as they are few
READ = 40_000  # sentences; more steps than these suffice for are not taken
FLOOR = 2  # fewest occurrences of a pair or triple that is written
READ_FOR_WORDS = 200_000  # sentences; a new word of more text than this is seen in a part of it
_PRIOR = 1.0  # words a sentence by which what is known of words joins what is counted
COPIES = 4  # pairs of a sentence, from which each step draws with fresh errors


@dataclass(frozen=True, slots=True)
class Report:
    """What was learned from a text, and what that is worth on sentences that were held out.

    kept: why what ships is kept, or ''. scores: by what was adapted: `nothing`, `n-grams`,
    `n-grams and policy`. used: that of these which the folder has.
    """

    sentences: int
    left_out: dict[str, int]
    kept: str = ""
    held_out: int = 0
    words: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    threshold: float = 0.0
    scores: dict[str, Score] = field(default_factory=dict)
    used: str = NOTHING


def adapt(
    texts: Sequence[str],
    out: Path,
    *,
    policy: bool = True,
    names: bool = True,
    decontaminate: Sequence[str] = (),
    **reading: str,
) -> Report:
    """Write the folder of a field that is learned from its text, and return what was learned.

    policy: train the policy, too, which needs torch. names: False leaves out the names of people
    that `cecdata` recognises. reading: see `gather_text`. Raises InputError where the text has no
    sentence in simplified Chinese, MissingPackageError where torch is not installed, RefusedError
    where `out` holds what is not of a field.
    """
    refuse_foreign(out)
    with gather_text(texts, names=names, decontaminate=decontaminate, **reading) as text:
        if text.count >= FEWEST:
            return _learn(text, out, policy=policy)
        amount = "1 different sentence" if text.count == 1 else f"{text.count} different sentences"
        refusal = f"it has {amount}, and {FEWEST} are needed"
        write_field(out, None, None, None, text.count, {"kept": refusal})
        return Report(text.count, text.left_out, refusal)


def _learn(text: FieldText, out: Path, *, policy: bool) -> Report:
    """Learn from a text, try what was learned on held-out sentences, and write what helps there."""
    held_out = text.choose_evenly(min(MOST_HELD_OUT, int(HELD_OUT * text.count)))
    base = CombinedProposer()
    with ThreadPoolExecutor(1) as threads:
        trial_of_base = threads.submit(Trial, held_out, base)
        doubts = find_doubts(base.channel, text)
        suspected = {doubt.sentence for doubt in doubts}
        left_out = suspected | set(held_out)
        models = load_default_models()
        counts = FieldCounts(models, text, left_out)
        mixture = Mixture([*models, counts.make_model()])
        share = mixture.share_of_last(WEIGHTS, held_out)  # the weight of the counts
        weights = [*((1 - share) * weight for weight in WEIGHTS), share]
        tables = make_tables(mixture.make_model(weights, "field"))
        trial = trial_of_base.result()
    candidates = {NGRAMS: FieldProposer(COMBINED, tables, base, weights=base.weights)}
    trained = train_policy(text, left_out, out / WORK / _name_model(text)) if policy else None
    if trained:
        name = f"{COMBINED}:{trained}"
        candidates[BOTH] = FieldProposer(name, tables, base, weights=base.weights)
    results = {NOTHING: (trial.before, base.least)}  # scores and thresholds
    results |= {name: trial.try_adapted(model) for name, model in candidates.items()}
    scores = {name: score for name, (score, _) in results.items()}
    used = choose_parts(scores)
    _, threshold = results[used]
    refusal = "" if used != NOTHING else "what ships corrects its held-out sentences better"
    facts = {"kept": refusal, "used": used, **{name: asdict(scores[name]) for name in scores}}
    if used == NOTHING:
        write_field(out, None, None, None, text.count, facts)
    else:
        counts.add(sorted(set(held_out) - suspected))
        ngrams = replace(counts.make_model(), name=_name_model(text), share=share)
        fitted = candidates[used].weights._replace(least=threshold)
        write_field(out, ngrams, trained if used == BOTH else None, fitted, text.count, facts)
    shutil.rmtree(out / WORK, ignore_errors=True)
    return Report(
        sentences=text.count,
        left_out=text.left_out,
        kept=refusal,
        held_out=len(held_out),
        words=tuple(counts.new),
        doubts=doubts,
        threshold=threshold,
        scores=scores,
        used=used,
    )


class FieldCounts:
    """Counts of the words of all sentences of a text but some: those of other models, and new ones.

    new: how often each new word was seen.
    """

    def __init__(self, models: Sequence[Ngrams], text: FieldText, without: Collection[str]) -> None:
        shares: dict[str, float] = {}  # P of each known word, by the first model that has it
        for model in reversed(models):
            shares |= zip(model.words[1:], np.exp(model.word_log_prob[1:]).tolist(), strict=True)
        sentences = [s for s in text.read_first(READ_FOR_WORDS) if s not in without]
        self.new = find_words(sentences, shares)
        total = sum(map(len, sentences)) or 1
        self._words = ("<unk>", *shares, *self.new)
        known = np.array([0.0, *shares.values()])
        fresh = np.array([count / total for count in self.new.values()])
        costs = -np.log(np.maximum(np.concatenate([known, fresh]), 1e-12))
        self._known = np.append(known, np.zeros(len(fresh))) / known.sum()  # P without a text
        self._segmenter = Segmenter(self._words, costs)
        self._sentences = text.count
        counted = ([s for s in block if s not in without] for block in text.read_blocks())
        self._counts = count_words(self._segmenter, len(self._words), counted)

    def add(self, sentences: Sequence[str]) -> None:
        """Count further sentences."""
        self._counts.add(self._segmenter.cut(sentences))

    def make_model(self) -> Ngrams:
        """Return the model of what was counted."""
        shares = self._counts.words + _PRIOR * self._sentences * self._known
        made = fit_back_off(
            self._counts,
            self._words,
            shares / shares.sum(),
            name="field",
            licence="that of the field's text",
            error=3.0,
            least_pairs=FLOOR,
            least_triples=FLOOR,
        )
        is_rare = self._counts.words < FLOOR
        is_rare[0] = False  # the unknown word
        return remove_words(made, is_rare)


def choose_steps(sentences: int) -> int:
    """Return the supervised steps for a text: 40 for each time that 100 sentences are doubled.

    >>> [choose_steps(count) for count in (100, 400, 3_000, 22_000, 1_000_000)]
    [40, 80, 196, 311, 400]
    """
    return max(40, min(400, round(40 * math.log2(sentences / 100))))


def train_policy(text: FieldText, without: Collection[str], work: Path) -> Path:
    """Return the folder of the model that was trained on all sentences but some.

    work: a folder for pairs and the run, which a later call resumes. Raises MissingPackageError
    where torch is not installed.
    """
    from cectrain.train import train

    sentences = [s for s in text.read_first(READ) if s not in without]
    write_text(work / "sentences.txt", "\n".join(sentences) + "\n")
    data = load_data("typed", copies=COPIES, filters=("levenshtein",), seed=SEED)
    build([str(work / "sentences.txt")], work / "pairs", data)
    steps = choose_steps(text.count)
    changes = (f"sft.steps={steps}", f"sft.learning_rate={RATE}", "sft.log_every=1")
    settings = config.load(RECIPE, [*changes, "ppo.updates=0", f"seed={SEED}"])

    def count_step(phase: str, _number: int, _values: object) -> None:
        if phase == "sft":
            advance_bar("supervised steps of the policy", 1, steps)

    train(work / "pairs", work / "run", settings, on_step=count_step)
    return work / "run" / MODEL


def choose_parts(scores: Mapping[str, Score]) -> str:
    """Return what to adapt: the last of the parts whose F1 is within `MARGIN` of the greatest.

    Only parts count with which F1 is no lower, and no more right sentences are changed, than with
    nothing.

    >>> choose_parts({NOTHING: Score(0.7, 0.02), NGRAMS: Score(0.8, 0.03), BOTH: Score(0.7, 0.0)})
    'n-grams and policy'
    >>> choose_parts({NOTHING: Score(0.72, 0.02), NGRAMS: Score(0.7, 0.01)})
    'nothing'
    """
    before = scores[NOTHING]
    safe = {
        name: score.f1
        for name, score in scores.items()
        if score.f1 >= before.f1 and score.changed <= before.changed
    }
    return [name for name, f1 in safe.items() if f1 >= max(safe.values()) - MARGIN][-1]


def _name_model(text: FieldText) -> str:
    """Return the name of a field's n-grams, which differs where its text does."""
    digest = sha256()
    for block in text.read_blocks():
        digest.update("\n".join(block).encode())
    return f"field {digest.hexdigest()[:8]}"
