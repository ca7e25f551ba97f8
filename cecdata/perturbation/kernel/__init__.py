"""The numba kernels; `main` ★ is where to start reading."""

from cecdata.perturbation.kernel.main import add_to_histogram, perturb, sample_words

__all__ = ["add_to_histogram", "perturb", "sample_words"]
