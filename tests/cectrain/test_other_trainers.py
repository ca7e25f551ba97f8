"""Other trainers run on an export with the rewards of this project."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

from tiny_models import qwen3

from cecdata.shards.export import export

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_trl_trains_by_the_file_of_twenty_lines(dataset_path, tmp_path):
    """`trl grpo --config` reads it as it is, apart from the model and what a test has time for;
    each reward is logged, and exact matches of random weights are 0."""
    file = EXAMPLES / "grpo.yaml"
    assert len(file.read_text("utf-8").splitlines()) <= 20
    export(dataset_path, "train", tmp_path / "verl.parquet", "verl")
    model = qwen3(tmp_path / "tiny")
    small = {
        "model_name_or_path": model, "max_steps": 1, "max_completion_length": 8,
        "gradient_accumulation_steps": 1, "logging_steps": 1, "use_cpu": "true",
    }  # fmt: skip
    flags = [part for name, value in small.items() for part in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "trl.scripts.grpo", "--config", str(file), *flags]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (state,) = tmp_path.glob("out/grpo/checkpoint-1/trainer_state.json")
    logged = json.loads(state.read_text("utf-8"))["log_history"][0]
    names = ("exact", "pair", "consensus", "changed")
    values = {name: logged[f"rewards/reward_{name}/mean"] for name in names}
    assert values["exact"] == 0
    assert values["changed"] == 1
    assert all(0 <= value <= 1 for value in values.values())


@pytest.fixture
def environment(monkeypatch):
    """The module of the example, where verifiers is installed."""
    pytest.importorskip("verifiers.v1", reason="verifiers is not installed")
    monkeypatch.syspath_prepend(str(EXAMPLES / "verifiers_env"))
    import cec_zero_env

    return cec_zero_env


def make_episode(task, answers):
    """Return a finished episode as a policy with these answers would leave it."""
    import verifiers.v1 as vf

    record = vf.TraceTask(type=type(task).__name__, data=task.data)
    agent = vf.AgentInfo(config=vf.AgentConfig())
    turns = [vf.AssistantMessage(content=f"{answer}\n") for answer in answers]
    nodes = [[vf.MessageNode(message=turn, sampled=True)] for turn in turns]
    traces = [vf.Trace(task=record, agent=agent, nodes=node) for node in nodes]
    return vf.Episode(task=record, traces=traces)


def test_verifiers_finds_the_environment(environment):
    """Its loader takes the taskset and the environment from one short module, by its name."""
    from verifiers.v1.utils.loaders import load_environment

    lines = (EXAMPLES / "verifiers_env/cec_zero_env.py").read_text("utf-8").splitlines()
    assert len(lines) <= 100
    settings = environment.CorrectionEnvConfig(taskset={"id": "cec-zero-env"}, n=2)
    assert isinstance(load_environment(settings), environment.CorrectionEnv)


def list_tasks(environment, corpus, count, **settings):
    config = environment.CorrectionTasksetConfig(id="cec-zero-env", corpus=corpus, **settings)
    return [task.data for task in environment.CorrectionTaskset(config).take(count)]


def test_its_tasks_are_a_function_of_seed_and_sentence(environment, tmp_path):
    """The second pass has other errors in the same targets; what is no sentence is left out."""
    corpus, again = tmp_path / "clean.txt", tmp_path / "again.txt"
    texts = ["他的病情已经好转。", "今天的天气很好，我们去公园吧。"]
    corpus.write_text("\n".join([texts[0], "…", texts[1]]), "utf-8")
    again.write_text("\n".join(reversed(texts)), "utf-8")
    tasks = list_tasks(environment, corpus, 4)
    assert [task.target for task in tasks] == texts * 2
    assert [task.id.split("-")[0] for task in tasks] == ["42", "42", "43", "43"]
    assert {task.source for task in tasks[:2]} != {task.source for task in tasks[2:]}
    other = {task.id: task.source for task in list_tasks(environment, again, 4)}
    assert other == {task.id: task.source for task in tasks}
    assert tasks[0].source in tasks[0].prompt


def test_its_rewards_are_ours(environment, encoder):
    """Of made traces: α r_pair + (1 − α) r_cons of the group, exact, useful edits, the price."""
    import asyncio

    from cectrain.config import RewardConfig
    from cectrain.reward.group_reward import GroupReward
    from cectrain.reward.terms import useful_rewards

    source, target = "他的病情己经好传。", "他的病情已经好转。"
    answers = [target, source, "他的病情已经好传。", "", "她的病情已经好转。"]
    weights = {"exact": 0.5, "pair": 0.2, "consensus": 0.2, "useful": 0.1, "changed": -0.05}
    row = {"id": 1, "source": source, "target": target}
    task = environment.CorrectionTask(environment.make_data(row, 42))
    settings = environment.CorrectionEnvConfig(taskset={"id": "cec-zero-env"}, n=5, **weights)
    episode = make_episode(task, answers)
    asyncio.run(environment.CorrectionEnv(settings).finalize(task, episode))
    ours, _ = GroupReward(encoder, RewardConfig(), 5).score([source], [target], [answers])
    useful = useful_rewards([source], [target], [answers])
    for place, trace in enumerate(episode.traces):
        exact, changed = answers[place] == target, answers[place] != source
        wanted = 0.4 * ours[0, place] + 0.5 * exact + 0.1 * useful[0, place] - 0.05 * changed
        assert trace.reward == pytest.approx(wanted)
        assert list(trace.rewards) == ["exact", "changed", "pair", "consensus", "useful"]
