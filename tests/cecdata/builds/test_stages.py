"""The contract of stages: the same rows however they are cut into batches, in any process."""

from __future__ import annotations

import pickle
import threading
import time

import pyarrow as pa
import pytest

from cecdata.config import load
from cecdata.corpus.rows import constant, no_rejects
from cecdata.pipeline.intake_stages import intake_stages
from cecdata.pipeline.stages import ahead, run
from cecdata.shards.schema import REJECTED_ROW, ROW

CONFIG = load("paper", near_duplicates=True, split_sentences=True, quality=("simplified",))


@pytest.fixture(scope="module")
def rows(lines_of) -> pa.RecordBatch:
    texts = lines_of(300)
    texts += [*texts[:30], *(text + "了" for text in texts[30:60])]
    texts += ["坏\x00行", "短", "這個說法不對，請再看看"]
    count = len(texts)
    arrays = [pa.array(texts, pa.string()), constant("网", count), constant("a.txt", count)]
    arrays += [pa.array(range(1, count + 1)), pa.nulls(count, pa.string())]
    return pa.RecordBatch.from_arrays(arrays, schema=ROW)


def results(rows, size, workers, stages=None):
    cut = [rows.slice(start, size) for start in range(0, len(rows), size)]
    made = list(run(stages or intake_stages(CONFIG), [(b, no_rejects()) for b in cut], workers))
    kept = pa.Table.from_batches([batch for batch, _ in made])
    rejected = pa.Table.from_batches([batch for _, batch in made], REJECTED_ROW)
    return kept.combine_chunks(), rejected.sort_by([("row", "ascending"), ("text", "ascending")])


def test_no_row_depends_on_the_batches_or_threads(rows):
    """Batches of 1, 7 and 1,000 rows on 1, 2 and 4 threads: the same rows, none lost."""
    kept, rejected = results(rows, 1000, 1)
    reasons = {*rejected.column("reason").to_pylist()}
    assert reasons >= {"duplicate", "near_duplicate", "control_character", "quality_simplified"}
    seen = {*kept.column("row").to_pylist(), *rejected.column("row").to_pylist()}
    assert seen == set(range(1, len(rows) + 1))
    for size, workers in ((1, 4), (7, 1), (7, 2), (1000, 4)):
        again = results(rows, size, workers)
        assert again[0].equals(kept)
        assert again[1].equals(rejected)


def test_a_stage_can_be_sent_to_another_process(rows):
    """Stages that went through pickle give the same rows, of the schema that they declare."""
    stages = pickle.loads(pickle.dumps(intake_stages(CONFIG)))
    kept, rejected = results(rows, 64, 2, stages)
    assert (kept, rejected) == results(rows, 64, 2)
    batch = rows
    for stage in stages:
        assert batch.schema == stage.takes
        stage.setup()
        batch, refused = stage.process(batch)
        assert (batch.schema, refused.schema) == (stage.gives, REJECTED_ROW)


def test_threads_work_ahead_in_order():
    """Two items are worked on at once, the results come in order, and no more than three wait."""
    together, taken = threading.Barrier(2, timeout=10), 0

    def items():
        nonlocal taken
        while taken < 20:
            taken += 1
            yield taken

    def work(item):
        together.wait()
        time.sleep(0.001 * (item % 3))
        return item

    for done, item in enumerate(ahead(work, items(), 2), 1):
        assert item == done
        assert taken <= done + 3


def test_an_error_in_a_thread_is_raised():
    """The results before it come first; those after it never do."""
    done = []
    with pytest.raises(ZeroDivisionError):
        done.extend(ahead(lambda n: 1 // (n - 3), range(10), 2))
    assert done == [-1, -1, -1]
