"""Chinese spelling correction as a task of Inspect (`pip install inspect-ai`), scored by cecbench.

    inspect eval examples/inspect_task.py --model openai/gpt-4o -T benchmark=own.tsv -T limit=300

The prompt is cecbench's, the answer is read as cecbench reads it, and the metrics are the headline
of the scorer and the share of error-free sentences changed, as `cecbench run` prints them.
"""

from collections.abc import Sequence

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import TaskState, generate

import cecbench.scorers
from cecbench import prompts
from cecbench.benchmarks.locate import load, sample
from cecbench.systems.extract import extract

ROLES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


@task
def chinese_spelling(
    benchmark: str = "lemon/gam", limit: int = 0, prompt: str = prompts.DEFAULT, by: str = "cscd"
) -> Task:
    """Return the task of a benchmark or a file, with a sample of `limit` rows; 0: all of them."""
    samples = [
        Sample(
            id=row.id,
            input=[
                ROLES[message["role"]](content=message["content"])
                for message in prompts.messages(row.source, prompt)
            ],
            target=row.target,
            metadata={"source": row.source},
        )
        for row in sample(load(benchmark).rows, int(limit))
    ]
    return Task(dataset=samples, solver=generate(temperature=0.0), scorer=correction(by))


def scored(scores: Sequence[SampleScore], by: str) -> cecbench.scorers.Score:
    """Return cecbench's score of the samples."""
    rows = [(one.score.metadata, one.score.answer) for one in scores]
    sources, targets = ([texts[side] for texts, _ in rows] for side in ("source", "target"))
    return cecbench.score(sources, targets, [answer for _, answer in rows], scorer=by)


@metric
def headline(by: str) -> Metric:
    """The main number of a published scorer, such as F1 in percent."""

    def value(scores: list[SampleScore]) -> float:
        return scored(scores, by).headline or 0.0

    return value


@metric
def over_correction(by: str) -> Metric:
    """The share of error-free sentences that the model changed."""

    def value(scores: list[SampleScore]) -> float:
        return float(scored(scores, by).values["behaviour.over_correction_rate"] or 0)

    return value


def correction(by: str) -> Scorer:
    """Return the scorer of samples, whose metrics are cecbench's."""

    @scorer(name=by, metrics=[headline(by), over_correction(by)])
    def answers() -> Scorer:
        async def read(state: TaskState, target: Target) -> Score:
            source = state.metadata["source"]
            found = extract(state.output.completion, source)
            texts = {"source": source, "target": target.text, "status": found.status}
            return Score(value=found.text == target.text, answer=found.text, metadata=texts)

        return read

    return answers()
