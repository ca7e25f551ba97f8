"""The systems by name: those of this package, and those that installed packages add.

A package adds a kind of system by an entry point of the group `cecbench.systems`, which is called
as the kind is and leads to its `Kind`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from cecbench.systems import api, local, predictions
from cecbench.systems.base import Context, Kind, System
from cecdata.common.errors import UsageError, did_you_mean
from cecdata.common.plugins import find_points, load_point
from cecdata.common.progress import print_lines

GROUP = "cecbench.systems"
BUILT_IN: tuple[Kind[Any], ...] = (
    predictions.COPY,
    predictions.KIND,
    local.TAGGER,
    local.LLM,
    api.KIND,
)


@cache
def list_kinds() -> tuple[Kind[Any], ...]:
    """Return every kind of system that loads: the built-in ones, then those of packages by name.

    Warn of the others.
    """
    found = list(BUILT_IN)
    for name in sorted(find_points(GROUP).keys() - {kind.name for kind in BUILT_IN}):
        try:
            found.append(find_kind(name))
        except UsageError as error:
            print_lines(f"Warning: {error}")
    return tuple(found)


def find_kind(name: str) -> Kind[Any]:
    """Return a kind by name; raise UsageError for an unknown one, or one that does not load."""
    for kind in BUILT_IN:
        if kind.name == name:
            return kind
    points = find_points(GROUP)
    if name not in points:
        names = [kind.name for kind in BUILT_IN] + sorted(points)
        raise UsageError(f"no system {name!r}: {did_you_mean(name, names)}; see `cecbench list`")
    return load_point(points[name], Kind, "--system")


def parse_spec(spec: str) -> tuple[Kind[Any], str]:
    """Return the kind and the argument of a spec.

    Raises UsageError for an unknown kind, for a missing argument, and for an address with a user or
    a password, which the message does not repeat.
    """
    name, colon, argument = spec.partition(":")
    kind = find_kind(name)
    if ":" not in kind.form:
        if colon:
            raise UsageError(f"--system {name} takes nothing after the name: see `cecbench list`")
    elif not argument:
        raise UsageError(f"--system {name} needs an argument: {kind.form}")
    else:
        kind.refuse(argument)
    return kind, argument


def make_system(
    spec: str, options: Mapping[str, object] | None = None, context: Context | None = None
) -> System:
    """Return the system of a spec such as `copy`.

    Raises UsageError for an option that the kind does not take.
    """
    kind, argument = parse_spec(spec)
    options = options or {}
    for name in options:
        if name not in kind.takes:
            takers = [taker.name for taker in list_kinds() if name in taker.takes]
            flag = "--" + name.replace("_", "-")
            whose = f"an option of {' and '.join(takers)}" if takers else "unknown"
            raise UsageError(f"{flag} is {whose}: --system {kind.name} does not take it")
    return kind.make(argument, kind.options(**options), context or Context())
