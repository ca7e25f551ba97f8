"""The neural corrector of compare.py: one start for every corpus, then supervised steps."""

from __future__ import annotations

import shutil
from pathlib import Path

import datasets
import pyarrow as pa

from cecdata.corpus.xxh3 import id_column
from cectrain.config import SftConfig
from cectrain.corrector.policy import load
from cectrain.corrector.proposals import PolicyProposer
from cectrain.data.training_pairs import TrainingPairs
from cectrain.supervised.sft import train_sft


def trained(
    start: Path, pairs: list[tuple[str, str]], steps: int, clean: float, seed: int, folder: Path
) -> PolicyProposer:
    """Train the policy of `start` on pairs, a share `clean` of them made copies of the target.

    The proposer returns every edit of the greedy answer, whatever its confidence. Checkpoints are
    written to `folder`, which is removed at the end, and a killed run continues from them.
    """
    import torch

    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    columns = {
        "id": id_column(pa.array(targets, pa.string())),
        "copy": [0] * len(pairs),
        "source": sources,
        "target": targets,
        "operator": ["noise"] * len(pairs),
    }
    torch.manual_seed(seed)
    policy = load(str(start))
    rows = TrainingPairs(datasets.Dataset(pa.table(columns)), clean, seed, None)
    config = SftConfig(steps=steps, save_every=100)
    folder.mkdir(parents=True, exist_ok=True)
    train_sft(policy, rows, config, folder)
    shutil.rmtree(folder)
    policy.model.eval()
    return PolicyProposer(policy, least=0.0)
