"""Threads of this process.

Kernels, Arrow and zstd all release the interpreter's lock, so processes would only add copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from cecdata.chunks import Outcome, Plan, Stage, Write


def run(
    plan: Plan, chunks: Sequence[int], workers: int, write: Write
) -> Iterator[tuple[int, Outcome]]:
    """Each chunk's outcome as it is done; an error or an interrupt ends after the running ones."""
    stage = Stage(plan, write)
    with ThreadPoolExecutor(workers, thread_name_prefix="chunk") as threads:
        futures = {threads.submit(stage.make, k): k for k in chunks}
        try:
            for future in as_completed(list(futures)):
                yield futures.pop(future), future.result()
        finally:
            # what has not begun is dropped; what runs is finished, so it is whole or not there
            threads.shutdown(wait=True, cancel_futures=True)
