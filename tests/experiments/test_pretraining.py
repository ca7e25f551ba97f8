# ruff: noqa: E402 - what is not installed is asked first
"""Pretraining: the fast pass equals transformers, steps depend on the seed alone, kills resume."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from cecdata.common.errors import InputError, RefusedError, UsageError, VerificationError
from cecdata.corpus.ids import is_validation
from cecdata.models.causal import encode_prompt
from cectrain.config import SftConfig
from cectrain.corrector.policy import Policy
from cectrain.data.shards import Pair
from cectrain.model import policy, qwen3_forward
from cectrain.run import loss as losses
from cectrain.run.supervised import fit
from experiments.pretraining import muon
from experiments.pretraining.config import Origin, PretrainConfig, Stage, load
from experiments.pretraining.model import character_tokenizer, small_qwen3
from experiments.pretraining.pairs import Batches, held_out_pairs
from experiments.pretraining.pool import make_pool
from experiments.pretraining.run import (
    _hits,
    embeddings,
    exact_greedy,
    optimizers,
    prepared,
    pretrain,
)
from experiments.pretraining.ship import ship

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "cecdata" / "sample"
PAIRS = [
    Pair(1, 0, "己经来了", "已经来了", "homophone"),
    Pair(2, 0, "他𠀀<PHONE>", "他来", "noise"),
    Pair(3, 0, "今天天汽很好。", "今天天气很好。", "radical"),
]
TINY = """
hidden = 64
layers = 1
max_chars = 40
held_out = 20
watch_every = 4
save_every = 3
log_every = 1
[[stages]]
kind = "copy"
steps = 2
tokens = 200
shortest = 4
longest = 8
[[stages]]
kind = "pairs"
steps = 6
tokens = 300
longest = 30
density = 2.0
mixed = 0.5
[origins]
news = { licence = "ours" }
cars = { licence = "ours", most = 60 }
"""


def tiny_policy(seed=7):
    model, tokenizer = small_qwen3(character_tokenizer(), seed, hidden=64, layers=2)
    return Policy(model, tokenizer, "1")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Sentences of the sample as a table with origins, with faults of each kind among them."""
    path = tmp_path_factory.mktemp("corpus") / "clean.jsonl"
    rows = [
        {"text": line, "origin": name}
        for name in ("news", "cars", "games")
        for line in (SAMPLE / f"{name}.txt").read_text("utf-8").splitlines()[:120]
    ]
    rows += [{"text": text, "origin": "news"} for text in ("𠀀字不在表里的句子。", "x = f(y) 好")]
    path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    return path


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    path.write_text(TINY, "utf-8")
    return path


@pytest.fixture(scope="module")
def pool(corpus, recipe, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pool")
    return make_pool([str(corpus)], [], load(str(recipe)), folder)


@pytest.fixture(scope="module")
def finished(corpus, recipe, tmp_path_factory):
    """One run without an interruption."""
    out = tmp_path_factory.mktemp("run") / "out"
    return out, pretrain([str(corpus)], out, load(str(recipe)))


def test_the_fast_pass_is_the_model_s_own():
    """The loss and every gradient equal those of transformers up to the rounding of fp32."""
    tiny = tiny_policy()
    batch = losses.collate(tiny, PAIRS)
    gradients = []
    for loss in (
        tiny.model(**batch).loss,
        qwen3_forward.answer_loss(tiny.model, batch["input_ids"], batch["labels"], torch.float32),
    ):
        tiny.model.zero_grad()
        loss.backward()
        gradients.append({n: p.grad.clone() for n, p in tiny.model.named_parameters()})
    assert qwen3_forward.is_supported(tiny.model)
    for name, wanted in gradients[0].items():
        assert torch.allclose(gradients[1][name], wanted, atol=2e-6, rtol=2e-4), name


def test_one_pass_sees_what_greedy_decoding_takes():
    """The pass agrees with decoding token by token; a pair is exact if all tokens hit."""
    tiny = tiny_policy()
    asked, end = encode_prompt(tiny, "他己经来了"), tiny.tokenizer.eos_token_id
    written = []
    for _ in range(6):  # transformers' own pass over one beginning after the other
        logits = tiny.model(input_ids=torch.tensor([asked + written])).logits
        written.append(int(logits[0, -1].argmax()))
    ids = torch.tensor([asked + written + [end]])
    labels = ids.clone()
    labels[:, : len(asked)] = -100

    def hits_of(ids):
        return _hits(tiny, {"input_ids": ids, "labels": labels}, "fp32").tolist()

    assert hits_of(ids)[:6] == [True] * 6
    changed = ids.clone()
    changed[0, len(asked) + 2] += 1
    labels[0, len(asked) + 2] += 1
    assert not hits_of(changed)[2]
    assert exact_greedy(tiny, PAIRS, "fp32") == [False] * len(PAIRS)


def test_every_sentence_is_kept_or_left_out_for_a_reason(pool):
    """read = kept + left out; unlisted origins, caps and rare characters are counted."""
    kept, left = pool.counts["kept"], pool.counts["left_out"]
    assert pool.counts["read"] == sum(kept.values()) + sum(left.values())
    assert kept["cars"] == 60
    assert left["origin not listed"] == 120
    assert left["few Han characters, or rare ones"] >= 2
    assert set(pool.table.column("origin").to_pylist()) == {"news", "cars"}
    assert not {*pool.watched.column("id").to_pylist()} & {*pool.trained.column("id").to_pylist()}


def test_a_benchmark_s_sentences_are_left_out(corpus, recipe, tmp_path):
    """A sentence that shares 13 characters with a benchmark is left out."""
    known = [s for s in (SAMPLE / "news.txt").read_text("utf-8").splitlines() if len(s) < 40][:9]
    bench = tmp_path / "bench.txt"
    bench.write_text("\n".join(known), "utf-8")
    made_pool = make_pool([str(corpus)], [str(bench)], load(str(recipe)), tmp_path)
    assert made_pool.counts["left_out"]["contaminated"] >= 9
    assert not set(known) & set(made_pool.table.column("text").to_pylist())


def test_too_little_text_is_said_with_the_reasons(tmp_path, recipe):
    """If the recipe lists no origin of the corpus, the message gives the reason."""
    path = tmp_path / "other.jsonl"
    path.write_text('{"text": "今天天气很好。", "origin": "web"}\n', "utf-8")
    with pytest.raises(InputError, match="origin not listed 1"):
        make_pool([str(path)], [], load(str(recipe)), tmp_path)


def test_a_step_s_pairs_depend_on_seed_and_step_alone(pool, recipe):
    """Steps may be asked for in any order; another seed gives other pairs."""
    config = load(str(recipe))
    first, second = Batches(pool.trained, config), Batches(pool.trained, config)
    walked = [first.at(step) for step in range(config.steps)]
    assert [second.at(step) for step in reversed(range(config.steps))] == walked[::-1]
    other = Batches(pool.trained, replace(config, seed=137))
    assert all(other.at(step) != walked[step] for step in range(config.steps))


def test_denoising_replaces_a_share_of_the_characters(pool, tmp_path):
    """A stage `denoise` replaces about its share of characters in sources of the same length."""
    path = tmp_path / "denoise.toml"
    stage = '[[stages]]\nkind = "denoise"\nsteps = 30\ntokens = 600\nreplaced = 0.3\nclean = 0.25\n'
    path.write_text(f'{stage}[origins]\nnews = {{ licence = "ours" }}\n', "utf-8")
    config = load(str(path))
    batches = Batches(pool.trained, config)
    pairs = [pair for step in range(config.steps) for pair in batches.at(step)]
    assert all(len(pair.source) == len(pair.target) for pair in pairs)
    noisy = [pair for pair in pairs if pair.operator == "denoise"]
    assert 0.68 < len(noisy) / len(pairs) < 0.82
    both = [both for x in noisy for both in zip(x.source, x.target, strict=True)]
    assert 0.27 < sum(one != other for one, other in both) / len(both) < 0.33
    assert pairs == [pair for step in range(config.steps) for pair in batches.at(step)]


def test_an_epoch_walks_every_sentence_once_and_corrupts_anew(pool):
    """In two epochs each sentence occurs twice, mostly with different sources."""
    rows = len(pool.trained)
    stage = Stage("pairs", 400, tokens=64, longest=40)
    config = PretrainConfig(origins={"news": Origin("ours")}, stages=(stage,))
    batches = Batches(pool.trained, config)
    seen = [pair for step in range(400) for pair in batches.at(step)]
    assert len(seen) >= 2 * rows
    counts = np.unique([pair.id for pair in seen], return_counts=True)[1]
    assert len(counts) == rows
    assert counts.max() - counts.min() <= 1
    sources = {}
    for pair in seen:
        sources.setdefault(pair.target, set()).add(pair.source)
    assert sum(len(texts) > 1 for texts in sources.values()) > 0.8 * rows


def test_rows_of_words_and_signs_join_a_stage(pool):
    """Both have their shares of the rows; words are corrupted too, signs only copied."""
    stage = Stage("pairs", 64, tokens=400, longest=40, words=0.3, scattered=0.2)
    config = PretrainConfig(origins={"news": Origin("ours")}, stages=(stage,))
    batches = Batches(pool.trained, config)
    pairs = [pair for step in range(64) for pair in batches.at(step)]
    known = set(pool.table.column("text").to_pylist())
    added = [pair for pair in pairs if pair.target not in known]
    signs = [pair for pair in added if pair.operator == "unchanged"]
    assert len(added) == pytest.approx(0.5 * len(pairs), abs=2)
    assert len(signs) == pytest.approx(0.2 * len(pairs), abs=2)
    assert all(pair.source == pair.target for pair in signs)
    assert all(len(pair.target) <= 40 for pair in added)
    assert sum(pair.source != pair.target for pair in added) > 0.5 * len(added)


def test_held_out_pairs_are_wrong_and_not_those_of_a_step(pool, recipe):
    """Held-out pairs have errors in nearly all rows and are the same every time."""
    config = load(str(recipe))
    pairs = held_out_pairs(pool.watched, config)
    assert len(pairs) == config.held_out
    assert pairs == held_out_pairs(pool.watched, config)
    assert sum(pair.source != pair.target for pair in pairs) >= 0.9 * len(pairs)


def test_characters_of_one_sound_start_near():
    """他 is nearer to 她 (same syllable, a shared part) than to 国; the seed decides."""
    tokenizer = character_tokenizer()
    table = embeddings(tokenizer, 64, 42)
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    he, she, land = (unit[tokenizer.get_vocab()[c]] for c in "他她国")
    assert he @ she > 0.3 > he @ land
    assert np.array_equal(table, embeddings(tokenizer, 64, 42))
    assert not np.array_equal(table, embeddings(tokenizer, 64, 137))


def test_a_finished_run_is_left_alone_and_another_refused(finished, corpus, recipe):
    """The same call reads the summary; another seed in the same folder is refused."""
    out, summary = finished
    lines = []
    assert pretrain([str(corpus)], out, load(str(recipe)), tell=lines.append) == summary
    assert "finished" in lines[0]
    with pytest.raises(RefusedError, match="seed"):
        pretrain([str(corpus)], out, load(str(recipe), seed=137))
    log = [json.loads(line) for line in (out / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert [x["step"] for x in log if x["phase"] == "heldout"] == [4, 8]
    assert [x["step"] for x in log if x["phase"] == "sft"] == list(range(1, 9))


@pytest.mark.slow  # a process with all of torch
def test_a_killed_run_ends_with_the_same_weights(finished, corpus, recipe, tmp_path):
    """A run killed after its first checkpoint and restarted gives the same model, bit for bit."""
    out = tmp_path / "out"
    code = (
        "import sys, torch; torch.set_num_threads(1); "
        "from cecdata.common.command_group import start; from experiments.__main__ import cli; "
        f"sys.argv = ['experiments', 'pretrain', {str(corpus)!r}, '--out', {str(out)!r}, "
        f"'--recipe', {str(recipe)!r}]; start(cli)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment) as running:
        first = out / ".cecdata" / "pretrain" / "checkpoint-3" / "checkpoint.json"
        while not first.is_file() and running.poll() is None:
            time.sleep(0.02)
        running.send_signal(signal.SIGKILL)
    assert not (out / "summary.json").exists()
    lines = []
    summary = pretrain([str(corpus)], out, load(str(recipe)), tell=lines.append)
    assert any("continuing from step" in line for line in lines)
    assert summary["model_sha256"] == finished[1]["model_sha256"]
    steps = [json.loads(line) for line in (out / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert [x["step"] for x in steps if x["phase"] == "sft"] == list(range(1, 9))


def test_a_worker_changes_no_weight(pool, recipe, tmp_path):
    """Batches that a process prepares ahead give the weights of batches made in between, bit for
    bit, and leave the global generator as it was."""
    config = load(str(recipe))
    trained = []
    for name, ahead in (("with", True), ("without", False)):
        policy, batches = tiny_policy(), Batches(pool.trained, config)

        def batch_of(step, policy=policy, batches=batches):
            return losses.collate(policy, batches.at(step))

        def of(steps, ahead=ahead, batch_of=batch_of):
            return prepared(batch_of, steps) if ahead else map(batch_of, steps)

        told = SftConfig(steps=config.steps), tmp_path / name, config.share
        state = torch.get_rng_state()
        fit(policy, of, optimizers(policy, config), *told)
        assert torch.equal(torch.get_rng_state(), state)
        trained.append(policy.model.state_dict())
    assert all(torch.equal(value, trained[1][name]) for name, value in trained[0].items())


def test_an_error_of_the_worker_is_raised_here():
    """The batches before it arrive in order; then its type and its message are raised."""

    def batch_of(step):
        if step == 2:
            raise ValueError("row 7 is wrong")
        return {"labels": torch.tensor([step])}

    batches = iter(prepared(batch_of, range(5)))
    assert [int(next(batches)["labels"]) for _ in range(2)] == [0, 1]
    with pytest.raises(ValueError, match="row 7 is wrong"):
        next(batches)


@pytest.mark.slow  # it scores; what is refused is tried below
def test_shipped_weights_are_fp16_scored_and_named_by_their_hash(finished, dataset_path, tmp_path):
    """The configuration says fp32; the card has the data, the curve, the scores and the hash."""
    out, _ = finished
    target = tmp_path / "weights"
    scores = ship(out, target, dataset_path)
    assert scores["differ"] <= 2
    text = (target / "README.md").read_text("utf-8")
    digest = hashlib.sha256((target / "model.safetensors").read_bytes()).hexdigest()
    assert digest in text
    assert "| news | ours |" in text
    assert "{" not in text
    assert json.loads((target / "config.json").read_text("utf-8"))["dtype"] == "float32"
    assert (target / "model.safetensors").stat().st_size < 1_400_000
    loaded = policy.load_policy(policy.PolicyConfig(name=str(target)))
    assert all(p.dtype == torch.float32 for p in loaded.model.parameters())


def test_an_unfinished_or_changed_run_is_not_shipped(finished, dataset_path, tmp_path):
    """A run without a summary, or with other weights than its summary names, is refused."""
    with pytest.raises(InputError, match="no finished pretraining"):
        ship(tmp_path, tmp_path / "weights", dataset_path)
    changed = tmp_path / "changed"
    shutil.copytree(finished[0], changed)
    (changed / "model" / "more.safetensors").write_bytes(b"x")
    with pytest.raises(VerificationError, match="the weights differ"):
        ship(changed, tmp_path / "weights", dataset_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour = 1", "no setting 'colour'"),
        ("seed = -1", "seed"),
        ('stages = [{kind = "copies", steps = 1}]', "copy"),
        ('stages = [{kind = "copy", steps = 1, lenght = 3}]', "longest|lenght"),
        ('seed = "one"', "must be a whole number"),
        ("stages = []", "stages"),
        ("max_chars = 8", "max_chars"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(text, message, tmp_path):
    """The message names an unknown key, a wrong type or an impossible number."""
    path = tmp_path / "bad.toml"
    kept = "" if "stages" in text else '\n[[stages]]\nkind = "copy"\nsteps = 1\n'
    path.write_text(f'{text}{kept}\n[origins]\nnews = {{ licence = "ours" }}\n', "utf-8")
    with pytest.raises(UsageError, match=message):
        load(str(path))
    with pytest.raises(UsageError, match="did you mean 'pretrain'"):
        load("preterain")


def test_a_run_starts_from_a_policy(finished, corpus, recipe, tmp_path):
    """With rates of nothing the weights stay those of the start; without one they are others."""
    start, summary = finished
    still = tmp_path / "still.toml"
    text = recipe.read_text("utf-8")
    still.write_text("matrix_rate = 0.0\nrate = 0.0\nweight_decay = 0.0\n" + text, "utf-8")
    out = tmp_path / "out"
    again = pretrain([str(corpus)], out, load(str(still)), start=str(start))
    assert again["model_sha256"] == summary["model_sha256"]
    with pytest.raises(RefusedError, match="start"):
        pretrain([str(corpus)], out, load(str(still)))


def test_sentences_for_other_evaluations_are_left_out(corpus, recipe, tmp_path):
    """Those that `is_validation` chooses by id are in no part of the pool, and are counted."""
    text = "evaluation = 0.25\n" + recipe.read_text("utf-8")
    (tmp_path / "some.toml").write_text(text, "utf-8")
    pool = make_pool([str(corpus)], [], load(str(tmp_path / "some.toml")), tmp_path)
    assert not is_validation(pool.table.column("id").to_numpy(), 0.25).any()
    assert pool.counts["left_out"]["kept for evaluation"] > 0
    kept, left_out = pool.counts["kept"].values(), pool.counts["left_out"].values()
    assert pool.counts["read"] == sum(kept) + sum(left_out)


SHAPES = ((12, 8), (8, 12), (8, 8))


def stepped(kind, steps=3):
    """Return what `steps` steps of a kind of Muon add to random matrices."""
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(shape, generator=generator) for shape in SHAPES]
    weights = [torch.nn.Parameter(value.clone()) for value in start]
    optimizer = kind(weights, 0.02, weight_decay=0.01)
    for _ in range(steps):
        for weight in weights:
            weight.grad = torch.randn(weight.shape, generator=generator)
        optimizer.step()
    return [w.detach() - value for w, value in zip(weights, start, strict=True)]


def test_steps_of_muon_in_bf16_have_the_bits_of_torch(monkeypatch):
    monkeypatch.setattr(muon, "pick_dtype", lambda: torch.bfloat16)
    pairs = zip(stepped(muon.Muon), stepped(torch.optim.Muon), strict=True)
    assert all(torch.equal(ours, theirs) for ours, theirs in pairs)


def test_steps_of_muon_in_fp32_differ_only_by_the_rounding_of_bf16(monkeypatch):
    monkeypatch.setattr(muon, "pick_dtype", lambda: torch.float32)
    pairs = zip(stepped(muon.Muon), stepped(torch.optim.Muon), strict=True)
    for ours, theirs in pairs:
        assert not torch.equal(ours, theirs)
        assert (ours - theirs).norm() < 0.02 * theirs.norm()
