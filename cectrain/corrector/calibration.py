"""Weights of a language model beside the channel and the policy, fitted on synthetic pairs alone.

Errors are put into clean sentences; the channel proposes changes of them, of which one knows which
are right. The weights maximise the likelihood of that, with a Gaussian prior of variance 2. A model
gets none if it ranks right changes above wrong ones no better than the channel's n-grams do, or
makes the outcomes of other changes no likelier.

Of confidences that are probabilities, F1 is greatest at a threshold of half that F1 (Lipton et al.
2014). So the threshold rises by half of what the model adds to the F1 of held-out changes.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cecdata.common.errors import InputError
from cecdata.common.progress import advance_bar
from cecdata.corpus.reading import read_corpus
from cecdata.hanzi.edits import align, splice
from cecdata.lm import LanguageModel
from cectrain.corrector.combined import CombinedProposer
from cectrain.corrector.correction import Change
from cectrain.corrector.edit_guard import cut_pieces
from cectrain.corrector.rescoring import MEASURED, TOGETHER, TRUSTED, Known, Rescorer, Weights

RECIPE, SEED = "typed", 1  # of the synthetic pairs
Doubles = NDArray[np.float64]
Pair = tuple[str, str]  # source and target


class Judged(NamedTuple):
    """The changes of all pairs, and whether each is right.

    `features` [N, 6] holds 1 and the first values of `Known`; `model` and `ngrams` hold log-ratios.
    errors: those of the pairs, proposed or not.
    """

    features: Doubles
    model: Doubles
    ngrams: Doubles
    right: NDArray[np.bool_]
    errors: int


class Calibration(NamedTuple):
    """Fitted weights, and what the model is worth.

    auc, ngrams_auc: the share of pairs (right, wrong) that it and the n-grams rank so. On the half
    that the weights do not know: gain is what it adds to the log-likelihood of a change, in nats;
    f1 and f1_without are the greatest F1 of changes with and without it.
    """

    weights: Weights
    auc: float
    ngrams_auc: float
    gain: float
    f1: float
    f1_without: float
    changes: int
    right: int


def make_pairs(texts: Iterable[str], copies: int = 1) -> list[Pair]:
    """Return pairs of these sentences, half of them without errors, some of each sentence."""
    import cecdata

    made = cecdata.build(
        texts=list(texts),
        recipe=RECIPE,
        copies=copies,
        unchanged=0.5,
        holdout=0.0,
        filters=("levenshtein",),
        seed=SEED,
    )
    return list(made.select("source", "target").iter_rows())  # type: ignore[union-attr]


def sample_corpus(count: int, corpus: str = "sample") -> list[str]:
    """Return so many texts of a corpus that `cecdata build` takes, drawn at random.

    Raises InputError where it cannot be read, or has no text.
    """
    read_texts = (part.batch.column("text").to_pylist() for part in read_corpus([corpus]))
    texts = [text for part in read_texts for text in part if text.strip()]
    if not texts:
        raise InputError(f"{corpus} has no readable text: name a file with clean sentences")
    return random.Random(SEED).sample(texts, min(count, len(texts)))


def judge_changes(
    proposer: CombinedProposer, scorer: LanguageModel, ngrams: LanguageModel, pairs: Sequence[Pair]
) -> Judged:
    """Return the changes of each source that would be judged, with all that is known of them."""
    places = [  # of the pieces: the pair of each, and where it begins and ends in its source
        (pair, piece.start, piece.end)
        for pair in pairs
        for piece in cut_pieces(pair[0], proposer.longest)
    ]
    texts = [source[start:end] for (source, _), start, end in places]
    # what it proposes does not depend on an earlier calibration
    proposer.rescorer = Rescorer(scorer, proposer.weights, "", MEASURED)
    evidence: list[dict[Change, Known]] = []
    model: list[Doubles] = []
    for first in range(0, len(texts), TOGETHER):
        block = texts[first : first + TOGETHER]
        evidence += proposer.gather_evidence(block, proposer.channel.read_pieces(block))
        model += scorer.log_ratios_of(block, [list(changes) for changes in evidence[first:]])
        advance_bar("judge", len(block), len(texts))
    listed = [list(changes) for changes in evidence]
    right = [
        is_right((start + begin, end + begin, text), pair[0], find_right_changes(*pair))
        for changes, (pair, begin, _) in zip(listed, places, strict=True)
        for start, end, text in changes
    ]
    return Judged(
        features=np.array([(1.0, *known[:5]) for part in evidence for known in part.values()]),
        model=np.concatenate(model),
        ngrams=np.concatenate(ngrams.log_ratios_of(texts, listed)),
        right=np.array(right),
        errors=sum(len(find_right_changes(*pair)) for pair in pairs),
    )


def find_right_changes(source: str, target: str) -> list[Change]:
    """Return the changes of the source that lead to the target."""
    return [(edit.start, edit.end, edit.source) for edit in align(target, source)]


def is_right(change: Change, source: str, right: Sequence[Change]) -> bool:
    """Return whether a change does what the right changes do to the characters that it replaces.

    >>> is_right((1, 3, "夕阳"), "在西洋下", [(1, 2, "夕"), (2, 3, "阳")])
    True
    """
    start, end, text = change
    inside = [(a - start, b - start, new) for a, b, new in right if start <= a and b <= end]
    return bool(inside) and splice(source[start:end], inside) == text


def fit_calibration(judged: Judged, plain: Weights) -> Calibration:
    """Return the weights that fit, or `plain`, without a model's say, where it is of no use.

    Raises InputError where no change was right, or none wrong.
    """
    is_judged = np.isfinite(judged.model)
    right, model = judged.right[is_judged], judged.model[is_judged]
    if right.all() or not right.any():
        raise InputError("no proposed change is right, or none is wrong: raise --sentences")
    # as `Weights` has them: the last column is the model's
    features = np.column_stack([judged.features[is_judged], np.clip(model, -TRUSTED, TRUSTED)])
    loss, f1 = _cross_fit(features, right, judged.errors)
    loss_without, f1_without = _cross_fit(features[:, :-1], right, judged.errors)
    least = round(plain.least + (f1 - f1_without) / 2, 2)
    fitted = Weights(*fit_logistic(features, right).tolist())._replace(least=least)
    model_auc, ngrams_auc = measure_auc(model, right), measure_auc(judged.ngrams[is_judged], right)
    gain = loss_without - loss
    is_useless = model_auc <= ngrams_auc or gain <= 0 or fitted.model <= 0
    return Calibration(
        weights=plain if is_useless else fitted,
        auc=model_auc,
        ngrams_auc=ngrams_auc,
        gain=gain,
        f1=f1,
        f1_without=f1_without,
        changes=len(right),
        right=int(right.sum()),
    )


def _cross_fit(features: Doubles, right: NDArray[np.bool_], errors: int) -> tuple[float, float]:
    """Return the loss of a change in nats and the greatest F1, by weights of the other half."""
    logits = np.zeros(len(right))
    for half, other in ((0, 1), (1, 0)):
        weights = fit_logistic(features[half::2], right[half::2])
        logits[other::2] = features[other::2] @ weights
    loss = np.logaddexp(0, np.where(right, -logits, logits)).mean()
    # of the surest change, the two surest, and so on
    hits = np.cumsum(right[np.argsort(-logits, kind="stable")])
    f1 = 2 * hits / (np.arange(1, len(right) + 1) + errors)
    return float(loss), float(f1.max())


def fit_logistic(features: Doubles, right: NDArray[np.bool_]) -> Doubles:
    """Return the weights of the logistic regression, fitted by Newton's method."""
    weights: Doubles = np.zeros(features.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-np.clip(features @ weights, -500, 500)))
        spread = chance * (1 - chance) + 1e-9
        hessian = (features * spread[:, None]).T @ features + 0.5 * np.eye(len(weights))
        step = np.linalg.solve(hessian, features.T @ (right - chance) - 0.5 * weights)
        weights = weights + step
        if abs(step).max() < 1e-6:
            break
    return weights


def measure_auc(values: Doubles, right: NDArray[np.bool_]) -> float:
    """Return the share of pairs (right, wrong) of which the right one has the greater value.

    Equal values count half.
    """
    _, number, times = np.unique(values, return_inverse=True, return_counts=True)
    rank = np.cumsum(times) - (times + 1) / 2  # of each different value, from 0
    count = int(right.sum())
    ranks_among_right = count * (count - 1) / 2  # their sum
    wrong_below = rank[number][right].sum() - ranks_among_right
    return float(wrong_below / (count * (len(right) - count)))
