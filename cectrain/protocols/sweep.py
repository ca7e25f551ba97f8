"""Sweeps: τ × β (paper tab:threshold_sweep) and the prior of homophones (fig:pi_sweep)."""

from __future__ import annotations

from collections.abc import Sequence

from cecbench.report.figures import curves
from cectrain.protocols.ablation import given
from cectrain.protocols.study import AVERAGE, Row, Study, Variant, point_of

TAUS = (0.60, 0.65, 0.70, 0.75, 0.80)
BETAS = (0.70, 0.75, 0.80)
#: the six cells that the paper prints
PRINTED = ((0.60, 0.70), (0.70, 0.70), (0.65, 0.75), (0.70, 0.75), (0.75, 0.80), (0.80, 0.80))
ALPHA = 0.5  # the paper's; with the small recipe's 1 no reward would depend on β
PRIORS = (0.10, 0.15, 0.20, 0.25, 0.30, 0.35, 0.40)


def thresholds(seeds: Sequence[int], benchmarks: Sequence[str], *, full: bool) -> Study:
    """τ × β: the paper's six cells, or the whole grid of its values."""
    cells = [(t, b) for t in TAUS for b in BETAS] if full else list(PRINTED)
    variants = tuple(
        Variant(
            f"τ {tau:.2f}, β {beta:.2f}",
            given(ALPHA, tau, beta),
            (f"{tau:.2f}", f"{beta:.2f}"),
        )
        for tau, beta in cells
    )
    words = (f"α is {ALPHA} throughout, the paper's; α* moves with τ and β.",)
    return Study("thresholds", "Thresholds of the reward", variants, tuple(seeds), ("τ", "β"),
                 tuple(benchmarks), words)  # fmt: skip


def priors(seeds: Sequence[int], benchmarks: Sequence[str]) -> Study:
    """π_hom from 0.10 to 0.40, the other operators equal; sources are corrupted anew each epoch."""
    variants = tuple(
        Variant(f"{prior:.2f}", ("data.fresh=true", f"data.homophone={prior}")) for prior in PRIORS
    )
    words = ("Held-out pairs are those of the build, whatever the prior of training.",)
    return Study("prior", "Prior of homophones", variants, tuple(seeds), ("π homophone",),
                 tuple(benchmarks), words)  # fmt: skip


def prior_figure(rows: Sequence[Row]) -> str:
    """Score over prior, a whisker of one deviation over the seeds."""
    labels = [row.variant.label for row in rows]
    series = {
        name: {row.variant.label: point_of(row, name) for row in rows if name in row.values}
        for name in ("exact", AVERAGE)
    }
    return curves("Score over π homophone, %", labels, {n: p for n, p in series.items() if p})
