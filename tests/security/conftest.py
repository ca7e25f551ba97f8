"""Lets the tests of this folder share a dataset, the tiny models of cecbench and helpers."""

import shutil

import pytest


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A small dataset, not to be touched."""
    from cecdata.builds.build import build
    from cecdata.config import load

    folder = tmp_path_factory.mktemp("dataset")
    corpus = folder / "a.txt"
    lines = [f"第{n}次：他的病情已经好转，明天就能出院。" for n in range(9)]
    corpus.write_text("\n".join([*lines, "", "短"]), "utf-8")
    build([str(corpus)], folder / "out", load(copies=2, filters=("levenshtein",), holdout=0.3))
    return folder / "out"


@pytest.fixture
def dataset(made, tmp_path):
    """The same, to be spoiled."""
    return shutil.copytree(made, tmp_path / "out")
