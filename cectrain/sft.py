"""Supervised training on (source, target): the warm start, and what PPO is compared with."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.errors import CecError
from cectrain import checkpoints
from cectrain.config import SftConfig
from cectrain.data import Pair
from cectrain.pairs import TrainingPairs
from cectrain.policy import Policy, prompt_ids, target_ids

if TYPE_CHECKING:
    import torch

_POOL = 16  # batches that are sorted by length together
_IGNORED = -100  # label of tokens that are given, not learned
Log = Callable[[int, dict[str, float]], None]


def train_sft(
    policy: Policy,
    pairs: TrainingPairs,
    config: SftConfig,
    folder: Path,
    log: Log = lambda _step, _values: None,
) -> None:
    """`config.steps` steps of AdamW on the targets' tokens; goes on from a checkpoint in `folder`.

    Every batch is a function of (seed, step): a killed run that goes on ends with the same weights
    on the same machine. Raises CecError where the loss is no number, with the batch saved.
    """
    import torch

    model = policy.model
    optimizer = torch.optim.AdamW(
        model.parameters(), config.learning_rate, weight_decay=config.weight_decay
    )
    first = _resume(policy, optimizer, folder)
    model.train()
    started, tokens = time.perf_counter(), 0
    for step in range(first, config.steps):
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * schedule(step, config)
        batch = collate(policy, _batch(pairs, step, config.batch))
        with torch.autocast(model.device.type, torch.bfloat16, model.device.type == "cuda"):
            loss = model(**batch).loss
        _refuse_nan(loss, batch, folder, step)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        tokens += int((batch["labels"] != _IGNORED).sum())
        done = step + 1
        if done % config.log_every == 0 or done == config.steps:
            speed = tokens / (time.perf_counter() - started)
            started, tokens = time.perf_counter(), 0
            values = {"loss": float(loss.detach()), "grad_norm": float(norm), "tokens_per_s": speed}
            log(done, {**values, "learning_rate": float(optimizer.param_groups[0]["lr"])})
        if done % config.save_every == 0 or done == config.steps:
            save_state(policy, optimizer, folder, done)
            checkpoints.prune(folder, 2)


def schedule(step: int, config: SftConfig) -> float:
    """Share of the highest rate: a linear warm-up, then a cosine down to a tenth.

    >>> [round(schedule(s, SftConfig(steps=10, warmup=0.2)), 2) for s in (0, 1, 2, 9)]
    [0.5, 1.0, 1.0, 0.13]
    """
    warm = max(1, round(config.warmup * config.steps))
    if step < warm:
        return (step + 1) / warm
    done = (step - warm) / max(1, config.steps - warm)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * done))


def collate(policy: Policy, pairs: Sequence[Pair]) -> dict[str, torch.Tensor]:
    """Padded tokens, mask and labels, all of shape [pairs, longest]; questions have no labels."""
    import torch

    asked = [prompt_ids(policy, pair.source) for pair in pairs]
    answers = [target_ids(policy, pair.target) for pair in pairs]
    width = max(len(a) + len(b) for a, b in zip(asked, answers, strict=True))
    pad = int(policy.tokenizer.pad_token_id)
    rows, labels, mask = [], [], []
    for question, answer in zip(asked, answers, strict=True):
        empty = width - len(question) - len(answer)
        rows.append(question + answer + [pad] * empty)
        labels.append([_IGNORED] * len(question) + answer + [_IGNORED] * empty)
        mask.append([1] * (width - empty) + [0] * empty)
    named = {"input_ids": rows, "labels": labels, "attention_mask": mask}
    device = policy.model.device
    return {name: torch.tensor(values, device=device) for name, values in named.items()}


def save_state(policy: Policy, optimizer: torch.optim.Optimizer, folder: Path, step: int) -> None:
    """A checkpoint of weights and optimizer, safetensors only."""
    from safetensors.torch import save_file

    moments = {
        f"{place}.{name}": value.detach().cpu().contiguous()
        for place, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }
    weights = {n: p.detach().cpu().contiguous() for n, p in policy.model.named_parameters()}

    def fill(where: Path) -> None:
        save_file(moments, where / "optimizer.safetensors")
        save_file(weights, where / "model.safetensors")

    checkpoints.save(folder / f"checkpoint-{step}", fill, step=step)


def _resume(policy: Policy, optimizer: torch.optim.Optimizer, folder: Path) -> int:
    import torch
    from safetensors.torch import load_file

    found = checkpoints.newest(folder)
    if found is None:
        return 0
    where, facts = found
    weights = load_file(where / "model.safetensors")
    with torch.no_grad():
        for name, parameter in policy.model.named_parameters():
            parameter.copy_(weights[name])
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, value in load_file(where / "optimizer.safetensors").items():
        place, _, kind = name.partition(".")
        state.setdefault(int(place), {})[kind] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    step = facts["step"]
    assert isinstance(step, int)
    return step


def _batch(pairs: TrainingPairs, step: int, size: int) -> list[Pair]:
    """Neighbours in length from a pool of batches, so that little is padded."""
    pool = pairs.batch(step // _POOL, size * _POOL)
    pool.sort(key=lambda pair: (len(pair.source), pair.id, pair.copy))
    # Steps walk the pool with a stride, so that lengths do not rise within it.
    turn = step % _POOL * 7 % _POOL
    return pool[turn * size : (turn + 1) * size]


def _refuse_nan(
    loss: torch.Tensor, batch: dict[str, torch.Tensor], folder: Path, step: int
) -> None:
    import torch

    if bool(torch.isfinite(loss)):
        return
    kept = save_batch(batch, folder)
    raise CecError(
        f"step {step}: the loss is {float(loss.detach())}; the batch lies in {kept}. "
        "The last checkpoint is good: lower the learning rate and start again from it."
    )


def save_batch(batch: dict[str, torch.Tensor], folder: Path) -> Path:
    """Keep the batch that broke the training, for whoever looks into it."""
    from safetensors.torch import save_file

    from cecdata import durable

    path = folder / "bad_batch.safetensors"
    tensors = {name: value.detach().cpu().contiguous() for name, value in batch.items()}
    durable.write(path, lambda where: save_file(tensors, where))
    return path
