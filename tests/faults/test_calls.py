"""The k-th call of the operating system fails: an error that tells, never a false "done"."""

from __future__ import annotations

import pytest
import scenarios
from campaign import ORDEALS, Unbroken, sweep

SMALL = {"build": (30, 20, "--holdout", "0"), "embed": (60,), "bench": (12,)}
#: in the ordinary suite some k of some ordeals; figures.py takes every k of all
QUICK = [
    ("bench", "ENOSPC for good", 5),
    ("bench", "EINTR", 3),
    ("embed", "EIO", 7),
    ("embed", "half, then ENOSPC", 3),
    ("build", "ENOSPC", 4),
    ("build", "EIO on reading back", 12),
    ("build", "short write", 3),
]


@pytest.fixture(scope="module")
def unbroken(room, shimmed):
    """Each scenario with the run that nobody disturbed, made when first asked for."""
    known = {}

    def find(name):
        if name not in known:
            folder = room / f"calls-{name}"
            folder.mkdir()
            scenario = getattr(scenarios, name)(folder, *SMALL[name])
            known[name] = scenario, Unbroken.of(shimmed, scenario, folder / "unbroken")
        return known[name]

    return find


@pytest.mark.parametrize(("name", "ordeal", "count"), QUICK)
def test_some_calls_fail(place, shimmed, unbroken, name, ordeal, count):
    """Spread over the whole run: exit ≠ 0 with the folder named, or all of it; then it goes on."""
    scenario, wanted = unbroken(name)
    matched = sum(wanted.kinds[call] for call in ORDEALS[ordeal][2])
    ks = [1 + place * matched // count for place in range(count)]
    found = sweep(shimmed, scenario, place, ordeal, wanted, ks)
    assert found.told == []
    assert found.cases == count
