"""The start of a pretraining: embeddings by sound and shape, and the two optimizers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cecbench.local_models import pick_device
from cecdata.common.errors import MissingPackageError
from cecdata.hanzi.characters import is_han
from cecdata.hanzi.components import components
from cecdata.hanzi.readings import common_readings
from cectrain.corrector.policy import Policy
from cectrain.model.policy import small_qwen3
from cectrain.model.tokenizer import character_tokenizer
from cectrain.pretraining.config import PretrainConfig

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

# Weights of a character's own vector and of those that it shares with other characters.
_OWN, _SYLLABLE, _TONE, _PARTS = 0.6, 0.55, 0.2, 0.55


def new_policy(config: PretrainConfig) -> Policy:
    """Return the untrained policy: random weights, and embeddings by sound and shape."""
    import torch

    model, tokenizer = small_qwen3(
        character_tokenizer(), config.seed, hidden=config.hidden, layers=config.layers
    )
    start = embeddings(tokenizer, config.hidden, config.seed) * config.embedding_std
    with torch.no_grad():
        model.get_input_embeddings().weight.copy_(torch.from_numpy(start))
    return Policy(model.to(pick_device(torch, "auto")), tokenizer, "1", trained=False)


def embeddings(
    tokenizer: PreTrainedTokenizerBase, width: int, seed: int
) -> npt.NDArray[np.float32]:
    """Return vectors [tokens, width] of unit deviation, similar for similar characters.

    The vector of a character is the sum of random vectors of its own, of its syllable, of its
    syllable with the tone and of its components. Nothing is measured on text.
    """
    generator = np.random.default_rng(seed)
    table = generator.standard_normal((len(tokenizer), width))
    shared: dict[str, npt.NDArray[np.float64]] = {}

    def vector(name: str) -> npt.NDArray[np.float64]:
        if name not in shared:
            shared[name] = generator.standard_normal(width)
        return shared[name]

    for token, place in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]):
        if len(token) != 1 or not is_han(ord(token)):
            continue
        table[place] *= _OWN
        for reading in common_readings(token)[:1]:
            table[place] += _SYLLABLE * vector(f"syllable {reading.syllable}")
            table[place] += _TONE * vector(f"reading {reading}")
        parts = components(token)
        for part in parts:
            table[place] += _PARTS / len(parts) ** 0.5 * vector(f"part {part}")
    scaled: npt.NDArray[np.float32] = (table / table.std(axis=1, keepdims=True)).astype(np.float32)
    return scaled


def optimizers(policy: Policy, config: PretrainConfig) -> list[torch.optim.Optimizer]:
    """Return Muon for the layers' matrices, and AdamW for embeddings and norms.

    Muon (Jordan et al. 2024): after 200 steps of copying the loss was 2.1, with AdamW alone at
    2e-3 it was 5.2.
    """
    import torch

    if not hasattr(torch.optim, "Muon"):
        raise MissingPackageError(
            f"torch {torch.__version__} has no Muon optimizer: pretraining needs torch 2.9 or newer"
        )
    from cectrain.fast.muon import Muon

    named = list(policy.model.named_parameters())
    matrices = [p for name, p in named if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in named if p.ndim != 2 or "embed" in name]
    return [
        Muon(matrices, config.matrix_rate, weight_decay=config.weight_decay),
        torch.optim.AdamW(others, config.rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True),
    ]
