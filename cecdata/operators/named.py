"""Operators by name: those of this package, those of a recipe's modules and of installed packages.

A recipe names a module's in `[operators]`. A package adds one by an entry point of the group
`cecdata.operators`, which is called as the operator is; a recipe then has its name only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cecdata.common.errors import UsageError
from cecdata.common.plugins import find_points, import_object
from cecdata.operators import OPERATORS, Operator

GROUP = "cecdata.operators"


def add_installed(modules: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return `modules` with those of installed operators among `names`, in the order of names.

    Raises UsageError for the name of an operator of this package.
    """
    points = find_points(GROUP)
    installed = {
        name: points[name].value for name in names if name in points and name not in OPERATORS
    }
    for name in modules:
        if name in OPERATORS:
            raise UsageError(
                f"operators.{name}: cecdata has an operator of that name: rename yours"
            )
    return dict(sorted({**installed, **modules}.items()))


def find_operators(modules: Mapping[str, str]) -> dict[str, Operator]:
    """Return the operators of this package, then those of these modules, by name.

    Raises UsageError for a module that does not have an operator of that name.
    """
    return {**OPERATORS, **{name: _load_operator(name, module) for name, module in modules.items()}}


def is_installed(name: str, module: str) -> bool:
    """Return whether an installed package has the operator."""
    point = find_points(GROUP).get(name)
    return point is not None and point.value == module


def _load_operator(name: str, module: str) -> Operator:
    operator = import_object(module, "operator")
    if not isinstance(operator, Operator) or operator.name != name:
        raise UsageError(
            f"operators.{name}: {module} must be an Operator of that name (see "
            "cecdata.operators.base)"
        )
    return operator
