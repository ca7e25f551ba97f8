"""What a model is worth in a field: sentences that no model has seen, half of them with errors."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain

from cectrain.corrector.calibration import make_pairs
from cectrain.corrector.correction import Correction, Proposer, apply_edits
from cectrain.corrector.corrector import Corrector

PAIRS, MOST_COPIES = 300, 8  # pairs in all, as far as so many copies of a sentence suffice
HIGHEST = 0.7  # threshold


@dataclass(frozen=True, slots=True)
class Score:
    """F1 of wholly corrected sentences, and the share of right sentences that are changed."""

    f1: float
    changed: float


class Trial:
    """Held-out sentences and the same with errors, made by a recipe.

    before: the score of a model that is not adapted.
    """

    def __init__(self, sentences: Sequence[str], base: Proposer) -> None:
        copies = min(MOST_COPIES, -(-PAIRS // len(sentences)))
        self.pairs = make_pairs(sentences, copies)
        self.targets = sorted({target for _, target in self.pairs})
        self.before = self.compute_score(self.correct_all(base), base.least)

    def try_adapted(self, model: Proposer) -> tuple[Score, float]:
        """Return the score and the threshold of a model that is adapted.

        The threshold is the default, raised until no more right sentences are changed than before.
        """
        corrections, threshold = self.correct_all(model), model.least
        after = self.compute_score(corrections, threshold)
        while after.changed > self.before.changed and threshold < HIGHEST:
            threshold = round(threshold + 0.01, 2)
            after = self.compute_score(corrections, threshold)
        return after, threshold

    def correct_all(self, proposer: Proposer) -> list[Correction]:
        """Return the corrections of the sources of all pairs, and then those of the targets."""
        texts = [*(source for source, _ in self.pairs), *self.targets]
        distinct = [*dict.fromkeys(texts)]
        half = len(distinct) // 2
        with ThreadPoolExecutor(2) as threads:
            parts = threads.map(Corrector(proposer).correct, (distinct[:half], distinct[half:]))
            made = dict(zip(distinct, chain.from_iterable(parts), strict=True))
        return [made[text] for text in texts]

    def compute_score(self, corrections: Sequence[Correction], threshold: float) -> Score:
        """Return the score of the edits with this confidence or more.

        corrections: those of the sources of all pairs, and then those of the targets.
        """
        answers = [
            apply_edits(c.source, [edit for edit in c.edits if edit.confidence >= threshold])
            for c in corrections
        ]
        corrected, kept = answers[: len(self.pairs)], answers[len(self.pairs) :]
        rows = list(zip(self.pairs, corrected, strict=True))
        right = sum(source != target == answer for (source, target), answer in rows)
        changed = sum(answer != source for (source, _), answer in rows)
        erroneous = sum(source != target for source, target in self.pairs)
        f1 = 2 * right / max(1, changed + erroneous)
        spoilt = sum(target != answer for target, answer in zip(self.targets, kept, strict=True))
        return Score(f1, spoilt / len(self.targets))
