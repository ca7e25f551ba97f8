"""The functions of cec.yaml: cecbench's rows and prompt, its reading of answers, its scores.

The prompt is one text, its instruction before the sentence, because a task of lm-evaluation-harness
asks with one message.
"""

from collections.abc import Sequence

import datasets

import cecbench
from cecbench import prompts
from cecbench.benchmarks.locate import load, sample
from cecbench.systems.extract import extract

Texts = tuple[str, str, str]  # source, target, answer


def rows(benchmark: str = "lemon/gam", limit: int = 0, **_: object) -> dict[str, datasets.Dataset]:
    """Return the rows of a benchmark or a file, or a sample of them."""
    found = sample(load(benchmark).rows, int(limit))
    columns = {name: [getattr(row, name) for row in found] for name in ("id", "source", "target")}
    return {"test": datasets.Dataset.from_dict(columns)}


def question(row: dict[str, str]) -> str:
    """Return the prompt as one text."""
    return "\n\n".join(message["content"] for message in prompts.messages(row["source"])) + "\n"


def answer(row: dict[str, str], results: Sequence[str]) -> dict[str, Texts]:
    """Return the texts that each metric needs of a row."""
    texts = row["source"], row["target"], extract(results[0], row["source"]).text
    return {"headline": texts, "over_correction": texts}


def headline(texts: Sequence[Texts]) -> float:
    """Return the main number of the CSCD-NS scorer: F1 of corrected sentences, in percent."""
    return cecbench.score(*zip(*texts, strict=True)).headline or 0.0


def over_correction(texts: Sequence[Texts]) -> float:
    """Return the share of error-free sentences that the model changed."""
    values = cecbench.score(*zip(*texts, strict=True)).values
    return float(values["behaviour.over_correction_rate"] or 0)
