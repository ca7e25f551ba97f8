"""Correctors in threads, in other processes, and without what they do not need."""

from __future__ import annotations

import pickle
import platform
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from cectrain.corrector.corrector import Corrector

SENTENCES = (
    "他的病情己经好转",
    "我们明天在见面吧",
    "今天天气很好",
    "周未一起去公园",
    "这个问提无名显",
)


def texts(count):
    """Texts of different lengths, with errors."""
    draw = random.Random(7)
    return ["，".join(draw.choices(SENTENCES, k=draw.randrange(1, 4))) for _ in range(count)]


@pytest.mark.parametrize(("model", "count"), [("channel", 1250), ("combined", 40)])
def test_eight_threads_get_the_answers_of_one(model, count):
    """Each thread asks for single texts and for lists, all at the same time."""
    if model == "combined":
        pytest.importorskip("torch", reason="the extra `train` is not installed")
    corrector = Corrector(model, lm="words")
    asked = texts(count)
    expected = corrector.correct(asked)
    start = threading.Barrier(8)

    def answers(thread):
        start.wait()
        size = 1 + 15 * thread
        return [
            one
            for first in range(0, count, size)
            for one in corrector.correct(asked[first : first + size])
        ]

    with ThreadPoolExecutor(8) as pool:
        assert all(given == expected for given in pool.map(answers, range(8)))


def test_threads_that_ask_first_load_one_model():
    """The model is loaded once, whoever comes first."""
    corrector = Corrector("channel", lm="words")
    with ThreadPoolExecutor(4) as pool:
        assert len({id(one) for one in pool.map(lambda _: corrector.proposer, range(4))}) == 1


@pytest.mark.parametrize("settings", [{"model": "channel"}, {"rescore": "words"}])
def test_a_pickled_corrector_answers_alike(settings):
    """Before and after the models are loaded; their tables are not part of the pickle."""
    corrector = Corrector(lm="words", protect=["习小明"], **settings)
    for _ in range(2):
        held = pickle.dumps(corrector)
        assert len(held) < 2000
        assert pickle.loads(held).correct(SENTENCES) == corrector.correct(SENTENCES)


def test_a_sentence_is_corrected_without_heavy_libraries():
    """The command loads none of those whose import takes longer than the rest of its start."""
    code = (
        "import sys; from cectrain.cli import cli; "
        "cli(['correct', '--lm', 'words', '他己经来了'], standalone_mode=False); "
        "print({'torch', 'transformers', 'polars', 'pyarrow', 'rich', 'scipy.linalg', 'cffi'}"
        " & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["他已经来了", "set()"]


CODE = """
import ctypes
from pathlib import Path
from cectrain.supervised import loop as memory

def held():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
blocks = [libc.malloc(100_000) for _ in range(3000)]
for block in blocks:
    ctypes.memset(block, 1, 100_000)
for block in blocks[:-1]:  # the last one, at the top, keeps the heap as it is
    libc.free(block)
before = held()
assert memory.trim()
print(before - held())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="there is nothing to ask elsewhere")
def test_free_memory_returns_to_the_system():
    """300 MB freed below one block in use return to the system."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 250
