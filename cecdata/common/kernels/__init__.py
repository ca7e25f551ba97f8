"""Parts that the numba kernels of all packages share: compilation, mixing of bits, UTF-8."""
