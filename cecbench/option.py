"""Options that a system or a scorer declares as the fields of a dataclass of its own."""

from __future__ import annotations

from dataclasses import field
from typing import TypeVar

Value = TypeVar("Value")


def option(default: Value, meaning: str, **settings: object) -> Value:
    """Return a dataclass field with a default, its help, and further settings of click's Option."""
    return field(default=default, metadata={"help": meaning, **settings})
