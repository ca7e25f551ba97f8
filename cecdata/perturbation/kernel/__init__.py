"""The numba kernels; `main` ★ is where to start reading."""

from cecdata.perturbation.kernel.main import perturb, position_histogram, sample_words

__all__ = ["perturb", "position_histogram", "sample_words"]
