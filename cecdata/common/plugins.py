"""Plug-ins: what installed packages add to a table by entry points, and objects of a module that a
user names.
"""

from __future__ import annotations

import sys
import traceback
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, packages_distributions, version
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from cecdata.common.durable import sha256_of
from cecdata.common.errors import UsageError

Entry = TypeVar("Entry")
_OURS = {"cecdata", "cecbench", "cectrain"}
_loaded: set[str] = set()  # packages that plug-ins were loaded from
find_packages = cache(packages_distributions)  # which reads a file of each package


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
    _loaded.add(point.module.partition(".")[0])
    try:
        entry = point.load()
    except Exception as error:  # another package may raise anything
        raise UsageError(
            f"{origin} cannot be loaded ({type(error).__name__}: {error}): update or uninstall "
            "that package"
        ) from error
    if not isinstance(entry, kind) or getattr(entry, "name", "") != point.name:
        raise UsageError(
            f"{origin}: {point.value} is not a {kind.__name__} of this name (see "
            f"{kind.__module__}): update or uninstall that package"
        )
    return entry


@cache
def import_object(name: str, what: str) -> Any:
    """Import the object "module:name", also from the working directory.

    `what` is its name in messages. Raises UsageError if it has another form or cannot be imported.
    """
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise UsageError(f'{what} {name!r}: must be "module:name", as in "mine.errors:SHORT"')
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    _loaded.add(module.partition(".")[0])
    try:
        return attrgetter(attribute)(import_module(module))
    except Exception as error:  # an imported module may raise anything
        raise UsageError(
            f"{what} {name!r} cannot be imported ({type(error).__name__}: {error}): install the "
            "package, or start the command in the folder of the module"
        ) from error


def find_culprit(error: BaseException) -> str:
    """Return the module and line of the plug-in that an error came through, or ""."""
    names = _loaded - _OURS
    places = [
        f"{name}, line {line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if (name := str(frame.f_globals.get("__name__"))).partition(".")[0] in names
    ]
    return places[-1] if places else ""


def hash_module_file(name: str) -> str:
    """Return the SHA-256 of the file of the module in "module:name"; empty where it has none."""
    import_object(name, "module")
    path = Path(getattr(sys.modules[name.partition(":")[0]], "__file__", None) or "")
    return sha256_of(path).sha256 if path.is_file() else ""


def identify_release(name: str) -> str:
    """Return the version of the package of "module:name", and the SHA-256 of its source."""
    digest = hash_module_file(name)
    packages = find_packages().get(name.partition(":")[0].partition(".")[0], ())
    return ", ".join([*map(version, packages), f"sha256:{digest}"])
