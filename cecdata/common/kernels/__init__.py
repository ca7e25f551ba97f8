"""Parts that the numba kernels of all packages share: compilation, UTF-8, mixing of bits."""
