"""Parts that the numba kernels of all packages share: compiling, reading UTF-8, mixing bits."""
