"""Chinese spelling correction as an environment of verifiers: endless pairs, rewarded in groups.

    pip install ./examples/verifiers_env
    vf-eval cec-zero-env --model MODEL --select.limit 20 --env.taskset.corpus FILE.txt --no-push

An episode is a group of answers to one source, because the consensus term compares them.
"""

import asyncio
from collections.abc import Iterator
from importlib.resources import files
from itertools import count
from pathlib import Path

import verifiers.v1 as vf
from pydantic import Field

import cecdata
from cecdata.common.errors import InputError
from cecdata.models.prompts import make_messages
from cectrain.other_trainers import score_group

__all__ = ["CorrectionEnv", "CorrectionTaskset"]


class CorrectionData(vf.TaskData):
    source: str
    target: str


class CorrectionTask(vf.Task[CorrectionData]):
    """One source with errors; its rewards need the whole group, so the environment gives them."""


class CorrectionTasksetConfig(vf.TasksetConfig):
    """The clean sentences, a line each, and how errors are drawn."""

    corpus: Path = Path(str(files("cecdata") / "sample/news.txt"))
    recipe: str = "typed"
    seed: int = 42


class CorrectionTaskset(vf.Taskset[CorrectionTask, CorrectionTasksetConfig]):
    """The sentences again and again, each pass with other errors: a task is (seed, id)."""

    INFINITE = True

    def load(self) -> Iterator[CorrectionTask]:
        sentences = self.config.corpus.read_text("utf-8").split("\n")
        for turn in count():
            seed, pairs = self.config.seed + turn, 0
            for sentence in sentences:
                try:
                    rows = cecdata.perturb(sentence, self.config.recipe, seed=seed, copies=1)
                except InputError:
                    continue
                for row in rows:
                    pairs += 1
                    yield CorrectionTask(make_data(row, seed), self.config.task)
            if not pairs:
                raise InputError(f"{self.config.corpus} has no sentence: a line each is needed")


def make_data(row: dict[str, object], seed: int) -> CorrectionData:
    """Return a pair with the question of cecdata's own prompt."""
    system, user = (turn["content"] for turn in make_messages(row["source"]))
    asked = {"id": f"{seed}-{row['id']}", "prompt": user, "system_prompt": system}
    return CorrectionData(source=row["source"], target=row["target"], **asked)


class CorrectionEnvConfig(vf.EnvConfig):
    """The size of a group, and the weight of each value: `changed` is the price of a change."""

    agent: vf.AgentConfig = vf.AgentConfig(
        harness={"id": "null"}, runtime=vf.SubprocessConfig(), max_turns=1
    )
    n: int = Field(8, ge=2)
    exact: float = 0.5
    pair: float = 0.25
    consensus: float = 0.25
    useful: float = 0.0
    changed: float = -0.05


class CorrectionEnv(vf.Env[CorrectionEnvConfig]):
    """Asks for the answers of a group, and rewards them together."""

    async def run(self, task: CorrectionTask, agents: vf.Agents) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self.config.n):
                group.create_task(agents.agent.run(task))

    async def finalize(self, task: CorrectionTask, episode: vf.Episode) -> None:
        data, answers = task.data, [trace.last_reply for trace in episode.traces]
        names = [name for name in ("pair", "consensus", "useful") if getattr(self.config, name)]
        values = await asyncio.to_thread(score_group, data.source, data.target, answers, names)
        for name, column in values.items():
            for trace, value in zip(episode.traces, column, strict=True):
                trace.record_reward(name, value, getattr(self.config, name))
