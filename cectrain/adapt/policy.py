"""The policy of a field: the built-in one, trained further on errors in sentences of the field."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from cecdata.builds.build import build
from cecdata.common.durable import write_text
from cecdata.common.progress import step
from cecdata.config import load as load_data
from cectrain import config
from cectrain.adapt.text import FieldText
from cectrain.corrector.folder import MODEL

RECIPE = "warm-consensus"
READ = 40_000  # sentences; more steps than these suffice for are not taken
COPIES = 4  # pairs of a sentence, from which each step draws with fresh errors


def steps_for(sentences: int) -> int:
    """Return the supervised steps for a text of this size.

    >>> [steps_for(count) for count in (100, 400, 3_000, 22_000, 1_000_000)]
    [40, 80, 196, 311, 400]
    """
    return max(40, min(400, round(40 * math.log2(sentences / 100))))


def train_policy(text: FieldText, without: Collection[str], work: Path, seed: int) -> Path:
    """Return the folder of the model that was trained on all sentences but some.

    work: a folder for pairs and the run, which a later call resumes. Raises MissingPackageError
    where torch is not installed.
    """
    from cectrain.train import train

    sentences = [s for s in text.first(READ) if s not in without]
    write_text(work / "sentences.txt", "\n".join(sentences) + "\n")
    data = load_data("typed", copies=COPIES, filters=("levenshtein",), seed=seed)
    build([str(work / "sentences.txt")], work / "pairs", data)
    settings = config.load(RECIPE, [f"sft.steps={steps_for(text.count)}", "ppo.updates=0"])
    settings = replace(settings, seed=seed)

    def count_step(phase: str, _number: int, _values: object) -> None:
        if phase == "sft":
            step("supervised steps of the policy", 1, settings.sft.steps)

    train(work / "pairs", work / "run", settings, on_step=count_step)
    return work / "run" / MODEL
