"""Scaling (paper tab:scaling_table): backbones, each supervised and by reward."""

from __future__ import annotations

from collections.abc import Sequence

from cecbench.report.figures import Point, curves
from cecdata.common.errors import UsageError
from cectrain.protocols.study import AVERAGE, Row, Study, Variant, bars_of, point_of, short_names

#: the paper's, with the sizes that exist (docs/paper.md row 21)
BACKBONES = (
    "Qwen/Qwen3-0.6B", "Qwen/Qwen3-1.7B", "Qwen/Qwen3-8B", "Qwen/Qwen3-14B", "Qwen/Qwen3-32B",
)  # fmt: skip


def scaling(
    backbones: Sequence[str], sft_steps: int, seeds: Sequence[int], benchmarks: Sequence[str]
) -> Study:
    """Two rows a backbone: supervised steps alone, and PPO from the backbone as the recipe says."""
    if sft_steps < 1:
        raise UsageError("--sft-steps: at least 1 for the supervised rows")
    variants = []
    for name, short in zip(backbones, short_names(backbones), strict=True):
        policy = f'policy.name="{name}"'
        supervised = (policy, f"sft.steps={sft_steps}", "ppo.updates=0")
        variants.append(Variant(f"{short} SFT", supervised, (short, "SFT")))
        variants.append(Variant(f"{short} RL", (policy,), (short, "RL")))
    return Study("scaling", "Backbones, supervised and by reward", tuple(variants), tuple(seeds),
                 ("backbone", "training"), tuple(benchmarks))  # fmt: skip


def size_figure(rows: Sequence[Row], benchmarks: Sequence[str]) -> str:
    """Score over the policy's parameters, one line a kind of training (paper fig:scaling).

    The benchmarks' F1, their average where there are several; without any the held-out exact rate.
    Bars where sizes cannot tell backbones apart.
    """
    column = AVERAGE if len(benchmarks) > 1 else next(iter(benchmarks), "exact")
    series: dict[str, dict[str, Point]] = {}
    for row in rows:
        if row.parameters is None or column not in row.values:
            return bars_of(rows)
        points = series.setdefault(row.variant.cells[1], {})
        label = f"{row.parameters / 1e9:.3g}"
        if label in points:
            return bars_of(rows)
        points[label] = point_of(row, column)
    labels = sorted({label for points in series.values() for label in points}, key=float)
    head = "Held-out exact, %" if column == "exact" else f"F1, {column}"
    return curves(f"{head}, by size of the backbone", labels, series, unit="B", logarithmic=True)
