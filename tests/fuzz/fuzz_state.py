"""Readers of what the programs wrote: manifests, journals, recipes, checkpoints.

Where a file carries a sum over itself, most cases put it right again, so that what lies behind the
sum is reached as well.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from fuzz_case import PAGE, Reader
from fuzz_corpus import SENTENCES
from fuzz_mutate import Mutator, reseal, reseal_lines

from cecdata.common.errors import UsageError, VerificationError


def readers() -> tuple[Reader, ...]:
    """One a kind of file."""
    return (
        Reader("manifest", "manifest.json", _manifest,
               Mutator(_manifests, "json", _reseal_manifest)),
        Reader("shard", "a.parquet", _shard, Mutator(_shards, "binary"), memory=PAGE, suite=300),
        Reader("inventory", "manifest.json", _inventory,
               Mutator(_manifests, "json", _reseal_manifest), suite=400),
        Reader("journal", "journal.jsonl", _journal, Mutator(_journals, "json", reseal_lines),
               names_file=False),
        Reader("recipe-data", "a.toml", _recipe, Mutator(_data_recipes, "lines")),
        Reader("recipe-train", "a.toml", _train_recipe, Mutator(_train_recipes, "lines")),
        Reader("checkpoint", "checkpoint.json", _checkpoint,
               Mutator(_checkpoints, "json", reseal), names_file=False),
        Reader("metrics-log", "metrics.jsonl", _metrics, Mutator(_metric_lines, "json"),
               names_file=False),
        Reader("held-out", "after_sft.json", _held_out, Mutator(_held_outs, "json", reseal)),
        Reader("train-summary", "summary.json", _summary, Mutator(_summaries, "json", reseal)),
        Reader("policy-prompt", "prompt.json", _prompt,
               Mutator(lambda: (b'{"version": "1"}', b"{}"), "json")),
    )  # fmt: skip


def _manifest(path: Path) -> None:
    from cecdata.config import decode_config
    from cecdata.shards.manifest import decode_manifest

    data = path.read_bytes()
    found = decode_manifest(data, str(path))
    for record in found.files():
        resolved = (path.parent / record.path).resolve()
        assert resolved.is_relative_to(path.parent.resolve()), record.path
    try:
        decode_config(found.configuration)
    except VerificationError as error:
        raise VerificationError(f"{path}: {error}") from error


def _inventory(path: Path) -> None:
    """The first step of every reader of a dataset: a folder with this manifest in it."""
    from cecdata.shards.reader import open_dataset

    if not (path.parent / "data").is_dir():
        for name, data in _dataset().items():
            place = path.parent / name
            place.parent.mkdir(exist_ok=True)
            if place != path:
                place.write_bytes(data)
    open_dataset(path.parent)


def _shard(path: Path) -> Iterable[str]:
    """The reader of shards, and the proofs of `verify` on whatever it hands out."""
    from cecdata.shards.reader import read_batches

    for batch in read_batches(path, ("id", "source", "target", "edits")):
        batch.validate(full=True)
        yield from batch.column("source").to_pylist()


@cache
def _dataset() -> dict[str, bytes]:
    """The files of a small dataset: path → bytes."""
    from cecdata.builds.build import build
    from cecdata.config import load

    with tempfile.TemporaryDirectory() as name:
        corpus, out = Path(name) / "a.txt", Path(name) / "out"
        lines = [f"第{n}次：{s}" for n in range(3) for s in SENTENCES[:3]]
        corpus.write_text("\n".join(lines) + "\n\n", "utf-8")
        build([str(corpus)], out, load(copies=2, filters=("levenshtein",), holdout=0.3))
        files = [p for p in out.rglob("*") if p.is_file() and ".cecdata" not in p.parts]
        return {p.relative_to(out).as_posix(): p.read_bytes() for p in files}


def _manifests() -> tuple[bytes, ...]:
    files = _dataset()
    return (files["manifest.json"], files["manifest.json"].replace(b"train-00000", b"../train"))


def _shards() -> tuple[bytes, ...]:
    return tuple(data for name, data in _dataset().items() if name.startswith("data/"))


def _reseal_manifest(data: bytes) -> bytes:
    """Every third case keeps the fingerprint of the configuration that it had."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return data
    if not isinstance(document, dict):
        return data
    if isinstance(document.get("configuration"), dict) and len(data) % 3:
        text = json.dumps(document["configuration"], sort_keys=True, separators=(",", ":"),
                          ensure_ascii=False)  # fmt: skip
        document["fingerprint"] = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return reseal(json.dumps(document).encode())


def _journals() -> tuple[bytes, ...]:
    from cecdata.common.durable import Journal

    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        journal = Journal(root / "journal.jsonl")
        journal.record("chunk", "00000", rows=3, parts=[{"a": 1.5}])
        journal.record("file", "data/报告.txt")
        journal.record("publish", "data", names=["a", "b"])
        journal.record("reply", "k", reply={"raw": "好", "finish": "stop", "tokens": [1, 2]},
                       seconds=0.5)  # fmt: skip
        whole = (root / "journal.jsonl").read_bytes()
    return (whole, whole[:-7], b"", whole.replace(b'"a"', b'"../a"'))


def _journal(path: Path) -> None:
    from cecdata.common.durable import Journal

    before = path.read_bytes()
    journal = Journal(path)
    assert all(isinstance(journal.get(*step), dict) for step in journal)
    assert path.read_bytes() == before, "reading wrote something"


def _loaded(load: Callable[[str], Any], path: Path) -> Any:
    try:
        return load(str(path))
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error  # a value's error names the setting


def _recipe(path: Path) -> None:
    from cecdata.config import decode_config, load
    from cecdata.shards.manifest import fingerprint

    config = _loaded(load, path)
    plain = config.as_dict()
    assert decode_config(plain) == config
    fingerprint(plain)


def _train_recipe(path: Path) -> None:
    from cecdata.common.codec import encode
    from cecdata.common.settings import settings_from_tree
    from cectrain.config import Config, load

    config = _loaded(load, path)
    assert settings_from_tree(Config, encode(config), "again") == config
    json.dumps(encode(config))


def _data_recipes() -> tuple[bytes, ...]:
    import cecdata

    folder = Path(cecdata.__file__).parent / "recipes"
    more = 'seed = 7\ncosine = "all"\nfilters = ["levenshtein"]\n[prior]\nnoise = 1.0\n'
    return (*(p.read_bytes() for p in sorted(folder.glob("*.toml"))), more.encode())


def _train_recipes() -> tuple[bytes, ...]:
    import cectrain

    folder = Path(cectrain.__file__).parent / "recipes"
    return tuple(p.read_bytes() for p in sorted(folder.glob("*.toml")))


def _checkpoint(path: Path) -> None:
    """A checkpoint whose list of files reads so: used only where every file is as listed."""
    from cectrain.checkpoints import find_newest, read_step

    folder = path.parent / "checkpoint-7"
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "checkpoint.json").write_bytes(path.read_bytes())
    found = find_newest(path.parent)
    assert (found and found[1]) == read_step(folder)


_WEIGHTS = hashlib.sha256(b"weights").hexdigest()


def _checkpoints() -> tuple[bytes, ...]:
    whole = {"files": {"model.safetensors": [_WEIGHTS, 7]}, "step": 7}
    sealed = reseal(json.dumps({**whole, "phase": "sft"}).encode())
    return (sealed, json.dumps(whole).encode(), json.dumps({**whole, "files": {}}).encode())


def _metrics(path: Path) -> Iterable[str]:
    from cectrain.run.metrics_log import read_kept_lines

    return [read_kept_lines(path, 3, 2)]


def _metric_lines() -> tuple[bytes, ...]:
    lines = [
        {"phase": phase, "step": step, "loss": 0.5} for phase in ("sft", "ppo") for step in range(4)
    ]
    return ("\n".join(json.dumps(line) for line in lines).encode() + b"\n", b"")


def _held_out(path: Path) -> None:
    from cectrain.run.heldout import read_held_out

    read_held_out(path)


def _held_outs() -> tuple[bytes, ...]:
    found = {
        "rows": 3, "exact": 0.5, "copied": None, "over_correction": 0.0, "length_differs": 0.1,
        "f1": 0.4, "by_operator": {"noise": 1.0}, "samples": [["己", "已", "已"]],
    }  # fmt: skip
    bare = json.dumps(found, ensure_ascii=False).encode()
    return (bare, reseal(bare))


def _summary(path: Path) -> None:
    from cectrain.run.results import read_summary

    read_summary(path.parent)


def _summaries() -> tuple[bytes, ...]:
    found = {"heldout_rows": 3, "seeds": [1], "reward": {"alpha": 1.0}, "model_sha256": "0" * 64}
    bare = json.dumps(found).encode()
    return (bare, reseal(bare))


def _prompt(path: Path) -> Iterable[str]:
    from cectrain.corrector.folder import read_prompt

    (path.parent / "config.json").write_text("{}")
    return [read_prompt(str(path.parent))]
