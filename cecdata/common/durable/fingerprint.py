"""What a run was begun with: a file to read, and its SHA-256 as the journal's first entry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from cecdata.common.durable.files import FileRecord, naming, sha256_of
from cecdata.common.durable.journal import Journal
from cecdata.common.errors import RefusedError
from cecdata.common.strict_json import parse

FILE = "fingerprint.json"
BOUND = "bound"  # the step of the entry that holds the SHA-256


def dumps(identity: Mapping[str, object]) -> bytes:
    """The bytes of the file."""
    text = json.dumps(identity, ensure_ascii=False, indent=1, sort_keys=True)
    return (text + "\n").encode()


def named(path: Path) -> object:
    """What the file says; None where it says nothing."""
    with naming(path):
        text = path.read_bytes() if path.exists() else b""
    try:
        return parse(text)
    except ValueError:
        return None


def bind(journal: Journal, record: FileRecord) -> None:
    """Let the journal begin with the SHA-256 of the file: neither goes on without the other."""
    bound = journal.get(BOUND, FILE)
    if bound is None or bound.facts != {"sha256": record.sha256}:
        journal.record(BOUND, FILE, sha256=record.sha256)


def refuse_another(
    root: Path, journal: Journal, path: Path, identity: Mapping[str, object]
) -> None:
    """RefusedError unless what lies in `root` was begun with this very identity."""
    bound, saved = journal.get(BOUND, FILE), named(path)
    if not path.exists():
        what = f"{path} is gone"
    elif bound is None:
        what = (
            f"{journal.path} does not name its {FILE}: its first line is damaged, or an earlier "
            "version began it"
        )
    elif sha256_of(path).sha256 != bound.facts.get("sha256") or not isinstance(saved, dict):
        what = f"{path} is damaged or edited: it is not the one that the run began with"
    elif saved != identity:
        told = "\n".join(f"  {line}" for line in differences(saved, identity))
        raise RefusedError(
            f"{root} holds a run with another configuration:\n{told}\n"
            "Choose another output folder, or --overwrite to replace it."
        )
    else:
        return
    raise RefusedError(
        f"{what}. Which configuration made what lies here cannot be told, and another one must not "
        f"be mixed with it: remove the folder {root}, all of it, or choose another output folder."
    )


def differences(was: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """What differs, one readable line a key.

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
