"""Threads of this process.

Kernels, Arrow and zstd all release the interpreter's lock, so processes would only add copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice

from cecdata.pipeline.chunks import ChunkMaker, Outcome, Plan, Write

# The longest wait for the chunks under way after an interrupt. A chunk that runs on has no effect:
# its files get no final name once the workspace is closed.
_PATIENCE_S = 2.0


def run(
    plan: Plan, chunks: Sequence[int], workers: int, write: Write
) -> Iterator[tuple[int, Outcome]]:
    """Yield each chunk's outcome as it is done; if one fails, those under way finish first.

    As soon as a chunk is done the next one begins, while the caller records the outcome: a kill
    loses the chunks under way and those not yet recorded.
    """
    maker, queue = ChunkMaker(plan, write), iter(chunks)

    def submit(k: int) -> Future[Outcome]:
        return threads.submit(maker.make, k, plan.chunks[k], len(plan.chunks))

    threads = ThreadPoolExecutor(workers, thread_name_prefix="chunk")
    running: dict[Future[Outcome], int] = {}
    patience_s: float | None = _PATIENCE_S
    try:
        running = {submit(k): k for k in islice(queue, workers)}
        while running:
            ready, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ready:
                k, outcome = running.pop(future), future.result()
                running |= {submit(k): k for k in islice(queue, 1)}
                yield k, outcome
    except Exception:
        patience_s = None
        raise
    finally:
        wait(running, patience_s)
        threads.shutdown(wait=False)
