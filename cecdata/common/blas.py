"""The number of threads of NumPy's products, which belongs to the process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition
from typing import Any, cast

import threadpoolctl

_PATIENCE_S = 30  # for which a fork waits at most: the forking thread may itself compute


class BlasThreads:
    """The threads of NumPy's products, whose number belongs to the process.

    The first caller inside sets the number, and the last one restores it. On small matrices two
    threads cost more by waiting for each other than they save. A fork waits until nobody is inside:
    OpenBLAS ends its threads before one, and would wait for ever for those that work.
    """

    def __init__(self) -> None:
        self._changed, self._inside, self._forking = Condition(), 0, False
        self._pools = self._limit = cast("Any", None)
        after = self._go_on
        os.register_at_fork(before=self._wait, after_in_parent=after, after_in_child=after)

    @contextmanager
    def limit(self, threads: int) -> Iterator[None]:
        """Compute with `threads` threads inside."""
        with self._changed:
            self._changed.wait_for(lambda: not self._forking)
            if not self._inside:
                self._pools = threadpoolctl.ThreadpoolController()
                self._let_go()
                self._limit = self._pools.limit(limits=threads, user_api="blas")
                self._let_go()
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                if not self._inside:
                    self._limit.restore_original_limits()
                    self._let_go()
                    self._changed.notify_all()

    def _let_go(self) -> None:
        """Let any thread set the number: to threadpoolctl 3.8, the first that did so owns it."""
        for library in self._pools.lib_controllers:
            if clear := getattr(library, "clear_controlling_thread", None):
                clear(force=True)

    def _wait(self) -> None:
        self._changed.acquire()
        self._forking = True
        self._changed.wait_for(lambda: not self._inside, _PATIENCE_S)

    def _go_on(self) -> None:
        self._forking = False
        self._changed.notify_all()
        self._changed.release()


BLAS_THREADS = BlasThreads()
