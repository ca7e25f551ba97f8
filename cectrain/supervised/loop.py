"""The loop that all supervised training shares: steps, checkpoints, resume, a stop on NaN."""

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

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

IGNORED = -100  # label of tokens that are given, not learned
Log = Callable[[int, dict[str, float]], None]
Watch = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """How long, how fast, and what is kept."""

    steps: int
    share: Callable[[int], float]  # step → share of the highest learning rate
    precision: str = "auto"  # of the products: fp32, bf16, or what the hardware is fast at
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
    """Steps on the answers' tokens from the newest whole checkpoint in `folder`, or from the start.

    Where `batch_of` is a function of the step alone, a killed run that goes on ends with the same
    weights on the same machine. `watch` is called after each step with the number that are done.
    Raises CecError where the loss is no number, with the batch saved.
    """
    model = policy.model
    highest = [[float(group["lr"]) for group in made.param_groups] for made in optimizers]
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
        watch(done)  # before the checkpoint: a run killed in between does the step again
        if done % plan.save_every == 0 or done == plan.steps:
            save_state(policy, optimizers, folder, done)
            checkpoints.prune(folder, 2, done)


def loss_function(
    policy: Policy, precision: str
) -> Callable[[dict[str, torch.Tensor]], torch.Tensor]:
    """Batch → mean loss of its answers, by the fastest way that this model and device have."""
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
    """Of the lean pass' products: fp32, bf16, or what the CPU is fast at."""
    import torch

    dtypes = {"fp32": torch.float32, "bf16": torch.bfloat16}
    return dtypes.get(precision, qwen3_forward.fast_dtype())


def autocast(model: PreTrainedModel, precision: str) -> torch.autocast:
    """The same of a model's own pass: bf16 where it is asked for, and on a GPU."""
    import torch

    kind = model.device.type
    wide = precision == "bf16" or (precision == "auto" and kind == "cuda")
    return torch.autocast(kind, torch.bfloat16, wide)


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
        labels.append([IGNORED] * len(question) + answer + [IGNORED] * empty)
        mask.append([1] * (width - empty) + [0] * empty)
    named = {"input_ids": rows, "labels": labels, "attention_mask": mask}
    device = policy.model.device
    return {name: torch.tensor(values, device=device) for name, values in named.items()}


def save_state(
    policy: Policy, optimizers: Sequence[torch.optim.Optimizer], folder: Path, step: int
) -> None:
    """A checkpoint of weights and optimizers, safetensors only."""
    from safetensors.torch import save_file

    moments = {
        f"{number}.{place}.{name}": value.detach().cpu().contiguous()
        for number, optimizer in enumerate(optimizers)
        for place, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }
    weights = {n: p.detach().cpu().contiguous() for n, p in policy.model.named_parameters()}

    def fill(where: Path) -> None:
        save_file(moments, where / "optimizer.safetensors")
        save_file(weights, where / "model.safetensors")

    checkpoints.save(folder / f"checkpoint-{step}", fill, step=step)


def resume(policy: Policy, optimizers: Sequence[torch.optim.Optimizer], folder: Path) -> int:
    """Read the newest whole checkpoint, if there is one; the steps that it holds."""
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
    states: list[dict[int, dict[str, torch.Tensor]]] = [{} for _ in optimizers]
    for name, value in load_file(where / "optimizer.safetensors").items():
        number, place, kind = name.split(".", 2)
        states[int(number)].setdefault(int(place), {})[kind] = value
    for optimizer, state in zip(optimizers, states, strict=True):
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
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
    """One step down the gradient; its norm before it was cut."""
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
    """Raise CecError where the loss is no number, with the batch's tensors saved in `folder`."""
    import torch

    if bool(torch.isfinite(loss.detach()).all()):
        return
    kept = _save_batch(batch, folder)
    raise CecError(
        f"step {step}: the loss is {float(loss.detach())}; the batch lies in {kept}. The last "
        "checkpoint is good: lower the learning rate, or look into the batch, and start again."
    )


def _save_batch(batch: Mapping[str, object], folder: Path) -> Path:
    """Keep the batch that broke the training, for whoever looks into it."""
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
