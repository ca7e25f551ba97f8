"""The one table of systems, and how `--system KIND:REST` names one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from cecbench.benchmarks.row import Row
from cecbench.systems.answer import System
from cecbench.systems.api import ApiSystem, parted
from cecbench.systems.copying import CopySystem
from cecbench.systems.llm import LlmSystem
from cecbench.systems.options import SystemOptions
from cecbench.systems.policy import policy_system
from cecbench.systems.predictions import PredictionSystem
from cecbench.systems.secrets import refuse_in_path
from cecbench.systems.tagger import TaggerSystem
from cecdata.common.errors import UsageError, did_you_mean

Maker = Callable[[str, SystemOptions, Sequence[Row]], System]

#: kind → what makes it. A further kind is one new file and one entry here.
SYSTEMS: dict[str, Maker] = {
    "copy": lambda _, __, ___: CopySystem(),
    "predictions": lambda rest, options, rows: PredictionSystem(
        Path(rest), rows, partial=options.partial
    ),
    "tagger": lambda rest, options, _: TaggerSystem(rest, options),
    "llm": lambda rest, options, _: LlmSystem(rest, options),
    "api": lambda rest, options, _: ApiSystem(rest, options),
    "policy": lambda rest, options, _: policy_system(rest, options),
}

#: kind → how it is written and what it is, for `cecbench list`
FORMS = {
    "copy": ("copy", "changes nothing; the floor"),
    "predictions": ("predictions:FILE", "answers that lie in a TSV or JSONL file"),
    "tagger": ("tagger:PATH", "a BERT-family corrector: folder or hub name"),
    "llm": ("llm:PATH", "a causal language model through transformers"),
    "api": ("api:MODEL@URL", "an OpenAI-compatible endpoint"),
    "policy": ("policy:DIR", "an output folder of `cectrain`; policy:builtin is what ships"),
}


def check_spec(spec: str) -> tuple[str, str]:
    """Kind and rest of a spec; UsageError for an unknown kind, a lacking rest, or an address with
    a user or a password, which is not repeated.

    >>> check_spec("api:qwen3@http://127.0.0.1:8000/v1")
    ('api', 'qwen3@http://127.0.0.1:8000/v1')
    """
    kind, colon, rest = spec.partition(":")
    if kind not in SYSTEMS:
        raise UsageError(f"no kind of system {kind!r}: {did_you_mean(kind, list(SYSTEMS))}")
    if colon and kind == "copy":
        raise UsageError("--system copy takes nothing behind a colon")
    if not rest and kind != "copy":
        raise UsageError(f"--system {kind} needs what follows a colon: {FORMS[kind][0]}")
    if kind == "api":
        parted(rest)
    else:
        refuse_in_path(rest, FORMS[kind][0])
    return kind, rest


def make_system(spec: str, options: SystemOptions, rows: Sequence[Row]) -> System:
    """The system of a spec such as `copy`; `rows` are those that it will be asked about."""
    kind, rest = check_spec(spec)
    return SYSTEMS[kind](rest, options, rows)
