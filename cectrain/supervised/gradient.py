"""The gradient of one step, in as many passes as fit into memory, on one rank or several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.common.errors import CecError
from cectrain.corrector.policy import Policy
from cectrain.fast.parts import Parts
from cectrain.run import distributed
from cectrain.supervised.loss import IGNORED

if TYPE_CHECKING:
    import torch

    Batch = dict[str, torch.Tensor]


_ADVICE = "lower policy.max_chars, or set sft.gradient_checkpointing=true or policy.lora_rank"


@dataclass(slots=True)
class Gradient:
    """Sets the gradients of the mean loss over all answer tokens of a step, on all ranks.

    `passes` is the number of forward and backward passes on this rank. It doubles when the device
    runs out of memory, and `log` says so; the sum over passes is the same.
    """

    policy: Policy
    loss_of: Callable[[Batch], torch.Tensor]
    passes: int
    folder: Path  # gets a batch whose loss is not finite
    log: Callable[[str], None]
    _parts: Parts = field(init=False)

    def __post_init__(self) -> None:
        self._parts = Parts("pairs", _ADVICE, self.log, self.passes)

    def set(self, batch: Batch, step: int, *, check: bool) -> tuple[torch.Tensor, int]:
        """Set all gradients; return the mean loss, and this rank's number of answer tokens.

        `batch` has this rank's share of the step's pairs. `check`: raise CecError if a loss is not
        finite, for which a GPU must finish its work first.
        """
        tokens = answer_tokens(batch)
        total = distributed.total(tokens)

        def work(count: int) -> torch.Tensor:
            return self._backward(split(batch, count), total, step if check else None)

        rows, clear = len(batch["labels"]), self.policy.model.zero_grad
        loss = self._parts.run(work, rows, f"step {step}", clear)
        gradients = [p.grad for p in self.policy.model.parameters() if p.grad is not None]
        distributed.add([loss, *gradients])
        return loss, tokens

    def _backward(self, batches: Sequence[Batch], total: int, checked: int | None) -> torch.Tensor:
        """Return this rank's part of the mean loss."""
        import torch

        self.policy.model.zero_grad()
        whole = torch.zeros((), device=self.policy.model.device)
        for batch in batches:
            loss = self.loss_of(batch)
            if checked is not None:
                refuse_nan(loss, batch, self.folder, checked)
            part = loss * (answer_tokens(batch) / total)
            part.backward()
            whole += part.detach()
        return whole


def split(batch: Batch, passes: int) -> list[Batch]:
    """Return the rows in this many parts, each as `collate` makes it of its pairs alone."""
    size = -(-len(batch["labels"]) // passes)
    parts = []
    for labels, ids in zip(
        batch["labels"].split(size), batch["input_ids"].split(size), strict=True
    ):
        width = int((labels != IGNORED).any(0).nonzero().max()) + 1  # an answer ends each row
        parts.append({"input_ids": ids[:, :width], "labels": labels[:, :width]})
    return parts


def answer_tokens(batch: Batch) -> int:
    """Return the number of tokens of a batch that have a loss."""
    return int((batch["labels"] != IGNORED).sum())


def refuse_nan(loss: torch.Tensor, batch: Mapping[str, object], folder: Path, step: int) -> None:
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
