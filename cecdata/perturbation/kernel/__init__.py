"""The numba kernels; `main` ★ is where to start reading."""

from __future__ import annotations

from cecdata.perturbation.kernel.main import perturb, position_histogram, sample_words

__all__ = ["perturb", "position_histogram", "sample_words"]
