"""Clean Chinese text in, validated (source, target) training pairs out.

The common calls are here; they are imported on first use, so that `import cecdata` loads nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cecdata.common.machine import __version__ as __version__

if TYPE_CHECKING:
    from cecdata.frames import build, perturb, scan

__all__ = ["build", "perturb", "scan"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("cecdata.frames"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
