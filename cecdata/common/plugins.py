"""Plug-ins: what installed packages add to a table by entry points."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, TypeVar

from cecdata.common.errors import UsageError


class Named(Protocol):
    """An entry of a table."""

    @property
    def name(self) -> str:
        """The name by which a user asks for it."""
        ...


Entry = TypeVar("Entry", bound=Named)


@cache
def find_points(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name."""
    return {point.name: point for point in entry_points(group=group)}


def load_point(point: EntryPoint, kind: type[Entry], what: str) -> Entry:
    """Return the object that an entry point leads to; `what` is its name in messages.

    Raises UsageError where it cannot be loaded, or is not a `kind` of the point's name.
    """
    package = point.dist.name if point.dist else point.value
    origin = f"{what} {point.name} of the package {package}"
    try:
        entry = point.load()
    except Exception as error:  # another package may raise anything
        raise UsageError(
            f"{origin} cannot be loaded ({type(error).__name__}: {error}): update or uninstall "
            "that package"
        ) from error
    if not isinstance(entry, kind) or entry.name != point.name:
        raise UsageError(
            f"{origin}: {point.value} is not a {kind.__name__} of this name (see "
            f"{kind.__module__}): update or uninstall that package"
        )
    return entry
