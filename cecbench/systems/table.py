"""The one table of systems, and how `--system KIND:ARGUMENT` names one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cecbench.systems import api, channel, combined, copying, llm, policy, predictions, tagger
from cecbench.systems.answer import System
from cecbench.systems.kind import Context, Kind
from cecdata.common.errors import UsageError, did_you_mean

#: A further kind is one new file and one entry here.
KINDS: tuple[Kind[Any], ...] = (
    copying.KIND,
    predictions.KIND,
    tagger.KIND,
    llm.KIND,
    api.KIND,
    policy.KIND,
    policy.BUILTIN_KIND,
    channel.KIND,
    combined.KIND,
)
SYSTEMS = {kind.name: kind for kind in KINDS}


def check_spec(spec: str) -> tuple[Kind[Any], str]:
    """Return the kind and the argument of a spec.

    Raises UsageError for an unknown kind, for a missing argument, and for an address with a user or
    a password, which the message does not repeat.

    >>> kind, argument = check_spec("api:qwen3@http://127.0.0.1:8000/v1")
    >>> kind.name, argument
    ('api', 'qwen3@http://127.0.0.1:8000/v1')
    """
    name, colon, argument = spec.partition(":")
    if name not in SYSTEMS:
        raise UsageError(f"no kind of system {name!r}: {did_you_mean(name, list(SYSTEMS))}")
    kind = SYSTEMS[name]
    if ":" not in kind.form:
        if colon:
            raise UsageError(f"--system {name} takes nothing after the name")
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
    kind, argument = check_spec(spec)
    options = options or {}
    for name in options:
        if name not in kind.takes:
            takers = [other.name for other in KINDS if name in other.takes]
            flag = "--" + name.replace("_", "-")
            whose = f"an option of {' and '.join(takers)}" if takers else "unknown"
            raise UsageError(f"{flag} is {whose}: --system {kind.name} does not take it")
    return kind.make(argument, kind.options(**options), context or Context())
