"""The offline encoder's threads."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

from cecdata.embed import usem3

SENTENCES = [f"第{n}号列车将于今天晚上准时到达本站的站台。" for n in range(150)]


def test_threads_change_no_bit():
    """A long list is shared among threads; every vector is that of its sentence alone."""
    model = usem3.Usem3()
    assert np.array_equal(model.encode(SENTENCES), model._encode(SENTENCES))


def test_an_interrupt_does_not_wait_for_the_sentences_under_way(monkeypatch):
    """Each thread has its share to do; Ctrl-C comes through in the midst of it."""
    model, begun, go_on = usem3.Usem3(), threading.Event(), threading.Event()

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
            model.encode(SENTENCES)
        assert time.monotonic() - started < 60
    finally:
        signal.signal(signal.SIGINT, before)
        go_on.set()
