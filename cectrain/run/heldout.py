"""Greedy corrections of held-out sentences, what they score, and the best policy by that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cecbench.metrics.rows import Row
from cecbench.scorers import score
from cecdata.common import durable
from cecdata.common.codec import decode as decode_record
from cecdata.common.codec import seal_object, unseal_object
from cecdata.common.errors import VerificationError
from cectrain import checkpoints
from cectrain.corrector.policy import Policy, PolicyProposer, correct_texts, make_reader
from cectrain.data.shards import Pair

_WEIGHTS, _SCORES = "model.safetensors", "scores.json"  # in a checkpoint of the best policy


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Scores on held-out pairs; rates are fractions, None where nothing can be divided.

    exact: share of erroneous sentences that became their target. copied: share of them that stayed
    as they were. over_correction: share of clean sentences that were changed. f1: sentence-level
    correction F1 of CSCD-NS, answers of another length reverted. by_operator: `exact` by the
    operator of the source's error.
    """

    rows: int
    exact: float | None
    copied: float | None
    over_correction: float | None
    length_differs: float | None
    f1: float | None
    by_operator: dict[str, float]
    answers: tuple[str, ...] = ()  # to all sentences: first the pairs, then the clean ones


def write_held_out(path: Path, scores: HeldOut) -> None:
    """Write the scores, sealed, for a resumed run, whose summary needs them."""
    durable.write_bytes(path, seal_object(asdict(scores)))


def read_held_out(path: Path) -> HeldOut:
    """Read what `write_held_out` wrote. Raises VerificationError where it is damaged."""
    try:
        return decode_record(HeldOut, unseal_object(path.read_bytes()), str(path))
    except ValueError as error:
        raise VerificationError(
            f"{path}: damaged ({error}): remove the file, and run the same command again"
        ) from error


def evaluate(policy: Policy, pairs: Sequence[Pair], clean: Sequence[str]) -> HeldOut:
    """Return the scores of a policy's own greedy answers.

    They do not pass the rules of `cectrain correct`: a pair may have an error in punctuation, which
    those rules never correct, and the scores are meant to show what training has changed. What the
    policy cannot read is replaced as there, in sources and targets alike.
    """
    read = make_reader(policy)
    sources = [read(text) for text in (*(pair.source for pair in pairs), *clean)]
    targets = [read(text) for text in (*(pair.target for pair in pairs), *clean)]
    return _score_answers(pairs, sources, targets, correct_texts(policy, sources))


def evaluate_as_used(policy: Policy, pairs: Sequence[Pair]) -> HeldOut:
    """Return the scores of a policy's corrections, as `cecbench run --system policy:OUT` does."""
    from cectrain.corrector.corrector import Corrector

    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    corrected = Corrector(PolicyProposer(policy)).correct(sources)
    return _score_answers(pairs, sources, targets, [correction.target for correction in corrected])


def _score_answers(
    pairs: Sequence[Pair], sources: Sequence[str], targets: Sequence[str], answers: Sequence[str]
) -> HeldOut:
    """Return the scores of answers to the sources of pairs, and of clean sentences after them."""
    triples = zip(sources, targets, answers, strict=True)
    rows = [Row(str(number), *texts) for number, texts in enumerate(triples)]
    erroneous = [row for row in rows if row.source != row.target]
    right = [row for row in rows if row.source == row.target]
    of_pairs = [row.prediction == row.target for row in rows[: len(pairs)]]
    return HeldOut(
        rows=len(rows),
        exact=_measure_share([row.prediction == row.target for row in erroneous]),
        copied=_measure_share([row.prediction == row.source for row in erroneous]),
        over_correction=_measure_share([row.prediction != row.target for row in right]),
        length_differs=_measure_share([len(row.prediction) != len(row.source) for row in rows]),
        f1=_measure_sentence_f1(rows),
        by_operator=measure_exact_by_operator(pairs, of_pairs),
        answers=tuple(answers),
    )


def measure_exact_by_operator(pairs: Sequence[Pair], exact: Sequence[bool]) -> dict[str, float]:
    """Return the share of exact answers to the erroneous sources of each operator.

    `exact`: whether the answer to each pair's source is its target.
    """
    flags_by_operator: dict[str, list[bool]] = {}
    for pair, flag in zip(pairs, exact, strict=True):
        if pair.source != pair.target:
            flags_by_operator.setdefault(pair.operator, []).append(flag)
    return {name: sum(flags) / len(flags) for name, flags in sorted(flags_by_operator.items())}


def _measure_sentence_f1(rows: Sequence[Row]) -> float | None:
    """Return the sentence-level F1 as a fraction; None where it is not defined."""
    percent = score(rows, "cscd").values.get("S_C_f1")
    return percent / 100 if isinstance(percent, (int, float)) else None


def _measure_share(flags: Sequence[bool]) -> float | None:
    """Return the share of flags that are true; None without any flag."""
    return sum(flags) / len(flags) if flags else None


class BestPolicy:
    """The policy with the highest held-out F1 that changes no more right sentences than the first.

    The first is the policy before PPO. Of equal policies the one that changes fewer right sentences
    is better, then the later one. Use it on rank 0 alone.
    """

    def __init__(
        self, folder: Path, first: HeldOut, policy: Policy, log: Callable[[str], None]
    ) -> None:
        """Read what an earlier call left in `folder`, or begin with the policy before PPO."""
        self._folder = folder
        self._most_over_correction = first.over_correction or 0.0
        newest = checkpoints.find_newest(folder, log)
        if newest is None:
            self._save(0, first, policy)
        else:
            checkpoint, self.batch = newest
            self.scores = read_held_out(checkpoint / _SCORES)

    def compare(self, batch: int, scores: HeldOut, policy: Policy) -> None:
        """Save the policy after this batch if it is better than the best before."""
        allowed = (scores.over_correction or 0.0) <= self._most_over_correction
        if allowed and _rank_scores(batch, scores) > _rank_scores(self.batch, self.scores):
            self._save(batch, scores, policy)

    def restore(self, policy: Policy) -> None:
        """Set the weights of `policy` to the best ones; those that were not trained stay."""
        from safetensors.torch import load_file

        weights = load_file(self._folder / f"checkpoint-{self.batch}" / _WEIGHTS)
        policy.model.load_state_dict(weights, strict=False)

    def _save(self, batch: int, scores: HeldOut, policy: Policy) -> None:
        """Write the trained weights of a policy with its scores, in place of earlier ones."""
        from safetensors.torch import save_file

        weights = {
            name: parameter.detach().cpu().contiguous()
            for name, parameter in policy.model.named_parameters()
            if parameter.requires_grad  # all else is in the policy that the run started from
        }

        def fill(staged: Path) -> None:
            save_file(weights, staged / _WEIGHTS)
            write_held_out(staged / _SCORES, scores)

        checkpoints.save_checkpoint(self._folder / f"checkpoint-{batch}", fill, batch)
        checkpoints.remove_older(self._folder, 1, batch)
        self.batch, self.scores = batch, scores


def _rank_scores(batch: int, scores: HeldOut) -> tuple[float, float, int]:
    """Return the key by which the best policy has the most: F1, few over-corrections, late."""
    return scores.f1 or 0.0, -(scores.over_correction or 0.0), batch
