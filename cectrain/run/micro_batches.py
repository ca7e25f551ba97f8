"""The gradient of an optimizer step of PPO, in as many passes as fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cecdata.common.errors import CecError
from cectrain.config import PpoConfig
from cectrain.fast.parts import Parts

if TYPE_CHECKING:
    import torch

Batch = Mapping[str, Any]
#: loss types of TRL that are means over rows, so that parts of a batch add up
_MEANS_OVER_ROWS = ("grpo", "dr_grpo", "sapo", "luspo")
_ADVICE = "lower policy.max_chars, or set ppo.gradient_checkpointing=true or policy.lora_rank"


class MicroBatches:
    """Adds the gradients of the micro-batches of optimizer steps.

    If the device runs out of memory, the gradients of the step are computed anew, in twice as many
    passes, and `log` says so. The sum is the same.
    """

    def __init__(
        self, ppo: PpoConfig, loss_type: str, processes: int, log: Callable[[str], None]
    ) -> None:
        self._parts = Parts("candidates", _ADVICE, log)
        self._divides = loss_type in _MEANS_OVER_ROWS and ppo.entropy == 0 and processes == 1
        self._advice = f"set ppo.accumulation = {2 * ppo.accumulation} in another --out"

    def add(
        self,
        step: Sequence[Batch],
        add_part: Callable[[Batch, float], torch.Tensor],
        end: Callable[[int], None],
        clear: Callable[[], None],
        number: int,
    ) -> torch.Tensor:
        """Add the gradient of the last micro-batch of `step`; return its loss.

        `step` has the step's micro-batches up to this one, whose gradients are added already.
        `add_part` adds the gradient of a batch, times a share, and returns the loss times it. `end`
        is called after the micro-batch with the number of passes. `clear` drops all gradients.
        Raises CecError if memory is full and the loss of parts does not add up: several processes,
        an entropy bonus, a mean over tokens.
        """
        rows = len(step[-1]["advantages"])
        due = step[-1:]  # of the first try; afterwards the gradients of all were dropped

        def work(count: int) -> torch.Tensor:
            losses = [_sum(add_part, batch, count) for batch in due]
            end(count)
            return losses[-1]

        def undo() -> None:
            nonlocal due
            if not self._divides:
                raise CecError(
                    f"step {number}: the device is out of memory, and a batch of several "
                    f"processes, or with this loss, cannot be divided: {self._advice}"
                )
            clear()
            due = step

        return self._parts.run(work, rows, f"step {number}", undo)

    def without_gradient(
        self, work: Callable[[int], torch.Tensor], rows: int, number: int
    ) -> torch.Tensor:
        """Return `work(rows a pass)`, first with `rows`, then with fewer until they fit."""

        def in_passes(count: int) -> torch.Tensor:
            return work(-(-rows // count))

        return self._parts.run(in_passes, rows, f"step {number}", lambda: None)


def _sum(
    add_part: Callable[[Batch, float], torch.Tensor], batch: Batch, count: int
) -> torch.Tensor:
    """Add the gradient of a batch in `count` parts, and return its loss."""
    rows = len(batch["advantages"])
    if count == 1:
        return add_part(batch, 1.0)
    size = -(-rows // count)
    parts = [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
    losses = [add_part(_rows(batch, one, rows), (one.stop - one.start) / rows) for one in parts]
    return sum(losses[1:], losses[0])


def _rows(batch: Batch, chosen: slice, total: int) -> dict[str, Any]:
    return {
        name: value[chosen] if getattr(value, "ndim", 0) and len(value) == total else value
        for name, value in batch.items()
    }
