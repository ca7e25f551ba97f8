"""The loop of supervised training: steps, checkpoints, resume, an error for a loss of NaN."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.common.errors import CecError
from cectrain.corrector.policy import Policy, prompt_ids, target_ids
from cectrain.data.shards import Pair
from cectrain.fast import malloc_trim, qwen3_forward
from cectrain.store import checkpoints
from cectrain.store.optimizer_state import load_optimizer, optimizer_tensors

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

IGNORED = -100  # label of tokens without a loss: the prompt and padding
Log = Callable[[int, dict[str, float]], None]
Watch = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """The length, schedule and precision of a training, and how often it logs and saves."""

    steps: int
    share: Callable[[int], float]  # step → learning rate / highest learning rate
    precision: str = "auto"  # of matrix products: fp32, bf16, or the faster on this hardware
    max_grad_norm: float | None = 1.0
    save_every: int = 500
    log_every: int = 20


def fit(
    policy: Policy,
    batch_of: Callable[[int], Sequence[Pair]],
    optimizers: Sequence[torch.optim.Optimizer],
    plan: Plan,
    folder: Path,
    log: Log = lambda _step, _values: None,
    watch: Watch = lambda _step: None,
) -> None:
    """Train on the answers' tokens, from the newest whole checkpoint in `folder` or the start.

    If `batch_of` is a function of the step alone, a run that was killed and resumed ends with the
    same weights on the same machine. `watch` is called after each step with the number of steps
    taken. Raises CecError if the loss is not finite, with the batch saved.
    """
    model = policy.model
    highest = [[float(group["lr"]) for group in each.param_groups] for each in optimizers]
    first = resume(policy, optimizers, folder)
    loss_of = loss_function(policy, plan.precision)
    model.train()
    started, tokens = time.perf_counter(), 0
    for step in range(first, plan.steps):
        _set_rates(optimizers, highest, plan.share(step))
        batch = collate(policy, batch_of(step))
        loss = loss_of(batch)
        refuse_nan(loss, batch, folder, step)
        norm = _update(model, optimizers, loss, plan.max_grad_norm)
        tokens += int((batch["labels"] != IGNORED).sum())
        done = step + 1
        if done % plan.log_every == 0 or done == plan.steps:
            values = {"loss": float(loss.detach()), "grad_norm": norm}
            values["tokens_per_s"] = tokens / (time.perf_counter() - started)
            values["learning_rate"] = float(optimizers[0].param_groups[0]["lr"])
            log(done, values)
            started, tokens = time.perf_counter(), 0
        malloc_trim.trim_sometimes(done)
        watch(done)  # before the checkpoint, because a run killed in between repeats the step
        if done % plan.save_every == 0 or done == plan.steps:
            save_state(policy, optimizers, folder, done)
            checkpoints.prune(folder, 2, done)


def loss_function(
    policy: Policy, precision: str
) -> Callable[[dict[str, torch.Tensor]], torch.Tensor]:
    """Return a function: batch → mean loss of its answers, by the fastest pass for this model."""
    model = policy.model
    if qwen3_forward.supports(model):
        dtype = lean_dtype(precision)
        return lambda batch: qwen3_forward.answer_loss(
            model, batch["input_ids"], batch["labels"], dtype
        )

    def slow(batch: dict[str, torch.Tensor]) -> torch.Tensor:
        with autocast(model, precision):
            loss: torch.Tensor = model(**batch).loss
        return loss

    return slow


def lean_dtype(precision: str) -> torch.dtype:
    """Return the type of the lean pass's matrix products: fp32, bf16, or the faster here."""
    import torch

    dtypes = {"fp32": torch.float32, "bf16": torch.bfloat16}
    return dtypes.get(precision, qwen3_forward.fast_dtype())


def autocast(model: PreTrainedModel, precision: str) -> torch.autocast:
    """Return autocast for a model's own pass: bf16 if set, or if "auto" and on a GPU."""
    import torch

    kind = model.device.type
    wide = precision == "bf16" or (precision == "auto" and kind == "cuda")
    return torch.autocast(kind, torch.bfloat16, wide)


def collate(policy: Policy, pairs: Sequence[Pair]) -> dict[str, torch.Tensor]:
    """Return tokens, mask and labels, all [pairs, longest], padded on the right.

    Only answers have labels.
    """
    import torch

    asked = [prompt_ids(policy, pair.source) for pair in pairs]
    answers = [target_ids(policy, pair.target) for pair in pairs]
    width = max(len(a) + len(b) for a, b in zip(asked, answers, strict=True))
    pad = int(policy.tokenizer.pad_token_id)
    rows, labels, mask = [], [], []
    for question, answer in zip(asked, answers, strict=True):
        empty = width - len(question) - len(answer)
        rows.append(question + answer + [pad] * empty)
        labels.append([IGNORED] * len(question) + answer + [IGNORED] * empty)
        mask.append([1] * (width - empty) + [0] * empty)
    named = {"input_ids": rows, "labels": labels, "attention_mask": mask}
    device = policy.model.device
    return {name: torch.tensor(values, device=device) for name, values in named.items()}


def save_state(
    policy: Policy, optimizers: Sequence[torch.optim.Optimizer], folder: Path, step: int
) -> None:
    """Write a checkpoint of weights and optimizers, in safetensors files only."""
    from safetensors.torch import save_file

    moments: dict[str, torch.Tensor] = {}
    for number, optimizer in enumerate(optimizers):
        moments |= optimizer_tensors(optimizer, str(number))
    weights = {n: p.detach().cpu().contiguous() for n, p in policy.model.named_parameters()}

    def fill(staged: Path) -> None:
        save_file(moments, staged / "optimizer.safetensors")
        save_file(weights, staged / "model.safetensors")

    checkpoints.save(folder / f"checkpoint-{step}", fill, step=step)


def resume(policy: Policy, optimizers: Sequence[torch.optim.Optimizer], folder: Path) -> int:
    """Read the newest whole checkpoint and return its step; 0 without one."""
    import torch
    from safetensors.torch import load_file

    newest = checkpoints.newest(folder)
    if newest is None:
        return 0
    checkpoint, facts = newest
    weights = load_file(checkpoint / "model.safetensors")
    with torch.no_grad():
        for name, parameter in policy.model.named_parameters():
            parameter.copy_(weights[name])
    moments = load_file(checkpoint / "optimizer.safetensors")
    for number, optimizer in enumerate(optimizers):
        load_optimizer(optimizer, str(number), moments)
    step = facts["step"]
    assert isinstance(step, int)
    return step


def _set_rates(
    optimizers: Sequence[torch.optim.Optimizer], highest: list[list[float]], share: float
) -> None:
    for optimizer, rates in zip(optimizers, highest, strict=True):
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * share


def _update(
    model: torch.nn.Module,
    optimizers: Sequence[torch.optim.Optimizer],
    loss: torch.Tensor,
    most: float | None,
) -> float:
    """Take one step and return the norm of the gradient before clipping."""
    import torch

    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), most or float("inf"))
    for optimizer in optimizers:
        optimizer.step()
    return float(norm)


def refuse_nan(
    loss: torch.Tensor, batch: Mapping[str, object], folder: Path, step: int
) -> None:
    """Raise CecError if the loss is not finite, after saving the batch's tensors in `folder`."""
    import torch

    if bool(torch.isfinite(loss.detach()).all()):
        return
    path = _save_batch(batch, folder)
    raise CecError(
        f"step {step}: the loss is {float(loss.detach())}; its batch was saved as {path}. The "
        "last checkpoint is good: lower the learning rate, or inspect the batch, and start again."
    )


def _save_batch(batch: Mapping[str, object], folder: Path) -> Path:
    """Save a batch's tensors for inspection and return the file."""
    import torch
    from safetensors.torch import save_file

    from cecdata.common import durable

    path = folder / "bad_batch.safetensors"
    tensors = {
        name: value.detach().cpu().contiguous()
        for name, value in batch.items()
        if isinstance(value, torch.Tensor)
    }
    durable.write(path, lambda where: save_file(tensors, where))
    return path
