"""The identity of a run: a readable file, and its SHA-256 as the first entry of the journal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from cecdata.common.codec import parse
from cecdata.common.durable.files import FileRecord, naming, sha256_of
from cecdata.common.durable.journal import Journal
from cecdata.common.errors import RefusedError

FILE = "fingerprint.json"
BOUND = "bound"  # the step of the entry with the SHA-256
_SHOWN = 12  # differences in a message


def dumps(identity: Mapping[str, object]) -> bytes:
    """Return the bytes of the file."""
    text = json.dumps(identity, ensure_ascii=False, indent=1, sort_keys=True)
    return (text + "\n").encode()


def named(path: Path) -> object:
    """Return the value in the file; None where it is missing or not JSON."""
    with naming(path):
        text = path.read_bytes() if path.exists() else b""
    try:
        return parse(text)
    except ValueError:
        return None


def bind(journal: Journal, record: FileRecord) -> None:
    """Record the SHA-256 of the file in the journal: neither is used without the other."""
    bound = journal.get(BOUND, FILE)
    if bound is None or bound.facts != {"sha256": record.sha256}:
        journal.record(BOUND, FILE, sha256=record.sha256)


def refuse_another(
    root: Path, journal: Journal, path: Path, identity: Mapping[str, object]
) -> None:
    """Raise RefusedError unless the run in `root` was begun with this identity."""
    bound, saved = journal.get(BOUND, FILE), named(path)
    if not path.exists():
        what = f"{path} is missing"
    elif bound is None:
        what = f"{journal.path} does not name its {FILE}: its first line is damaged"
    elif sha256_of(path).sha256 != bound.facts.get("sha256") or not isinstance(saved, dict):
        what = f"{path} is damaged or was edited"
    elif saved != identity:
        changes = differences(saved, identity)
        lines = "".join(f"\n  {line}" for line in changes[:_SHOWN])
        more = f"\n  … and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
        raise RefusedError(
            f"{root} holds a run with another configuration:{lines}{more}\n"
            "Choose another output folder, or --overwrite to replace it."
        )
    else:
        return
    raise RefusedError(
        f"{what}. The configuration of the files there is therefore unknown, and they must not be "
        f"mixed with others: remove the folder {root}, or choose another output folder."
    )


def differences(was: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """Return the differences, one line for each key.

    >>> differences({"seed": 42, "prior": {"noise": 0.2}}, {"seed": 7, "prior": {"noise": 0.2}})
    ['seed: 42 → 7']
    """
    old, new = dict(_flat(was, "")), dict(_flat(now, ""))
    keys = [*old, *(key for key in new if key not in old)]
    return [
        f"{key}: {old.get(key, '(not set)')} → {new.get(key, '(not set)')}"
        for key in keys
        if (key in old) != (key in new) or old.get(key) != new.get(key)
    ]


def _flat(value: object, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value):
            yield from _flat(inner, f"{name}[{place}]")
    else:
        yield name, json.dumps(value, ensure_ascii=False)
