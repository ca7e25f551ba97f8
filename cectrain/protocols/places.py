"""Where the workers of a protocol run: their cores and their GPU."""

from __future__ import annotations

import os

from cecdata.common.cores import usable_cores


def places(workers: int) -> list[dict[str, str]]:
    """Return the environment of each worker: its share of the cores, and one GPU if there are any.

    Workers in excess of the GPUs share them. $CUDA_VISIBLE_DEVICES limits which are used.
    """
    import torch

    threads = str(max(1, usable_cores() // max(1, workers)))
    limits = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    count = torch.cuda.device_count()
    named = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(count)))
    gpus = named.split(",")[:count]
    return [
        limits | ({"CUDA_VISIBLE_DEVICES": gpus[k % len(gpus)]} if gpus else {})
        for k in range(max(1, workers))
    ]
