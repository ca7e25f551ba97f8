"""The minimum of a smooth function of a few dozen variables (BFGS, Nocedal & Wright, ch. 6)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cecdata.fit.entries import Floats

_STEPS, _HALVINGS = 80, 30
_FLAT = 1e-5  # slope at which to stop: far below what four digits of a weight show
_ARMIJO = 1e-4  # share of the predicted decrease that a step must reach


def minimum(function: Callable[[Floats], tuple[float, Floats]], start: Floats) -> Floats:
    """Return the local minimum of a function, which returns value and gradient, from `start`.

    >>> minimum(lambda x: (float((x**4 - x).sum()), 4 * x**3 - 1), np.ones(2)).round(3).tolist()
    [0.63, 0.63]
    """
    at, inverse = start, np.eye(len(start))
    value, slope = function(at)
    for _ in range(_STEPS):
        if np.abs(slope).max() < _FLAT:
            break
        direction = -inverse @ slope
        length = 1.0 / max(1.0, float(np.abs(direction).max()))  # at most 1 in any parameter
        for _ in range(_HALVINGS):
            further, slope_there = function(at + length * direction)
            if further <= value + _ARMIJO * length * float(slope @ direction):
                break
            length /= 2
        else:
            break  # only rounding errors are left
        inverse = _updated(inverse, length * direction, slope_there - slope)
        at, value, slope = at + length * direction, further, slope_there
    return at


def _updated(inverse: Floats, step: Floats, change: Floats) -> Floats:
    """Return the inverse Hessian after a step with this change of the gradient."""
    along = float(step @ change)
    if along <= 1e-12:
        return inverse
    project = np.eye(len(step)) - np.outer(step, change) / along
    return np.asarray(project @ inverse @ project.T + np.outer(step, step) / along)
