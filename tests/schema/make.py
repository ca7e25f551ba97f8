"""Write the fixtures of a version. They are kept for ever: run this for a new version only.

    python tests/schema/make.py tests/schema/v2 dataset

writes the parts that are named, or all of them; a version holds what it changed. Refuses a folder
that exists. The sentences were written for this purpose.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

SENTENCES = (
    "他的病情已经好转，明天就能出院。", "列车将于今晚八点准时到达本站。",
    "合同规定双方应当在十日内付清货款。", "这款游戏的最后一关难度很大。",
    "图书馆周末照常开放，欢迎读者前来。", "老师让同学们把作业再检查一遍。",
    "山上的积雪还没有完全融化。", "请在通知发出后三天之内回复。", "他们沿着河边散步，聊了很久。",
    "新修的公路缩短了两地的距离。", "医生建议他少吃油腻的食物。", "会议推迟到下周三上午举行。",
)  # fmt: skip
ANSWERS = (
    ("他己经来了。", "他已经来了。", "他已经来了。"),
    ("我们在见。", "我们再见。", "我们在见。"),
)


def main(out: Path, *parts: str) -> None:
    out.mkdir(parents=True)
    writers = {
        "dataset": dataset, "run": run, "checkpoints": checkpoint,
        "training": training, "workspace": workspace,
    }  # fmt: skip
    for part in parts or writers:
        writers[part](out / part)
    expect(out)


def dataset(out: Path) -> None:
    """Two copies of each sentence, split, with cosines and two rejected rows."""
    from cecdata.builds.build import build
    from cecdata.config import load

    here, out = Path.cwd(), out.absolute()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)  # so that no path of a machine stands in the manifest
        lines = [*SENTENCES, SENTENCES[0], "短"]
        Path("corpus.txt").write_text("\n".join(lines) + "\n", "utf-8")
        build(["corpus.txt"], Path("out"), load(copies=2, holdout=0.3))
        shutil.copytree("out", out, ignore=shutil.ignore_patterns(".cecdata"))
        os.chdir(here)


def run(out: Path) -> None:
    """Predictions and their score."""
    from cecbench.run import Settings, evaluate

    with tempfile.TemporaryDirectory() as name:
        data, answers = Path(name) / "own.tsv", Path(name) / "answers.txt"
        data.write_text("".join(f"{a}\t{b}\n" for a, b, _ in ANSWERS), "utf-8")
        answers.write_text("".join(f"{c}\n" for _, _, c in ANSWERS), "utf-8")
        evaluate(Settings(str(data), f"predictions:{answers}", Path(name) / "out"))
        shutil.copytree(Path(name) / "out", out, ignore=shutil.ignore_patterns(".cecdata"))


def checkpoint(out: Path) -> None:
    """A checkpoint of two tensors."""
    from safetensors.numpy import save_file

    from cectrain import checkpoints

    draw = np.random.default_rng(0)

    def fill(folder: Path) -> None:
        save_file({"a": draw.standard_normal((2, 3), np.float32)}, folder / "model.safetensors")

    checkpoints.save_checkpoint(out / "checkpoint-7", fill, step=7)


def training(out: Path) -> None:
    """What a training run keeps beside its weights."""
    from cecdata.common.codec import seal_object
    from cecdata.models.causal import PROMPT_FILE
    from cectrain.run.heldout import HeldOut, write_held_out
    from cectrain.run.metrics_log import FILE, MetricsLog

    out.mkdir()
    log = MetricsLog(out / FILE)
    for step in range(3):
        log.write("ppo", step, {"reward": 0.5 + step / 10, "loss": 0.1})
    write_held_out(out / "after_sft.json", HeldOut(**_FIGURES))
    summary = {"heldout_exact_after_sft": 0.5, "seeds": [42], "model_sha256": "0" * 64}
    (out / "summary.json").write_bytes(seal_object(summary))
    (out / PROMPT_FILE).write_text('{"version": "1"}\n')


_FIGURES = {
    "rows": 2, "exact": 0.5, "copied": 0.5, "over_correction": 0.0, "length_differs": 0.0,
    "f1": 0.667, "by_operator": {"homophone": 0.5},
}  # fmt: skip


def workspace(out: Path) -> None:
    """The journal and the fingerprint of a run."""
    from cecdata.common.durable import Workspace

    with tempfile.TemporaryDirectory() as name:
        with Workspace(Path(name) / "w", {"seed": 42, "prior": {"noise": 0.2}}) as work:
            work.write_text("data/a.txt", "甲\n")
            work.journal.record("chunk", "00000", rows=1)
        out.mkdir()
        shutil.copytree(Path(name) / "w", out, dirs_exist_ok=True)
    (out / ".cecdata").rename(out / "state")  # hidden folders get lost on the way too easily
    for name in ("lock", "tmp"):
        path = out / "state" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def expect(out: Path) -> None:
    """Write down what is in the files, read by others where there are others."""
    found: dict[str, object] = {}
    for part, facts in (
        ("dataset", _of_dataset),
        ("run", _of_run),
        ("checkpoints", _of_checkpoints),
    ):
        if (out / part).is_dir():
            found |= facts(out / part)
    found["exact"] = _FIGURES["exact"]
    found["sha256"] = {
        path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(out.rglob("*"))
        if path.is_file()
    }
    text = json.dumps(found, ensure_ascii=False, indent=1)
    (out / "expected.json").write_text(text + "\n", "utf-8")


def _of_dataset(data: Path) -> dict[str, object]:
    import pyarrow.parquet as pq

    manifest = json.loads((data / "manifest.json").read_text("utf-8"))
    return {
        "rows": {
            split: [row for f in files for row in pq.read_table(data / f["path"]).to_pylist()]
            for split, files in manifest["outputs"].items()
        },
        "counts": [manifest["rows"]["read"], manifest["rows"]["kept"], manifest["pairs"]["kept"]],
    }


def _of_run(folder: Path) -> dict[str, object]:
    score = json.loads((folder / "score.json").read_text("utf-8"))
    rows = [[f"own-{n}", a, b, c] for n, (a, b, c) in enumerate(ANSWERS, 1)]
    return {"predictions": rows, "headline": score["S_C_f1"]}


def _of_checkpoints(folder: Path) -> dict[str, object]:
    from safetensors.numpy import load_file

    tensor = load_file(folder / "checkpoint-7" / "model.safetensors")["a"]
    return {"tensor": tensor.tolist()}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main(Path(sys.argv[1]), *sys.argv[2:])
