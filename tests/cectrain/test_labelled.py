"""Labelled pairs from files, and supervised steps in passes that fit into memory."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import torch

from cecdata.common.command_group import run
from cecdata.common.errors import CecError, InputError, UsageError
from cectrain import config
from cectrain.cli import cli
from cectrain.corrector.policy import load, make_reader
from cectrain.data.shards import HELD_OUT, TRAIN, Pair
from cectrain.data.training_pairs import labelled_pairs, select_pairs
from cectrain.run import results
from cectrain.run.heldout import evaluate
from cectrain.run.loss import collate, make_loss
from cectrain.run.supervised import choose_learning_rate, set_gradient

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

PAIRS = [("他己经来了。", "他已经来了。"), ("今天天汽很好。", "今天天气很好。")]
PAIRS += [("我在家。", "我在家。")]
PAIRS += [(f"第{n}个句字。", f"第{n}个句子。") for n in range(20)]
PAIRS += [("第3个居子。", "第3个句子。"), ("第4格句子。", "第4个句子。")]


def written(path, rows):
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("他来了", "line 2 has 1 columns, but line 1 has 2"),
        ("1\t他己\t他已", "line 2 has 3 columns, but line 1 has 2"),
        ("他己\t", "line 2: the target is empty"),
        ("　\t他已", "line 2: the source is empty"),
    ],
)
def test_a_bad_line_is_named(line, message, tmp_path):
    """The message has the file, the line and what is wrong."""
    path = tmp_path / "pairs.tsv"
    path.write_text(f"他己经\t他已经\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"pairs\.tsv, {message}"):
        labelled_pairs(path, None, 9)


@pytest.mark.parametrize(
    "text",
    [
        "0\t好的。\t好的。\n1\t他己经\t他已经\n",  # CSCD-NS
        "target\tsource\n好的。\t好的。\n他已经\t他己经\n",
        '{"source": "好的。", "target": "好的。"}\n{"source": "他己经", "target": "他已经"}\n',
    ],
)
def test_labels_heads_and_json_are_read(text, tmp_path):
    """A label is left out; columns that have names may have any order."""
    path = tmp_path / "pairs.tsv"
    path.write_text(text, encoding="utf-8")
    table = labelled_pairs(path, path, 9).tables[TRAIN]
    assert table["source"].to_pylist() == ["好的。", "他己经"]
    assert table["target"].to_pylist() == ["好的。", "他已经"]


def test_a_file_without_pairs_or_with_one_target_is_refused(tmp_path):
    """There would be nothing to train on, or nothing to score on."""
    with pytest.raises(InputError, match="has no pairs"):
        labelled_pairs(written(tmp_path / "none.tsv", [("",)]), None, 9)
    one = written(tmp_path / "one.tsv", PAIRS[:1] * 3)
    with pytest.raises(InputError, match="--held-out"):
        labelled_pairs(one, None, 9)
    assert labelled_pairs(one, one, 9).rows(TRAIN) == 3
    (tmp_path / "gb.tsv").write_bytes("他己\t他已\n".encode("gb18030"))
    with pytest.raises(InputError, match="UTF-8"):
        labelled_pairs(tmp_path / "gb.tsv", None, 9)


def test_columns_that_do_not_belong_together_are_refused(tmp_path):
    """Most sides have little in common; a few are counted."""
    rows = [("他己经来了。", "今天天气好"), ("今天天汽好", "我们走吧！"), ("你好", "你好")]
    with pytest.raises(InputError, match=r"2 of 3 pairs.*line 1\. Check that source and target"):
        labelled_pairs(written(tmp_path / "pairs.tsv", rows), None, 9)
    good = [(f"第{n}个句字。", f"第{n}个句子。") for n in range(9)]
    pairs = labelled_pairs(written(tmp_path / "pairs.tsv", [*good, *rows]), None, 9)
    assert "in 2 of 12 pairs, more than half" in pairs.describe_pairs()
    assert "line 10" in pairs.describe_pairs()


def test_a_file_that_is_not_there_is_named(dataset_path, tmp_path, capsys):
    """The training file, the held-out or watched one, a folder in place of these: one line, and
    that speaks of a dataset for the training file alone."""
    good = str(written(tmp_path / "pairs.tsv", PAIRS))
    data = [*("train", str(dataset_path)), "--watch"]
    for words, more in (
        (["sft", "none.tsv"], ", or a dataset that `cecdata build` wrote"),
        (["sft", good, "--held-out", "none.tsv"], ""),
        (["sft", good, "--held-out", "."], ""),
        ([*data, "none.tsv"], ""),
        ([*data, "."], ""),
    ):
        assert run(cli, [*words, "--out", str(tmp_path / "out")]) == 1
        said = f"Error: {words[-1]} is not a file: name a file of labelled pairs{more}\n"
        assert capsys.readouterr().err == said


def test_a_file_of_pairs_is_no_dataset(tmp_path, capsys):
    """Commands that need a dataset name the command that reads labelled pairs."""
    good = str(written(tmp_path / "pairs.tsv", PAIRS))
    for command in (["train", good, "--out", str(tmp_path / "out")], ["diagnose", good]):
        assert run(cli, command) == 1
        assert "is a file, but DATA must be a dataset" in capsys.readouterr().err


def test_held_out_targets_that_are_trained_on_are_counted(tmp_path):
    """A file given twice has scores of pairs that the policy was trained on, and a line says so."""
    path = written(tmp_path / "pairs.tsv", PAIRS)
    other = written(tmp_path / "other.tsv", [("明夭见。", "明天见。"), PAIRS[0], PAIRS[0]])
    told = labelled_pairs(path, other, 5).describe_pairs()
    assert "2 of 3 held-out pairs share their target with a training pair" in told
    clean = written(tmp_path / "clean.tsv", [("明夭见。", "明天见。")])
    assert "trained on" not in labelled_pairs(path, clean, 5).describe_pairs()


def test_all_pairs_of_a_target_are_on_one_side(tmp_path):
    """The split depends on the targets alone; every line is in one of the two parts."""
    path = written(tmp_path / "pairs.tsv", PAIRS)
    pairs = labelled_pairs(path, None, 5)
    parts = [pairs.tables[name].to_pylist() for name in (TRAIN, HELD_OUT)]
    assert sorted((r["source"], r["target"]) for part in parts for r in part) == sorted(PAIRS)
    train, held = ({row["target"] for row in part} for part in parts)
    assert not train & held
    assert len(held) == 2
    turned = labelled_pairs(written(tmp_path / "turned.tsv", PAIRS[::-1]), None, 5)
    assert {*turned.tables[HELD_OUT]["target"].to_pylist()} == held
    assert "1 without errors" in pairs.describe_pairs()
    assert len({(r["id"], r["copy"]) for part in parts for r in part}) == len(PAIRS)


def test_labelled_pairs_are_not_corrupted(tmp_path):
    """`data.fresh` is refused, and without it the table has the lines as they are."""
    pairs = labelled_pairs(written(tmp_path / "pairs.tsv", PAIRS), None, 5)
    with pytest.raises(UsageError, match=r"data\.fresh"):
        select_pairs(pairs, config.DataConfig(fresh=True), 40, 1)
    kept = select_pairs(pairs, config.DataConfig(), 40, 1)
    assert {(p.source, p.target) for p in kept.read_batch(0, len(kept))} <= {*PAIRS}


def test_the_command_trains_on_a_file(start, tmp_path, capsys):
    """A file in CSCD-NS's columns gives a run; a base model without a template is announced."""
    from safetensors.torch import load_file

    from cectrain.corrector import policy

    bare = policy.load(str(start))
    bare.tokenizer.chat_template = None
    for part in (bare.model, bare.tokenizer):
        part.save_pretrained(tmp_path / "bare")
    tokens = tmp_path / "bare" / "tokenizer.json"
    tokens.write_text(tokens.read_text("utf-8").replace("<|source|>", "<|other|>"), "utf-8")
    file = written(tmp_path / "train.tsv", [(str(int(a != b)), a, b) for a, b in PAIRS])
    argv = ["sft", str(file), "--out", str(tmp_path / "out"), "--model"]
    argv += [str(tmp_path / "bare"), "--set", "sft.batch=8", "--set", "sft.accumulation=2"]
    argv += ["--set", "sft.gradient_checkpointing=true", "--set", "policy.save_dtype=bfloat16"]
    assert run(cli, argv) == 0
    said = capsys.readouterr().err
    assert "23 labelled pairs for training" in said
    assert "has no chat template" in said
    summary = json.loads((tmp_path / "out" / "summary.json").read_text("utf-8"))
    assert summary["sft_steps"] == 9  # three passes over 23 pairs, 8 a step
    assert "heldout_exact_after_sft" in summary
    weights = load_file(tmp_path / "out" / "model" / "model.safetensors")
    assert {str(tensor.dtype) for tensor in weights.values()} == {"torch.bfloat16"}
    assert run(cli, argv) == 0
    assert "already holds the finished run" in capsys.readouterr().err


def test_settings_of_supervised_training_are_never_ignored(start, tmp_path, capsys):
    """`sft.steps` of --set or of one's own recipe wins over three passes; settings of PPO are
    refused. The end says of how many held-out sentences the rates are."""
    file = written(tmp_path / "train.tsv", PAIRS)
    recipe = tmp_path / "own.toml"
    recipe.write_text(f'[policy]\nname = "{start}"\n[sft]\nsteps = 2\nbatch = 4\n', "utf-8")
    common = ["sft", str(file), "--model", str(start), "--out"]
    for name, more, steps in (
        ("set", ("--set", "sft.steps=1"), 1),
        ("recipe", ("--recipe", str(recipe)), 2),
    ):
        assert run(cli, [*common, str(tmp_path / name), *more]) == 0
        said = capsys.readouterr()
        assert "of 2 wrong and 2 right held-out sentences, % | at start | after sft |\n" in said.out
        assert "| over_correction | " in said.out
        assert "2 held-out pairs and 2 right sentences are scored, none" in said.err
        summary = json.loads((tmp_path / name / "summary.json").read_text("utf-8"))
        assert summary["sft_steps"] == steps
    for setting in ("ppo.updates=10", "reward.alpha=0.4", "encoder=usem3"):
        assert run(cli, [*common, str(tmp_path / "none"), "--set", setting]) == 2
        assert "neither PPO nor a reward" in capsys.readouterr().err
    for name, *words in (
        ("sft.batch", "--set", "sft.batch=9", "--set", "sft.steps=0"),
        ("encoder", "--encoder", "usem3", "--set", "reward.reward=x:y"),
        ("ppo.groups", "--set", "ppo.groups=8", "--set", "ppo.updates=0"),
    ):
        assert run(cli, ["train", "none", "--out", "none", *words]) != 0
        assert f"Warning: {name} has no effect, as the run has" in capsys.readouterr().err


ROWS = [Pair(n, 0, source, target, "labelled") for n, (source, target) in enumerate(PAIRS[:6])]


def gradients(policy, passes, folder, loss_of=None, **more):
    loss_of = loss_of or make_loss(policy, "fp32", **more)
    loss, tokens = set_gradient(policy, loss_of, collate(policy, ROWS), passes, 1, check=True)
    return float(loss), tokens, {n: p.grad.clone() for n, p in policy.model.named_parameters()}


def same(first, second):
    assert first[0] == pytest.approx(second[0], rel=1e-6)
    assert first[1] == second[1]
    for name, gradient in first[2].items():
        torch.testing.assert_close(gradient, second[2][name], rtol=1e-4, atol=1e-7)


def test_the_table_splits_as_the_tokenizer(small_policy):
    """Characters, bytes of rare ones, placeholders and names of special tokens alike."""
    from cecdata.models.causal import encode_prompt
    from cectrain.corrector.policy import encode_target
    from cectrain.run.loss import make_character_tokens, tokenize
    from experiments.pretraining.model import placeholders

    policy = small_policy()
    texts = ["他己经来了。", "𠀀龘 a　B", "", "<|end|>好", "<0x41>", "é\u0301😀", *placeholders()]
    texts += ["".join(texts), f"请拨{placeholders()[0]}。"]
    for text in texts:
        wanted = (encode_prompt(policy, text), encode_target(policy, text))
        assert tokenize(policy, Pair(0, 0, text, text, "")) == wanted, text
    assert make_character_tokens(policy.tokenizer) is not None


def test_passes_add_up_to_one_gradient(small_policy, tmp_path):
    """Three passes, with or without kept activations, give the gradient of one."""
    whole = gradients(small_policy(), 1, tmp_path)
    same(gradients(small_policy(), 3, tmp_path), whole)
    policy = small_policy()
    policy.model.activation_checkpointing_enable()
    same(gradients(policy, 2, tmp_path, fast_forward=False), whole)


def test_neither_the_mask_nor_the_logits_of_the_prompt_are_needed(small_policy, tmp_path):
    """The loss and its gradient are those of transformers with both."""
    policy = small_policy()
    batch = collate(policy, ROWS)
    lengths = [len(s) + len(t) + 3 for s, t in PAIRS[:6]]
    mask = torch.tensor([[int(n < size) for n in range(max(lengths))] for size in lengths])
    expected = policy.model(**batch, attention_mask=mask).loss
    expected.backward()
    wanted = {n: p.grad.clone() for n, p in policy.model.named_parameters()}
    loss, tokens, found = gradients(policy, 1, tmp_path, fast_forward=False)
    same((loss, tokens, found), (expected.item(), tokens, wanted))


def test_a_full_device_ends_the_run_with_advice(small_policy, tmp_path, monkeypatch):
    """The message names the settings that save memory."""
    from cectrain.run import supervised as loop

    def full(_batch):
        raise torch.OutOfMemoryError("a device of this size is full")

    monkeypatch.setattr(loop, "make_loss", lambda *_, **__: full)
    policy = small_policy()
    optimizer = torch.optim.SGD(policy.model.parameters(), 0.1)
    batches = [collate(policy, ROWS)]
    told = config.SftConfig(steps=1), tmp_path, lambda _: 1.0
    with pytest.raises(CecError, match=r"this size is full.*sft\.accumulation"):
        loop.fit(policy, lambda _steps: batches, [optimizer], *told)


def test_the_rate_follows_the_size(small_policy):
    """A policy of the built-in size or below has 4e-4; a set rate is taken as it is."""
    policy = small_policy()
    assert choose_learning_rate(config.SftConfig(), policy) == 4e-4
    assert choose_learning_rate(config.SftConfig(learning_rate=0.1), policy) == 0.1
    assert config.load("consensus").sft.learning_rate is None


@pytest.mark.slow  # a quarter of a minute: three processes, each with all of torch
def test_two_ranks_share_the_pairs(start, tmp_path):
    """Two processes end with the weights of one, up to rounding."""
    from safetensors.torch import load_file

    root = Path(__file__).parents[2]
    file = written(tmp_path / "pairs.tsv", PAIRS)
    common = ["-m", "cectrain", "sft", str(file), "--model", str(start), "--set", "sft.steps=4"]
    common += ["--set", "sft.batch=6", "--set", 'sft.precision="fp32"']
    launch = ["-m", "accelerate.commands.launch", "--config_file"]
    launch += [str(root / "configs" / "accelerate" / "ddp.yaml"), "--num_processes", "2"]
    launch += ["--main_process_port", "0"]
    given = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    models = []
    for name, first in (("one", []), ("two", launch)):
        out = tmp_path / name
        done = subprocess.run(
            [sys.executable, *first, *common, "--out", str(out)],
            capture_output=True, text=True, timeout=300, env=given, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        models.append(load_file(out / "model" / "model.safetensors"))
    for name, weight in models[0].items():
        torch.testing.assert_close(weight, models[1][name], rtol=1e-4, atol=1e-5)


CONFIGS = Path(__file__).parents[2] / "configs" / "accelerate"
SETTINGS = [
    "ppo.groups=2", "ppo.candidates=2", "ppo.updates=2", "ppo.save_every=1", "ppo.eval_every=1",
    "ppo.new_tokens=4", "ppo.baseline=value", "ppo.whiten=none", "ppo.learning_rate=0.01",
    "ppo.oversampling=1", "ppo.supervised=0", "ppo.ppo_only_share=0.0", "sft.steps=0",
    "data.held_out=4", "data.held_out_clean=2", "data.limit=6", "data.fresh=false",
    "policy.max_chars=40", 'constants="given"', "reward.tau=0.0", "diagnose_pairs=20",
]  # fmt: skip


def launched(name, dataset_path, start, out):
    """Start two ranks with a shipped launcher configuration and return the report of each."""
    settings = json.dumps([*SETTINGS, f'policy.name="{start}"'])
    launch = [
        sys.executable, "-m", "accelerate.commands.launch", "--config_file",
        str(CONFIGS / f"{name}.yaml"), "--num_processes", "2", "--main_process_port", "0",
    ]  # fmt: skip
    worker = [str(Path(__file__).parent / "rank.py"), str(dataset_path), str(out), settings]
    path = os.pathsep.join([str(CONFIGS.parents[1]), os.environ.get("PYTHONPATH", "")])
    given = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [*launch, *worker], capture_output=True, text=True, timeout=300, env=given, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads((out / f"rank-{rank}.json").read_text("utf-8")) for rank in (0, 1)]


def proved(found):
    """Assert that all ranks end with the one policy that is written, and stop together."""
    first, other = found
    assert first["held"] == other["held"] == first["written"]
    assert first["same"]
    assert other["same"]
    assert (first["told"], other["told"]) == (True, False)
    assert first["batches"] == 2


@pytest.mark.slow  # half a minute: two processes, each with all of torch
def test_two_processes_make_one_policy(dataset_path, start, tmp_path):
    """Each rank has a copy of the weights; the steps, the model and the ends are the same."""
    proved(launched("ddp", dataset_path, start, tmp_path))


def test_what_a_policy_cannot_read_is_read_as_in_a_corrector(tmp_path):
    """In pairs to train on, in held-out ones, and in the answers to them that are written."""
    policy = load("builtin", device="cpu")
    rows = [
        ("他己经来了。😀①", "他已经来了。😀①"),
        ("天气很好。", "天气很好。"),
        ("是吗？👍", "是吗？👍"),
    ]
    pairs = labelled_pairs(written(tmp_path / "pairs.tsv", rows), None, 1)
    kept = select_pairs(pairs, config.DataConfig(), 40, 1)
    read = make_reader(policy)
    assert read("他\u200b😀来㻂") == "他·来某"
    everything = [Pair(n, 0, *row, "labelled") for n, row in enumerate(rows)]
    readable = replace(kept, read=read).take(range(len(kept)), 0)
    assert all(read(pair.source) == pair.source for pair in readable)
    scores = evaluate(policy, everything, [])
    plain = [Pair(n, 0, read(s), read(t), "labelled") for n, (s, t) in enumerate(rows)]
    assert scores == evaluate(policy, plain, [])
    assert "\ufffd" not in "".join(scores.answers)
    assert scores.over_correction == 0
    job = SimpleNamespace(policy=policy, heldout_pairs=everything, clean=["走吧😀"])
    answers = replace(scores, answers=(*scores.answers, "走吧·"))
    lines = results._format_answers(
        job, SimpleNamespace(before=answers, after=answers, best=answers)
    )
    for line in map(json.loads, lines.splitlines()):
        assert line["operator"] == "labelled" or line["target"] == line["best"] == "走吧·"
        assert line["target"] == read(line["target"])
