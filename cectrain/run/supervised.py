"""Supervised training on pairs, PPO's warm start and its baseline: steps, checkpoints and resume,
and memory.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import torch
from torch.optim.lr_scheduler import LambdaLR

from cecdata.common.errors import CecError
from cectrain import checkpoints, distributed
from cectrain.checkpoints import load_optimizer, name_states
from cectrain.config import SftConfig
from cectrain.corrector.policy import Policy
from cectrain.data.shards import Pair
from cectrain.data.training_pairs import TrainingPairs
from cectrain.run.loss import IGNORED, collate, make_loss

_ADVICE = "raise sft.accumulation, or set sft.gradient_checkpointing=true"
# Steps between two trims of the heap. Batches of many lengths fragment it: a run of the built-in
# policy grew to 2.9 GB in 120 steps, and stays at 1.2 GB; after a trim the system must hand out the
# pages again.
_TRIM_EVERY = 10
Batch = dict[str, torch.Tensor]
Log = Callable[[int, dict[str, float]], None]
Watch = Callable[[int], None]
RATE, _PARAMETERS = 4e-4, 5_100_000  # the built-in policy's rate and size
_POOL = 16  # batches whose pairs are sorted by length together


def train_sft(
    policy: Policy,
    pairs: TrainingPairs,
    config: SftConfig,
    folder: Path,
    log: Log = lambda _step, _values: None,
) -> None:
    """Take `config.steps` steps of AdamW on the targets' tokens; resume a checkpoint in `folder`.

    Every batch is a function of (seed, step), so a run that was killed and resumed ends with the
    same weights on the same machine. Raises CecError if the loss is not finite.
    """
    model, rate = policy.model, choose_learning_rate(config, policy)
    if config.gradient_checkpointing:
        # The older name is that of transformers before 5.18.
        newer = "activation_checkpointing_enable"
        getattr(model, newer if hasattr(model, newer) else "gradient_checkpointing_enable")()
        model.enable_input_require_grads()  # so that the gradient reaches an adapter
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=config.weight_decay)

    def batches(steps: range) -> Iterator[Batch]:
        for step in steps:
            chosen = read_batch(pairs, step, config.batch)
            yield collate(policy, chosen[distributed.rank() :: distributed.count_processes()])

    fit(policy, batches, [optimizer], config, folder, lambda n: compute_rate_share(n, config), log)


def choose_learning_rate(config: SftConfig, policy: Policy) -> float:
    """Return the highest rate: as set, or 4e-4 · √(5.1 M / parameters), at most 4e-4.

    The built-in policy has 5.1 M. The rule gives 3.7e-5 for 0.6 B and 7.6e-6 for 14 B parameters.
    """
    if config.learning_rate is not None:
        return config.learning_rate
    return RATE * min(1.0, math.sqrt(_PARAMETERS / policy.model.num_parameters()))


def compute_rate_share(step: int, config: SftConfig) -> float:
    """Return rate / highest rate of a step: a linear warm-up, then a cosine to a tenth.

    >>> [round(compute_rate_share(s, SftConfig(steps=10, warmup=0.2)), 2) for s in (0, 1, 2, 9)]
    [0.5, 1.0, 1.0, 0.13]
    """
    warm = max(1, round(config.warmup * config.steps))
    if step < warm:
        return (step + 1) / warm
    done = (step - warm) / max(1, config.steps - warm)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * done))


def read_batch(pairs: TrainingPairs, step: int, size: int) -> list[Pair]:
    """Return a step's pairs, of similar lengths, from a pool of batches."""
    pool = _sort_pool(pairs, step // _POOL, size * _POOL)
    # Steps take the pool's batches with a stride, so that lengths do not rise from step to step. It
    # is prime to the number of batches, so that each is taken once.
    turn = step % _POOL * 7 % _POOL
    return list(pool[turn * size : (turn + 1) * size])


@lru_cache(maxsize=1)  # steps are in order, so one pool is needed at a time
def _sort_pool(pairs: TrainingPairs, number: int, size: int) -> tuple[Pair, ...]:
    """Return pool `number` of `size` pairs, sorted by the lengths of their sources."""
    pool = pairs.read_batch(number, size)
    # ids are stored as signed numbers, and order as unsigned ones
    return tuple(sorted(pool, key=lambda pair: (len(pair.source), pair.id % 2**64, pair.copy)))


def fit(
    policy: Policy,
    batches: Callable[[range], Iterable[Batch]],
    optimizers: Sequence[torch.optim.Optimizer],
    config: SftConfig,
    folder: Path,
    share: Callable[[int], float],
    log: Log = lambda _step, _values: None,
    watch: Watch = lambda _step: None,
    *,
    max_grad_norm: float = 1.0,
) -> None:
    """Train on the answers' tokens, from the newest whole checkpoint in `folder` or the start.

    `batches` returns this rank's share of the pairs of each of these steps, as `collate` makes it.
    If a batch is a function of the step alone, a run that was killed and resumed ends with the same
    weights on the same machine. Rank 0 writes. `share` is rate / highest rate of a step; `config`
    says all else, but for rates and batches. `watch` is called after each step with the number of
    steps taken. Raises CecError if the loss is not finite, or if the device is out of memory.
    """
    model = policy.model
    first = resume(policy, optimizers, folder)
    rates = [LambdaLR(optimizer, lambda passed: share(first + passed)) for optimizer in optimizers]
    # The faster pass of a Qwen3 on a CPU keeps all activations.
    loss_of = make_loss(policy, config.precision, fast_forward=not config.gradient_checkpointing)
    model.train()
    started, tokens = time.perf_counter(), 0
    steps = range(first, config.steps)
    for step, batch in zip(steps, batches(steps), strict=True):
        done = step + 1
        saves = done % config.save_every == 0 or done == config.steps
        logs = done % config.log_every == 0 or saves  # so that a resume loses no figures
        with explain_memory(_ADVICE):
            loss, count = set_gradient(
                policy, loss_of, batch, config.accumulation, step, check=logs
            )
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
            for optimizer in optimizers:
                optimizer.step()
        tokens += count
        if logs:
            figures = {
                "loss": float(loss),
                "grad_norm": float(norm),
                "training_tokens_per_s": tokens / (time.perf_counter() - started),
                "learning_rate": float(optimizers[0].param_groups[0]["lr"]),
            }
            log(done, figures)
            started, tokens = time.perf_counter(), 0
        for rate in rates:
            rate.step()
        trim_sometimes(done)
        watch(done)  # before the checkpoint, because a run killed in between repeats the step
        if saves:
            if distributed.is_rank0():
                save_state(policy, optimizers, folder, done)
            distributed.wait()


def save_state(
    policy: Policy, optimizers: Sequence[torch.optim.Optimizer], folder: Path, step: int
) -> None:
    """Write a checkpoint of weights and optimizers, in safetensors files only, and keep two."""
    from safetensors.torch import save_file

    moments: dict[str, torch.Tensor] = {}
    for number, optimizer in enumerate(optimizers):
        moments |= name_states(optimizer, str(number))
    weights = {
        name: parameter.detach().cpu().contiguous()
        for name, parameter in policy.model.named_parameters()
    }

    def fill(staged: Path) -> None:
        save_file(moments, staged / "optimizer.safetensors")
        save_file(weights, staged / "model.safetensors")

    checkpoints.save_checkpoint(folder / f"checkpoint-{step}", fill, step)
    checkpoints.remove_older(folder, 2, step)


def resume(policy: Policy, optimizers: Sequence[torch.optim.Optimizer], folder: Path) -> int:
    """Read the newest whole checkpoint and return its step; 0 without one."""
    from safetensors.torch import load_file

    latest = checkpoints.find_newest(folder) if distributed.is_rank0() else None
    newest = distributed.broadcast_from_rank0(latest)
    if newest is None:
        return 0
    checkpoint, step = newest
    # not strict: weights that two layers share are there once
    policy.model.load_state_dict(load_file(checkpoint / "model.safetensors"), strict=False)
    moments = load_file(checkpoint / "optimizer.safetensors")
    for number, optimizer in enumerate(optimizers):
        load_optimizer(optimizer, str(number), moments)
    return step


def set_gradient(
    policy: Policy,
    loss_of: Callable[[Batch], torch.Tensor],
    batch: Batch,
    passes: int,
    step: int,
    *,
    check: bool,
) -> tuple[torch.Tensor, int]:
    """Set the gradients of the mean loss over all answer tokens of a step, on all ranks.

    `batch` has this rank's share of the step's pairs, for `passes` forward and backward passes.
    `loss_of` returns the mean loss of an answer token of its pairs. Return the mean loss, and this
    rank's number of answer tokens. Raises CecError if a loss is not finite, on a GPU only where
    `check` is set, because the GPU must finish its work first.
    """
    model, tokens = policy.model, count_answer_tokens(batch)
    all_tokens = torch.tensor(tokens, device=model.device)
    mean_loss = torch.zeros((), device=model.device)
    distributed.add_up([all_tokens])
    model.zero_grad()
    for part in split_batch(batch, passes):
        loss = loss_of(part)
        if check or model.device.type != "cuda":
            refuse_nan(loss, step)
        share = loss * (count_answer_tokens(part) / all_tokens)
        share.backward()
        mean_loss += share.detach()
    distributed.add_up([mean_loss, *(p.grad for p in model.parameters() if p.grad is not None)])
    return mean_loss, tokens


def split_batch(batch: Batch, passes: int) -> list[Batch]:
    """Return the rows in this many parts, each as `collate` makes it of its pairs alone."""
    size = math.ceil(len(batch["labels"]) / passes)
    columns = (batch[name].split(size) for name in ("labels", "input_ids"))
    parts = []
    for labels, ids in zip(*columns, strict=True):
        width = int((labels != IGNORED).any(0).nonzero().max()) + 1  # an answer ends each row
        parts.append({"input_ids": ids[:, :width], "labels": labels[:, :width]})
    return parts


def count_answer_tokens(batch: Batch) -> int:
    return int((batch["labels"] != IGNORED).sum())


def refuse_nan(loss: torch.Tensor, step: int) -> None:
    """Raise CecError if the loss is not finite."""
    if not bool(torch.isfinite(loss.detach()).all()):
        raise CecError(
            f"step {step}: the loss is {float(loss.detach())}. Lower the learning rate, and train "
            "again with another --out, or replace this run with --overwrite"
        )


def trim_sometimes(step: int) -> bool:
    """Trim glibc's heap at every tenth step; return whether memory went back to the system."""
    try:
        return step % _TRIM_EVERY == 0 and bool(ctypes.CDLL(None).malloc_trim(0))
    except (AttributeError, OSError, TypeError):  # macOS, musl, Windows
        return False


@contextmanager
def explain_memory(advice: str) -> Iterator[None]:
    """Raise CecError, with advice, instead of torch's error if the device is out of memory."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        line = str(error).splitlines()[0]
        raise CecError(
            f"the device is out of memory ({line:.200}): {advice}. Then train again with "
            "another --out, or replace this run with --overwrite"
        ) from error
