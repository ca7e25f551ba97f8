"""Remove rows without gradient from a batch, and merge rows of equal candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_GIVEN = ("prompt_ids", "prompt_mask")
_WRITTEN = (
    "completion_ids",
    "completion_mask",
    "old_per_token_logps",
    "sampling_per_token_logps",
)
_TINY = 1e-6  # smaller advantages are rounding errors of 0


def drop_zero_advantages(out: Mapping[str, object], passes: int) -> dict[str, object]:
    """Return a batch of fewer rows with the same gradient.

    A candidate with advantage 0 has no gradient, and equal candidates of one source have equal
    gradients: they become one row with the sum of their advantages. The loss is a mean over rows,
    so advantages are scaled by rows kept / all rows. The number of rows stays a multiple of
    `passes`, if necessary with rows of advantage 0. Columns of padding are removed. This is exact
    for the clipped objective.
    """
    import torch

    weights = out["advantages"]
    assert isinstance(weights, torch.Tensor)
    total = len(weights)
    chosen, summed = _merged(out, weights)
    short = -len(chosen) % passes if chosen else passes
    spare = sorted(set(range(total)) - set(chosen))[:short]
    rows = torch.tensor([*chosen, *spare], device=weights.device)
    kept: dict[str, object] = {
        name: value[rows] if isinstance(value, torch.Tensor) and _is_row(value, total) else value
        for name, value in out.items()
    }
    values = torch.tensor([*summed, *[0.0] * len(spare)], device=weights.device)
    kept["advantages"] = (values * (len(rows) / total)).to(weights)
    return _trimmed(kept)


def _merged(out: Mapping[str, object], weights: torch.Tensor) -> tuple[list[int], list[float]]:
    """Return the first rows of equal candidates and the sums of their advantages, without 0."""
    import torch

    tokens = torch.cat([out["prompt_ids"], out["completion_ids"]], dim=1)
    sums: dict[tuple[bytes, bool], float] = {}
    first: dict[tuple[bytes, bool], int] = {}
    for row, (line, weight) in enumerate(zip(tokens.cpu().numpy(), weights.tolist(), strict=True)):
        if abs(weight) < _TINY:
            continue
        # By sign: the clip takes the smaller of two products, and only equal signs add up.
        key = (line.tobytes(), weight > 0)
        first.setdefault(key, row)
        sums[key] = sums.get(key, 0.0) + weight
    return list(first.values()), list(sums.values())


def _trimmed(kept: dict[str, object]) -> dict[str, object]:
    """Return the batch without columns of padding: left of prompts, right of completions."""
    given, written = kept["prompt_mask"], kept["completion_mask"]
    before = int((given.sum(dim=0) > 0).long().argmax())  # type: ignore[attr-defined]
    after = int(written.sum(dim=1).max())  # type: ignore[attr-defined]
    for name in _GIVEN:
        kept[name] = kept[name][:, before:]  # type: ignore[index]
    for name in _WRITTEN:
        if kept.get(name) is not None:
            kept[name] = kept[name][:, :after]  # type: ignore[index]
    return kept


def _is_row(value: torch.Tensor, total: int) -> bool:
    return value.ndim > 0 and len(value) == total
