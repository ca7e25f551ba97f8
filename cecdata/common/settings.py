"""Settings: recipes in TOML, the dataclasses made from them, and checks of their values.

A recipe is shipped by a package under `recipes/`, or is a file of the user.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import field, is_dataclass
from importlib.resources import files
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from cecdata.common.codec import MalformedError, decode
from cecdata.common.errors import InputError, UsageError, did_you_mean
from cecdata.common.text import read_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")


def option(default: T, meaning: str, **settings: object) -> T:
    """Return a dataclass field with a default, its help, and further settings of click's Option."""
    return field(default=default, metadata={"help": meaning, **settings})


def read_recipe(recipe: str, package: str, shipped: Collection[str]) -> dict[str, object]:
    """Return the tree of a recipe that `package` ships under that name, or of a path to a .toml.

    Raises UsageError for an unknown name, and InputError for a file that cannot be read as TOML.
    """
    require(isinstance(recipe, str), "recipe", recipe, "a name, or a path in a str")
    if recipe in shipped:
        text = files(package).joinpath("recipes", f"{recipe}.toml").read_text("utf-8")
    elif recipe.endswith(".toml"):
        text = read_text(Path(recipe))
    else:
        hint = did_you_mean(recipe, list(shipped))
        raise UsageError(f"no recipe {recipe!r}; {hint}, or the path of a .toml file")
    try:
        return dict(tomllib.loads(text))
    except (ValueError, RecursionError) as error:  # bad TOML, a number of 5,000 digits, nesting
        raise InputError(f"{recipe}: not valid TOML ({error})") from error


def parse_toml_value(text: str) -> object:
    """Return the value of a text in TOML; anything else, such as a bare word, is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def settings_from_tree(cls: type[T], tree: Mapping[str, object], where: str) -> T:
    """Return a dataclass from a nested mapping; `where` is the recipe, for messages.

    Raises UsageError for an unknown key, with the nearest known one, and for a wrong type or value.
    """
    _refuse_unknown(cls, tree, "", where)
    try:
        return decode(cls, dict(tree), "")  # type: ignore[arg-type]
    except MalformedError as error:
        raise UsageError(f"{where}: {error}") from error


def _refuse_unknown(hint: Any, tree: object, prefix: str, where: str) -> None:
    """Raise UsageError for a key of a nested mapping that the type `hint` does not have."""
    if isinstance(tree, Mapping) and isinstance(hint, type) and is_dataclass(hint):
        hints = get_type_hints(hint)
        for name, value in tree.items():
            if name not in hints:
                nearest = did_you_mean(str(name), list(hints))
                raise UsageError(f"{where}: no setting {prefix + str(name)!r}; {nearest}")
            _refuse_unknown(hints[name], value, f"{prefix}{name}.", where)
    elif isinstance(tree, Mapping) and len(get_args(hint)) == 2:  # a table by free names
        for name, value in tree.items():
            _refuse_unknown(get_args(hint)[1], value, f"{prefix}{name}.", where)
    elif isinstance(tree, (list, tuple)) and get_args(hint):
        for place, value in enumerate(tree):
            _refuse_unknown(get_args(hint)[0], value, f"{prefix[:-1]}[{place}].", where)


def require(holds: bool, name: str, value: object, rule: str) -> None:
    """Raise UsageError, "NAME must be RULE; it is VALUE", unless `holds` is true."""
    if not holds:
        raise UsageError(f"{name} must be {rule}; it is {value!r}")


def require_at_least(least: float, settings: object, *names: str, section: str = "") -> None:
    """Raise UsageError where one of these numbers is lower than its minimum; None passes.

    `section` precedes the names in messages, for settings that know only their own part.
    """
    for name in names:
        value = attrgetter(name)(settings)
        require(value is None or value >= least, section + name, value, f"at least {least:g}")


def require_fractions(settings: object, *names: str, section: str = "") -> None:
    """Raise UsageError where one of these numbers is not from 0 to 1; None is not refused."""
    for name in names:
        value = attrgetter(name)(settings)
        require(value is None or 0 <= value <= 1, section + name, value, "a fraction from 0 to 1")


def require_known(what: str, name: str, known: Collection[str]) -> None:
    """Raise UsageError, with the nearest known name, for an unknown name of a `what`."""
    if name not in known:
        raise UsageError(f"no {what} {name!r}; {did_you_mean(name, list(known))}")
