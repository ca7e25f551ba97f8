"""The neural corrector of compare.py: one start for every corpus, then supervised steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import datasets
import pyarrow as pa

from cecdata.corpus.ids import make_id_column
from cectrain.config import SftConfig
from cectrain.corrector.correction import Edit
from cectrain.corrector.corrector import Corrector
from cectrain.corrector.policy import PolicyProposer, load
from cectrain.data.training_pairs import TrainingPairs
from cectrain.run.loss import collate
from cectrain.run.supervised import fit, read_batch
from experiments.pretraining import config as pretraining
from experiments.pretraining.run import optimizers

START = Path(__file__).with_name("neutral.toml")
BATCH = 64  # pairs in a step


class Neural:
    """A trained policy as people use it.

    The corrector cuts long texts, keeps what the policy cannot read and refuses answers that stray.
    The bare policy garbles half-width signs, digits and Latin words, which it has never seen.
    """

    def __init__(self, corrector: Corrector) -> None:
        self._corrector = corrector

    def propose(self, texts: Sequence[str]) -> list[list[Edit]]:
        """Return every edit of the greedy answers, whatever its confidence."""
        return [list(one.edits) for one in self._corrector.correct(texts)]


def trained(
    start: Path, pairs: list[tuple[str, str]], steps: int, clean: float, seed: int, folder: Path
) -> Neural:
    """Train the policy of `start` on the pairs; in a share `clean` the source is the target.

    The optimizers are those that trained the start, with learning rates that fall linearly to
    1/50. Checkpoints are written to `folder`, and a killed run continues from them. The last one
    holds the trained policy: remove the folder once the policy is scored.
    """
    import torch

    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    columns = {
        "id": make_id_column(pa.array(targets, pa.string())),
        "copy": [0] * len(pairs),
        "source": sources,
        "target": targets,
        "operator": ["noise"] * len(pairs),
    }
    torch.manual_seed(seed)
    policy = load(str(start))
    rows = TrainingPairs(datasets.Dataset(pa.table(columns)), clean, seed, None)
    stage = pretraining.Stage("pairs", steps)
    asked = replace(pretraining.load(str(START)), stages=(stage,), cooldown=1.0)

    folder.mkdir(parents=True, exist_ok=True)
    fit(
        policy,
        lambda steps: (collate(policy, read_batch(rows, step, BATCH)) for step in steps),
        optimizers(policy, asked),
        SftConfig(steps=steps, save_every=100),
        folder,
        asked.share,
        max_grad_norm=math.inf,  # the length of Muon's step does not depend on it
    )
    policy.model.eval()
    return Neural(Corrector(PolicyProposer(policy, least=0.0)))
