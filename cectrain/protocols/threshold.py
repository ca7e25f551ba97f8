"""A decision threshold: a change is kept if the policy is sure enough of its answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from cecbench.causal import decode
from cecdata.common import durable
from cecdata.common.strict_json import parse
from cectrain.config import DataConfig
from cectrain.corrector.generation import greedy
from cectrain.corrector.policy import Policy, load
from cectrain.data import shards
from cectrain.data.shards import Pairs
from cectrain.protocols.runner import CAUTIOUS, FinishedRun

_BATCH = 64
_TUNED_ON = 500  # pairs of the training split, and as many clean sentences
_SEED = 42


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer with the log-probability that the policy gives it."""

    source: str
    target: str
    answer: str
    log_probability: float


def apply_threshold(run: FinishedRun, dataset: Pairs, longest: int) -> None:
    """Write the held-out answers of a run after a threshold that is tuned on its training split.

    They are kept in a file beside the run's folder, and a second call computes nothing. The
    threshold is that of the highest S_C_f1. No pair has more than `longest` characters.
    """
    path = run.folder.with_name(f"{run.run.name}.{CAUTIOUS}")
    digest = run.summary["model_sha256"]
    if path.is_file():
        facts = parse(path.read_bytes())
        if isinstance(facts, dict) and facts.get("model_sha256") == digest:
            return
    policy = load(str(run.folder))
    data = DataConfig(held_out=_TUNED_ON, held_out_clean=_TUNED_ON, tuning=True)
    pairs, clean = shards.held_out(dataset, data, longest, _SEED)
    tuned = _decisions(policy, [(p.source, p.target) for p in pairs] + [(c, c) for c in clean])
    least = best_threshold(tuned)
    rows = run.sentences()
    decided = _decisions(policy, [(row["source"], row["target"]) for row in rows])
    answers = [one.answer if one.log_probability >= least else one.source for one in decided]
    kept = {"model_sha256": digest, "threshold": least, "answers": answers}
    durable.write_text(path, json.dumps(kept, ensure_ascii=False) + "\n")


def best_threshold(decisions: Sequence[Decision]) -> float:
    """Return the least log-probability of a change that is kept, for the highest S_C_f1.

    As in that score, pairs of unequal lengths are left out, and a change of another length counts
    as none. Without a right change it is 0, which keeps none.

    >>> best_threshold([Decision("a", "b", "b", -0.1), Decision("c", "c", "d", -0.5)])
    -0.1
    """
    decisions = [one for one in decisions if len(one.source) == len(one.target)]
    errors = sum(one.source != one.target for one in decisions)
    changes = [
        one for one in decisions if one.answer != one.source and len(one.answer) == len(one.source)
    ]
    changes.sort(key=lambda one: -one.log_probability)
    best, least, right = 0.0, 0.0, 0
    for count, one in enumerate(changes, 1):
        right += one.answer == one.target
        if (f1 := 2 * right / (count + errors)) > best:
            best, least = f1, one.log_probability
    return least


def _decisions(policy: Policy, sentences: Sequence[tuple[str, str]]) -> list[Decision]:
    """Return the greedy answers to (source, target), with their log-probabilities."""
    written = greedy(policy, [source for source, _ in sentences], _BATCH)
    answers = decode(policy, [one.tokens for one in written])
    return [
        Decision(source, target, answer.strip(), sum(one.log_probs))
        for (source, target), answer, one in zip(sentences, answers, written, strict=True)
    ]
