"""Install the torch build that fits this machine: without a GPU, one without CUDA packages.

torch stays outside the hashed lock files: which wheel is right depends on the machine.
"""

from __future__ import annotations

import importlib.util
import platform
import shutil
import subprocess
import sys

VERSION = "2.13.0"
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"  # PyTorch's own index of CPU builds


def pip(*arguments: str) -> bool:
    command = [sys.executable, "-m", "pip", "install", "--quiet", *arguments]
    return subprocess.run(command, check=False).returncode == 0


def main() -> int:
    if importlib.util.find_spec("torch") is not None:
        return 0
    if platform.system() != "Linux" or shutil.which("nvidia-smi"):
        return 0 if pip(f"torch=={VERSION}") else 1
    if pip(f"torch=={VERSION}+cpu"):  # a CPU wheel that pip already knows where to find
        return 0
    return 0 if pip(f"torch=={VERSION}", "--extra-index-url", CPU_WHEELS) else 1


if __name__ == "__main__":
    sys.exit(main())
