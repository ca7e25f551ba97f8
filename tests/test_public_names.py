"""The public names of the packages, which others import: none leaves without a word."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

NAMES = {
    "cecdata": {"build", "perturb", "scan"},
    "cecbench": {"score"},
    "cectrain": {"Corrector"},
}
PAGE = (Path(__file__).parents[1] / "docs/reference/api.md").read_text("utf-8")


@pytest.mark.parametrize("package", NAMES)
def test_each_public_name_is_there_and_has_its_page(package):
    """`__all__` has these names and no others; each is documented."""
    module = importlib.import_module(package)
    assert set(module.__all__) == NAMES[package]
    for name in NAMES[package]:
        assert callable(getattr(module, name))
        assert f"{package}.{name}" in PAGE
