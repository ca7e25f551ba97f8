"""Compare the default corrector with the same one whose policy torch runs.

    python benchmarks/bench_numpy.py [--pool CLEAN.parquet] [--count 20000] [--seconds 300]

Half of the sentences get errors. Printed are, after each block, the share of sentences with equal
edits, and the greatest difference between the confidences of equal edits.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import torch
from bench_clean import drawn
from common import arguments, machine

from cectrain.corrector.calibration import synthetic
from cectrain.corrector.corrector import Corrector
from cectrain.corrector.policy import load

EQUAL, FAR = 0.9995, 0.002  # least share of equal answers, most difference of confidences
_BLOCK = 500  # sentences


class TorchPolicy:
    """What a `ChangeScorer` asks of a policy, by transformers; a row at a time, without padding."""

    def __init__(self, context: int) -> None:
        self.context = context
        self._model = load("builtin", device="cpu").model.eval()

    @torch.no_grad()
    def states(self, rows: Sequence[Sequence[int]], places: Sequence[object]) -> torch.Tensor:
        found = [
            self._model.model(input_ids=torch.tensor([row])).last_hidden_state[0, torch.tensor(at)]
            for row, at in zip(rows, places, strict=True)
        ]
        return torch.cat(found)

    @torch.no_grad()
    def logits(self, states: torch.Tensor, tokens: object) -> object:
        weight = self._model.lm_head.weight[torch.as_tensor(tokens)]
        return (states * weight).sum(-1).numpy()


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--count", type=int, default=20_000, help="sentences  [20000]")
    parser.add_argument("--seconds", type=float, default=300, help="ends after them  [300]")
    asked = parser.parse_args()
    print(machine())
    ours, other = Corrector(lm="words"), Corrector(lm="words")
    scorer = other.proposer.scorer  # type: ignore[attr-defined]
    scorer._policy = TorchPolicy(scorer._policy.context)  # noqa: SLF001
    pairs = synthetic(drawn(asked.pool, asked.count)["text"].to_list())
    sources = [source for source, _ in pairs]
    started, count, equal, edits, furthest = time.monotonic(), 0, 0, 0, 0.0
    for first in range(0, len(sources), _BLOCK):
        block = sources[first : first + _BLOCK]
        for one, two in zip(ours.correct(block), other.correct(block), strict=True):
            count, edits = count + 1, edits + len(one.edits)
            equal += [(e.start, e.end, e.target) for e in one.edits] == [
                (e.start, e.end, e.target) for e in two.edits
            ]
            for a, b in itertools.product(one.edits, two.edits):
                if (a.start, a.end, a.target) == (b.start, b.end, b.target):
                    furthest = max(furthest, abs(a.confidence - b.confidence))
        print(
            f"{count} sentences, {edits} edits: equal in {equal / count:.3%} (goal {EQUAL:.2%}); "
            f"greatest difference of confidences {furthest:.4f} (goal {FAR})",
            flush=True,
        )
        if time.monotonic() - started > asked.seconds:
            break


if __name__ == "__main__":
    main()
