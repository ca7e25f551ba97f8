"""What has its final name is on the disk: every file is synced before the rename that names it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import harness
import pytest
import scenarios

from cectrain import checkpoints
from cectrain.run import metrics_log

PROGRAM = """
    import ctypes, os, sys
    from pathlib import Path
    here = Path(sys.argv[1])
    def armed():
        log = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        ctypes.CDLL(os.environ["SHIM"]).record_arm(os.fsencode(here), log)
"""
PLAIN = """
    from cecdata.common import durable
    armed()
    (here / "staged" / "deep").mkdir(parents=True)
    for name in ("a", "deep/b"):
        (here / "staged" / name).write_bytes(b"x" * 9000)
    durable.publish(here / "staged", here / "final")
"""
AGAIN = """
    from cecdata.common.durable import Workspace
    armed()
    with Workspace(here / "out", {}) as work:
        for text in ("one", "two"):
            (work.root / "staged" / "deep").mkdir(parents=True)
            for name in ("a", "deep/b"):
                (work.root / "staged" / name).write_text(text)
            work.publish("staged", "final")
"""
SAVED = """
    import numpy as np
    from safetensors.numpy import save_file
    from cectrain import checkpoints
    def fill(folder):
        save_file({"a": np.ones((50, 50))}, folder / "model.safetensors")
        (folder / "state.json").write_text("{}")
    armed()
    for step in (1, 2):
        checkpoints.save_checkpoint(here / f"checkpoint-{step}", fill, step=step)
    checkpoints.remove_older(here, 1, 2)
"""
SEALED = """
    import numpy as np
    from safetensors.numpy import save_file
    from cectrain import checkpoints
    armed()
    folder = here / "checkpoint-1"
    (folder / "deep").mkdir(parents=True)
    save_file({"a": np.ones((50, 50))}, folder / "model.safetensors")
    (folder / "deep" / "state.json").write_text("{}")
    checkpoints.seal_folder(folder, step=1)
"""
MODEL = """
    from cecdata.common.durable import Workspace
    from cectrain.model.policy import save_model
    from cectrain.corrector.policy import Policy
    from experiments.pretraining.model import character_tokenizer, small_qwen3
    model, tokenizer = small_qwen3(character_tokenizer(), 7, hidden=32, layers=1)
    armed()
    with Workspace(here / "out", {}) as work:
        save_model(Policy(model, tokenizer, "1"), work.root / ".cecdata/model", {})
        work.publish(".cecdata/model", "model")
"""


def recorded(place, program):
    """The calls of a program below its folder: (kind, path, new path of a rename)."""
    here, log = place / "here", place / "log.txt"
    here.mkdir()
    library, reason = harness.shim()
    if library is None:
        pytest.skip(reason)
    code = textwrap.dedent(PROGRAM) + textwrap.dedent(program)
    preload = {"LD_PRELOAD": str(library), "SHIM": str(library), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, here.resolve(), log],
        capture_output=True, text=True, check=False, env={**os.environ, **preload},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return here.resolve(), [line.split("\t") for line in log.read_text("utf-8").splitlines()]


def loose(calls, named, folder):
    """Files in `folder` that were not synced after they were written, when `named` got its name."""
    synced, dirty = set(), set()
    for kind, path, to in calls:
        if kind in ("open", "write", "truncate"):
            dirty.add(path)
        elif kind == "fsync":
            dirty.discard(path)
            synced.add(path)
        elif kind == "rename":
            for known in (synced, dirty):
                moved = {p for p in known if p == path or p.startswith(f"{path}/")}
                known.difference_update(moved)
                known.update(to + p[len(path) :] for p in moved)
            if to == str(named):
                break
    else:
        raise AssertionError(f"{named} never got its name")
    files = {str(p) for p in Path(folder).rglob("*") if p.is_file()}
    # Renames by Rust pass the C library by: then neither name is known as synced.
    return sorted((files - synced) | (files & dirty))


def last(calls, *wanted):
    """The place of the last such call."""
    return max(n for n, call in enumerate(calls) if tuple(call[: len(wanted)]) == wanted)


def test_a_folder(place):
    """Whoever filled it: its files are synced, then its folders, then it is renamed."""
    here, calls = recorded(place, PLAIN)
    final = here / "final"
    assert loose(calls, final, final) == []
    renamed = last(calls, "rename", str(here / "staged"))
    assert last(calls, "fsync", str(here)) > renamed


def test_a_folder_that_was_published_before(place):
    """What replaces a file is synced before it does."""
    here, calls = recorded(place, AGAIN)
    final = here / "out" / "final"
    for name in ("a", "deep/b"):
        assert loose(calls, final / name, final) == []
        assert (final / name).read_text() == "two"


def test_a_checkpoint(place):
    """Synced before its rename; older ones go when that, too, is on the disk."""
    here, calls = recorded(place, SAVED)
    final = here / "checkpoint-2"
    assert loose(calls, final, final) == []
    named = last(calls, "rename", str(here / ".checkpoint-2.tmp"))
    synced = last(calls, "fsync", str(here))
    older = f"{here}/checkpoint-1"
    gone = [n for n, (kind, path, _) in enumerate(calls) if kind == "remove" and older in path]
    assert named < synced < min(gone)


def test_a_checkpoint_that_others_write_in_place(place):
    """TRL saves under the final name: what counts there is the proof, and it comes last."""
    here, calls = recorded(place, SEALED)
    final = here / "checkpoint-1"
    proof = final / "checkpoint.json"
    assert loose(calls, proof, final) == []
    assert last(calls, "fsync", str(final / "deep")) < last(calls, "fsync", str(here))


@pytest.mark.slow  # it is published as the folders above are
def test_a_finished_model(place):
    """Weights, tokenizer, prompt and card; and their permissions are those of any other file."""
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    here, calls = recorded(place, "\n    os.umask(0o027)" + MODEL)
    final = here / "out" / "model"
    assert len(list(final.iterdir())) > 5
    assert loose(calls, final, final) == []
    modes = {path.name: path.stat().st_mode & 0o777 for path in final.iterdir()}
    assert set(modes.values()) == {0o640}, modes


def saved(folder, step):
    checkpoints.save_checkpoint(
        folder, lambda where: (where / "weights").write_bytes(b"w"), step=step
    )


def test_a_damaged_checkpoint_does_not_count(tmp_path):
    """One that fails its proof and has a higher number is not kept in place of a whole one."""
    for step in (2, 4):
        saved(tmp_path / f"checkpoint-{step}", step)
    (tmp_path / "checkpoint-4" / "weights").write_bytes(b"x")
    assert checkpoints.find_newest(tmp_path)[1] == 2
    saved(tmp_path / "checkpoint-3", 3)
    checkpoints.remove_older(tmp_path, 1, 3)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-3"]
    assert checkpoints.find_newest(tmp_path)[1] == 3


def test_a_line_that_a_killed_run_has_written_is_not_written_again(tmp_path):
    """Held-out scores at the step of a checkpoint are made anew on a resume, and told once."""
    path = tmp_path / metrics_log.FILE
    log = metrics_log.MetricsLog(path)
    log.write("sft", 2, {"loss": 0.5})
    log.write("heldout", 0, {"heldout_exact": 0.25})
    path.write_text(metrics_log.read_kept_lines(path, 2, 0), "utf-8")
    again = metrics_log.MetricsLog(path)
    again.write("heldout", 0, {"heldout_exact": 0.25})
    again.write("ppo", 1, {"reward": 0.5})
    again.write("heldout", 1, {"heldout_exact": 0.25})
    again.write("heldout", 1, {"heldout_exact": 0.25})
    told = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    steps = [(line["phase"], line["step"]) for line in told]
    assert steps == [("sft", 2), ("heldout", 0), ("ppo", 1), ("heldout", 1)]


def test_what_is_watched_at_a_checkpoint_is_watched_before_it(tmp_path):
    """A run killed while it evaluates has not passed the step: its held-out line is not lost."""
    torch = pytest.importorskip("torch")
    from cectrain.config import SftConfig
    from cectrain.corrector.policy import Policy
    from cectrain.data.shards import Pair
    from cectrain.run.loss import collate
    from cectrain.run.supervised import fit
    from experiments.pretraining.model import character_tokenizer, small_qwen3

    def run(watch):
        model, tokenizer = small_qwen3(character_tokenizer(), 7, hidden=32, layers=1)
        policy = Policy(model, tokenizer, "1")
        made = [torch.optim.AdamW(model.parameters())]
        batches = [collate(policy, [Pair(1, 0, "己经", "已经", "noise")])] * 2
        told = SftConfig(steps=2, save_every=1), tmp_path, lambda _: 1.0
        fit(policy, lambda steps: batches[: len(steps)], made, *told, watch=watch)

    def killed(step):
        seen.append(step)
        if step == 2:
            raise KeyboardInterrupt

    seen = []
    with pytest.raises(KeyboardInterrupt):
        run(killed)
    run(seen.append)
    assert seen == [1, 2, 2]


HALF_WAY = {"calls": ("truncate",), "k": 1, "action": "kill"}  # weights, before they are named


def policy_at(folder, hidden):
    """A policy of this width on disk."""
    from cectrain.corrector.policy import Policy
    from cectrain.model.policy import save_model
    from experiments.pretraining.model import character_tokenizer, small_qwen3

    model, tokenizer = small_qwen3(character_tokenizer(), 7, hidden=hidden, layers=1)
    save_model(Policy(model, tokenizer, "1"), folder, {})
    return folder


@pytest.mark.slow  # all of torch and trl; tests/cectrain/test_export.py has the main line
def test_what_a_killed_training_staged_is_not_in_its_model(place, shimmed, trainer):
    """Killed while it writes its weights: the same command leaves a model without the remains."""
    shimmed.done(*scenarios.build(place, 120, 40).words(place / "data"))
    scenario = scenarios.sft(place / "data", policy_at(place / "w", 32))
    out = place / "out"
    fault = harness.Fault(out / ".cecdata" / "model", **HALF_WAY)
    ended = trainer.run(*scenario.words(out), fault=fault)
    assert ended.killed, ended.text
    assert any(path.name.startswith(".tmp") for path in (out / ".cecdata" / "model").iterdir())
    trainer.done(*scenario.words(out))
    assert harness.temporary_names(out) == []
