"""Training of a Chinese spelling corrector by PPO with the cluster-consensus reward, and the
corrector itself: `cectrain.Corrector`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cectrain.corrector.corrector import Corrector

__all__ = ["Corrector"]


def __getattr__(name: str) -> object:
    """Import the public names when they are first used: `import cectrain` loads nothing."""
    if name == "Corrector":
        from cectrain.corrector.corrector import Corrector

        return Corrector
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
