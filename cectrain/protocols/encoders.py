"""Encoder study (paper tab:embed, fig:embed_corr): the reward's encoder, and human ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cecbench.report.figures import Point, bars
from cecdata.common.errors import InputError
from cectrain.protocols.study import Row, Study, Variant, bars_of, short_names

#: the paper's six (one of them a reranker; docs/paper.md row 20)
ENCODERS = (
    "google-bert/bert-base-chinese", "thenlper/gte-large-zh", "BAAI/bge-reranker-large",
    "moka-ai/m3e-large", "BAAI/bge-large-zh-v1.5", "infgrad/stella-large-zh-v3-1792d",
)  # fmt: skip


def encoders(names: Sequence[str], seeds: Sequence[int], benchmarks: Sequence[str]) -> Study:
    """One variant an encoder; the constants are calibrated to each, as cosines differ in scale."""
    variants = tuple(
        Variant(short, (f'encoder="{name}"', 'constants="calibrated"'))
        for name, short in zip(names, short_names(names), strict=True)
    )
    return Study("encoders", "Encoder of the reward", variants, tuple(seeds), ("encoder",),
                 tuple(benchmarks))  # fmt: skip


def with_ratings(study: Study, names: Sequence[str], path: Path) -> Study:
    """The study with Pearson's r between cosine and human similarity before each run's scores."""
    from cecdata.embed import encoder

    first, second, given = ratings(path)
    found = []
    for name, variant in zip(names, study.variants, strict=True):
        model = encoder(name)
        pairs = zip(model.encode(first), model.encode(second), strict=True)
        cosines = [float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))) for a, b in pairs]
        cells = (variant.label, f"{pearson(cosines, given):.3f}")
        found.append(replace(variant, cells=cells))
    return replace(study, variants=tuple(found), heads=("encoder", f"r ({len(given)} ratings)"))


def correlation_figure(rows: Sequence[Row]) -> str:
    """Pearson's r of each encoder (paper fig:embed_corr) above the held-out rates."""
    found = {row.variant.label: Point(100 * float(row.variant.cells[1])) for row in rows}
    drawn = bars("Pearson's r with human ratings, × 100", list(found), {"r": found})
    return drawn + bars_of(rows)


def ratings(path: Path) -> tuple[list[str], list[str], list[float]]:
    """Inputs, outputs and similarities, 0 to 1, of a TSV file of three columns without a head.

    Raises InputError naming the line.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); give a UTF-8 TSV file") from error
    first, second, given = [], [], []
    for number, line in enumerate(lines, 1):
        parts = line.split("\t")
        try:
            one, other, score = parts
            value = float(score)
        except ValueError:
            raise InputError(
                f"{path}, line {number}: input, output and a similarity from 0 to 1, with tabs "
                "between, are wanted"
            ) from None
        if not 0 <= value <= 1:
            raise InputError(f"{path}, line {number}: similarity {value}: 0 to 1 is wanted")
        first.append(one)
        second.append(other)
        given.append(value)
    if len(given) < 3:
        raise InputError(f"{path}: {len(given)} ratings; at least 3 are needed for a correlation")
    return first, second, given


def pearson(one: Sequence[float], other: Sequence[float]) -> float:
    """Pearson's r; 0 where either does not vary.

    >>> round(pearson([0.0, 0.5, 1.0], [0.1, 0.2, 0.3]), 6)
    1.0
    """
    a, b = np.asarray(one) - np.mean(one), np.asarray(other) - np.mean(other)
    scale = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / scale if scale > 0 else 0.0
