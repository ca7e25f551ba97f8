"""A configuration as a recipe file that `--recipe` takes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields

from cecdata.common.codec import Json
from cecdata.config import Config, load


def recipe_text(config: Config, notes: Sequence[str] = ()) -> str:
    """Return the settings that differ from the recipe `paper` as TOML, with notes as comments.

    >>> from cecdata.config import load
    >>> print(recipe_text(load("paper", copies=8), ["Eight copies."]).split("[")[0].strip())
    # Eight copies.
    copies = 8
    """
    usual, own = load().as_dict(), config.as_dict()
    lines = [f"# {note}" for note in notes]
    for item in fields(Config):
        value = own[item.name]
        if not isinstance(value, Mapping) and value != usual[item.name] and value is not None:
            lines.append(f"{item.name} = {_value(value)}")
    for item in fields(Config):
        value = own[item.name]
        if isinstance(value, Mapping):
            lines += _table(item.name, value)
    return "\n".join(lines) + "\n"


def _table(name: str, table: Mapping[str, Json]) -> list[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    lines = ["", f"[{name}]", *(f"{key} = {_value(part)}" for key, part in plain.items())]
    nested = [
        line
        for key, value in table.items()
        if isinstance(value, Mapping)
        for line in _table(f"{name}.{key}", value)
    ]
    return (lines if plain else []) + nested


def _value(value: Json) -> str:
    """Return the TOML of a scalar or list, which is its JSON apart from one escape."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
