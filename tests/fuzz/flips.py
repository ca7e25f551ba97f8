"""One bit turned over in one file: is it noticed, and is a wrong row ever handed out?

    python tests/fuzz/flips.py --flips 10000

For every kind of file that is kept: `noticed` counts what `verify` (or the check that a resumed run
makes) finds, `refused` what the reader itself refuses, `same` flips after which the reader hands
out what was written, `wrong` those after which it hands out something else.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]


@dataclass(frozen=True)
class Kind:
    """`make` fills a folder, `files` are flipped, `notice` is asked, `use` reads all there is."""

    name: str
    share: float  # of the flips that are asked for
    make: Callable[[Path], None]
    files: Callable[[Path], list[Path]]
    notice: Callable[[Path], bool]
    use: Callable[[Path], object]


def flips(kind: Kind, count: int, seed: int) -> dict[str, object]:
    """The tally of `count` flips, drawn evenly over the files."""
    from cecdata.common.errors import CecError

    draw, tally = random.Random(f"{kind.name}:{seed}"), Counter()
    started = time.process_time()
    by_suffix: Counter[str] = Counter()
    unnoticed: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        room = Path(name) / "room"
        kind.make(room)
        files = sorted(kind.files(room))
        sound = kind.use(room)
        assert not kind.notice(room), "something is off before any flip"
        for number in range(count):
            path = files[number % len(files)]
            data = path.read_bytes()
            at = draw.randrange(8 * len(data))
            _replace(path, data[: at >> 3], data[at >> 3] ^ 1 << (at & 7), data[(at >> 3) + 1 :])
            by_suffix[path.suffix] += 1
            noticed = kind.notice(room)
            tally["noticed"] += noticed
            if not noticed:
                unnoticed.append(f"{path.relative_to(room)} bit {at}")
            try:
                tally["same" if kind.use(room) == sound else "wrong"] += 1
            except CecError:
                tally["refused"] += 1
            path.unlink()
            path.write_bytes(data)
    return {
        "kind": kind.name, "flips": count, "seed": seed,
        **{name: tally[name] for name in ("noticed", "refused", "same", "wrong")},
        "files": dict(by_suffix), "unnoticed": unnoticed[:5],
        "cpu_s": round(time.process_time() - started, 1),
    }  # fmt: skip


def _replace(path: Path, head: bytes, byte: int, tail: bytes) -> None:
    path.unlink()  # what is still mapped keeps the sound bytes
    path.write_bytes(head + bytes([byte]) + tail)


# --- datasets -----------------------------------------------------------------------------------


def _make_dataset(room: Path) -> None:
    from fuzz_state import _dataset

    for name, data in _dataset().items():
        (room / name).parent.mkdir(parents=True, exist_ok=True)
        (room / name).write_bytes(data)


def _dataset_files(room: Path) -> list[Path]:
    return [path for path in room.rglob("*") if path.is_file() and path.name != "run.json"]


def _dataset_noticed(room: Path) -> bool:
    from cecdata.shards.verify import verify

    return not verify(room).ok


def _dataset_used(room: Path) -> object:
    """All that a trainer reads: `open_dataset`, then both splits."""
    from cecdata.shards.reader import open_dataset

    found = open_dataset(room)
    return [batch.to_pylist() for split in found.manifest.outputs for batch in found.batches(split)]


# --- embeddings ---------------------------------------------------------------------------------


def _make_store(room: Path) -> None:
    from fuzz_state import _store

    room.mkdir(parents=True, exist_ok=True)
    for name, data in _store().items():
        (room / name).write_bytes(data)


def _store_noticed(room: Path) -> bool:
    from cecdata.embed.store import verify_stores

    return not verify_stores(room).ok


def _store_used(room: Path) -> object:
    from cecdata.embed.store import open_store

    store = open_store(room)
    cosines, ids = store.search(np.ones((1, 8), np.float32), 20)
    return cosines.tolist(), ids.tolist(), store.lookup(ids[0]).vectors.tolist()


# --- what a run keeps for itself ------------------------------------------------------------------


def _make_pool(room: Path) -> None:
    """The first two stages of a build, with their markers."""
    from fuzz_corpus import SENTENCES

    from cecdata.builds.blocks import taken
    from cecdata.builds.build import Run
    from cecdata.builds.engine import Threads
    from cecdata.builds.place import Place
    from cecdata.config import load

    corpus = room.parent / "a.txt"
    corpus.write_text("".join(f"第{n}次：{s}\n" for n in range(3) for s in SENTENCES), "utf-8")
    config = load(filters=("levenshtein",), shard_sentences=6)
    with taken([str(corpus)], config) as source:
        Run(Place(str(room)), "x", Threads()).pool(source, config, counts=True)


def _pool_files(room: Path) -> list[Path]:
    return [p for p in (room / ".cecdata").rglob("*") if p.is_file()]


def _markers(room: Path) -> list[object]:
    from cecdata.builds.place import Place

    place = Place(str(room))
    return [place.done(f"{stage}/00000", "x") for stage in ("read", "distinct")]


def _pool_noticed(room: Path) -> bool:
    return None in _markers(room)


def _pool_used(room: Path) -> object:
    from cecdata.builds.distinct import Bucket, rows_of
    from cecdata.builds.place import Place
    from cecdata.common.errors import VerificationError

    distinct = _markers(room)[1]
    if _pool_noticed(room):
        raise VerificationError("the stages are run again")
    bucket = next(f for f in distinct.files if f.path.endswith(".arrow"))
    rows = rows_of(Place(str(room)), [Bucket(bucket.path, bucket.rows)], 0, bucket.rows)
    return rows.to_pylist()


# --- results --------------------------------------------------------------------------------------


def _make_run(room: Path) -> None:
    from fuzz_bench import _run_files

    room.mkdir()
    for name, text in _run_files().items():
        (room / name).write_text(text, "utf-8")


def _run_noticed(room: Path) -> bool:
    from cecbench.results import read_run
    from cecdata.common.errors import CecError

    try:
        read_run(room)
    except CecError:
        return True
    return False


def _run_used(room: Path) -> object:
    from cecbench.results import read_run

    run = read_run(room)
    return json.dumps(run.values, sort_keys=True), run.rows, run.statuses


def _make_checkpoint(room: Path) -> None:
    from cectrain.store import checkpoints

    def fill(folder: Path) -> None:
        draw = random.Random(0)
        (folder / "model.safetensors").write_bytes(draw.randbytes(400))
        (folder / "optimizer.safetensors").write_bytes(draw.randbytes(200))

    checkpoints.save(room / "checkpoint-7", fill, step=7)


def _checkpoint_noticed(room: Path) -> bool:
    from cectrain.store.checkpoints import damaged

    return bool(damaged(room))


def _checkpoint_used(room: Path) -> object:
    from cecdata.common.errors import VerificationError
    from cectrain.store.checkpoints import newest

    found = newest(room)
    if found is None:
        raise VerificationError("no whole checkpoint")
    return found[1], {p.name: p.read_bytes() for p in found[0].iterdir() if p.suffix != ".json"}


def _make_training(room: Path) -> None:
    from cecdata.common.durable import Workspace
    from cectrain.corrector.folder import MODEL
    from cectrain.run.reproducibility import weights_sha256
    from cectrain.store.results import write_summary

    with Workspace(room, {"x": 1}) as work:
        work.write_text("metrics.jsonl", '{"phase": "ppo", "step": 1, "reward": 0.5}\n')
        work.write_text("heldout.jsonl", '{"source": "己经", "before": "己经", "after": "已经"}\n')
        work.write_text(f"{MODEL}/tokenizer.json", '{"model": {"vocab": {"已": 0}}}')
        work.write_bytes(f"{MODEL}/model.safetensors", random.Random(0).randbytes(400))
        weights = weights_sha256(room / MODEL)
        write_summary(work, {"heldout_exact_after_ppo": 0.5, "model_sha256": weights})


def _training_files(room: Path) -> list[Path]:
    return [path for path in _all_files(room) if ".cecdata" not in path.parts]


def _training_noticed(room: Path) -> bool:
    from cecdata.common.errors import CecError

    try:
        _training_used(room)
    except CecError:
        return True
    return False


def _training_used(room: Path) -> object:
    """What the same command, `export` and `ship` begin with."""
    from cectrain.store.results import finished

    return finished(room)


def _all_files(room: Path) -> list[Path]:
    return [path for path in room.rglob("*") if path.is_file()]


KINDS = (
    Kind("dataset", 0.3, _make_dataset, _dataset_files, _dataset_noticed, _dataset_used),
    Kind("store", 0.2, _make_store, _all_files, _store_noticed, _store_used),
    Kind("pool", 0.1, _make_pool, _pool_files, _pool_noticed, _pool_used),
    Kind("predictions", 0.1, _make_run, _all_files, _run_noticed, _run_used),
    Kind("checkpoint", 0.1, _make_checkpoint, _all_files, _checkpoint_noticed, _checkpoint_used),
    Kind("training", 0.1, _make_training, _training_files, _training_noticed, _training_used),
)  # fmt: skip


def main() -> int:
    given = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    given.add_argument("--flips", type=int, default=10_000, help="times the share of each kind")
    given.add_argument("--seed", type=int, default=1)
    given.add_argument("--kind", choices=[kind.name for kind in KINDS])
    options = given.parse_args()
    bad = 0
    for kind in KINDS:
        if options.kind in (None, kind.name):
            count = max(1, round(options.flips * kind.share))
            with contextlib.redirect_stderr(io.StringIO()):
                found = flips(kind, count, options.seed)
            print(json.dumps(found), flush=True)
            bad += (found["noticed"] != count) + bool(found["wrong"])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
