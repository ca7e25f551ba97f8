"""Names from outside, checked before they become paths.

Manifests, journals, listings of stores and JSON name files by relative paths with slashes. Whoever
wrote them may have wanted a file elsewhere: every such name passes through here.
"""

from __future__ import annotations

import re
from pathlib import Path

_DRIVE = re.compile(r"[A-Za-z]:")


def inside(name: str) -> str:
    """Return a relative name with slashes; raise ValueError for one that could lead elsewhere.

    >>> inside("data/train-00000.parquet")
    'data/train-00000.parquet'
    """
    parts = name.split("/")
    if "\0" in name:
        raise ValueError(f"the name {name!r} has a NUL, which no file name may have")
    if name.startswith("/") or ".." in parts or "\\" in name or _DRIVE.match(name):
        raise ValueError(f"the name {name!r} leads out of its folder")
    if "" in parts or "." in parts:
        raise ValueError(f"the name {name!r} leads out of its folder: it has an empty part")
    return name


def below(root: Path, name: str) -> Path:
    """Return the path of a name below a folder; raise ValueError where a part of it is a link."""
    path = root
    for part in inside(name).split("/"):
        path /= part
        if path.is_symlink():
            raise ValueError(f"{path} is a link, which could lead out of {root}")
    return path
