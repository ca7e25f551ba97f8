"""Recipes: TOML that a package ships under `recipes/`, or a file of the user's own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from cecdata.common.errors import InputError, UsageError, did_you_mean

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_recipe(recipe: str, package: str, shipped: Sequence[str]) -> dict[str, object]:
    """The tree of a recipe that `package` ships under that name, or of a path to a .toml.

    UsageError for a name that is neither, InputError for a file that cannot be read or is no TOML.
    """
    if recipe in shipped:
        text = files(package).joinpath("recipes", f"{recipe}.toml").read_text("utf-8")
    elif recipe.endswith(".toml"):
        try:
            text = Path(recipe).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{recipe}: cannot be read ({error}); give a TOML file") from error
    else:
        hint = did_you_mean(recipe, list(shipped))
        raise UsageError(f"no recipe {recipe!r}; {hint}, or a path to a .toml")
    try:
        return dict(tomllib.loads(text))
    except (ValueError, RecursionError) as error:  # bad TOML, a number of 5,000 digits, nesting
        raise InputError(f"{recipe}: not valid TOML ({error})") from error


def toml_value(text: str) -> object:
    """A value as TOML writes it; what is no TOML is text, as a bare word on a command line is.

    >>> toml_value("0.5"), toml_value("[1, 2]"), toml_value("group")
    (0.5, [1, 2], 'group')
    """
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
