"""`cecbench run`: one system on one benchmark."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

import click

from cecbench.commands.list import DATA
from cecbench.commands.scoring_options import scoring_from, scoring_options
from cecbench.evaluate import Settings, evaluate
from cecbench.systems.options import SystemOptions
from cecdata.errors import UsageError
from cecdata.strictjson import parse

Command = TypeVar("Command", bound=Callable[..., object])

_DEFAULT = SystemOptions()
_SECRET = re.compile(
    r"(api|access|auth|private)[-_]?(key|token)|passw|credential|secret|authorization",
    re.IGNORECASE,
)
_SYSTEM_OPTIONS = (
    click.option("--prompt", default=_DEFAULT.prompt, show_default=True, help="Its version."),
    click.option("--batch", default=_DEFAULT.batch, show_default=True, help="Sentences a pass."),
    click.option("--device", default=_DEFAULT.device, show_default=True, help="cpu, cuda, …"),
    click.option(
        "--dtype",
        type=click.Choice(["auto", "float32", "bfloat16", "float16"]),
        default=_DEFAULT.dtype,
        show_default=True,
        help="Of a local model's weights.",
    ),
    click.option("--max-length", default=_DEFAULT.max_length, help="Tokens that a tagger reads."),
    click.option("--rephrase", is_flag=True, help="A tagger in ReLM's form (source, then masks)."),
    click.option("--max-new-tokens", default=0, help="0: twice the source and 32 more."),
    click.option("--temperature", default=0.0, help="0 is greedy; above, sampled."),
    click.option("--top-p", default=1.0, help="Nucleus of sampling."),
    click.option(
        "--seed", default=_DEFAULT.seed, show_default=True, help="Of sampling and jitter."
    ),
    click.option("--concurrency", default=_DEFAULT.concurrency, help="Requests at once."),
    click.option("--requests-per-minute", default=0.0, help="0: no limit of our own."),
    click.option("--timeout-s", default=_DEFAULT.timeout_s, help="For one whole request."),
    click.option("--retries", default=_DEFAULT.retries, help="After the first try."),
    click.option("--backoff-s", default=_DEFAULT.backoff_s, help="Before the first retry."),
    click.option(
        "--key-variable",
        default=_DEFAULT.key_variable,
        show_default=True,
        help="The environment variable that holds the key.",
    ),
    click.option("--price-in", default=0.0, help="For a million tokens read."),
    click.option("--price-out", default=0.0, help="For a million tokens written."),
    click.option(
        "--body",
        multiple=True,
        metavar="NAME=VALUE",
        help="A further field of each request, VALUE in JSON; null leaves a field out.",
    ),
    click.option("--partial", is_flag=True, help="A predictions file may lack rows."),
)


def system_options(command: Command) -> Command:
    """Adds the options that describe a system."""
    for option in reversed(_SYSTEM_OPTIONS):
        command = option(command)
    return command


def options_from(given: Mapping[str, object]) -> SystemOptions:
    """The record of the given options; UsageError for a --body that is not NAME=JSON."""
    body: dict[str, object] = {}
    pairs = given.get("body", ())
    assert isinstance(pairs, tuple)
    for pair in pairs:
        name, found, value = str(pair).partition("=")
        try:
            body[name] = parse(value)
        except ValueError:
            found = ""
        if not found or not name:
            raise UsageError(f"--body {pair}: give NAME=VALUE with VALUE in JSON, as in top_k=20")
        if _SECRET.search(name):
            raise UsageError(
                f"--body {name}=…: outputs name the fields of --body, and a secret belongs in the "
                "environment (--key-variable says which variable)"
            )
    known = {f.name for f in fields(SystemOptions)}
    chosen = {name: value for name, value in given.items() if name in known and name != "body"}
    return SystemOptions(body=body, **chosen)  # type: ignore[arg-type]


@click.command(
    epilog="Example: cecbench run --system predictions:answers.tsv --benchmark lemon/car --json"
)
@click.option("--system", required=True, help="As `cecbench list` shows: copy, llm:PATH, …")
@click.option("--benchmark", required=True, help="A name, a file, or a folder of shards.")
@DATA
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the run; default below.")
@scoring_options
@click.option("--name", default="", help="What the report calls the system.")
@click.option("--limit", default=0, help="Only the first rows; the signature says so.")
@click.option("--allow-missing", is_flag=True, help="Score rows without an answer as unchanged.")
@click.option("--overwrite", is_flag=True, help="Replace another run in the same folder.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@system_options
def run(
    system: str,
    benchmark: str,
    data: Path | None,
    out: Path | None,
    scorer: str,
    limit: int,
    *,
    allow_missing: bool,
    overwrite: bool,
    as_json: bool,
    **given: object,
) -> None:
    """Run a system on a benchmark and score it.

    Models and endpoints write to OUT (default out/bench/runs/BENCHMARK/SYSTEM), where the same
    command goes on after a kill; `copy` and predictions files write only where OUT is named.
    """
    if out is None and system.partition(":")[0] not in ("copy", "predictions"):
        out = default_folder(Path("out/bench"), benchmark, system)
    settings = Settings(
        benchmark, system, out, data, scorer, scoring_from(given),
        allow_missing=allow_missing, overwrite=overwrite, limit=limit,
        options=options_from(given),
    )  # fmt: skip
    values = evaluate(settings, show_progress)
    if as_json:
        click.echo(json.dumps(values, ensure_ascii=False))
    else:
        print_run(values)


def default_folder(base: Path, benchmark: str, system: str) -> Path:
    """Where a run lies: one folder a benchmark and system, named after both."""
    return base / "runs" / _plain(benchmark) / _plain(system)


def show_progress(done: int, total: int) -> None:
    """One line on stderr, rewritten; nothing where stderr is no terminal."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        click.echo(f"\r{done}/{total} sentences{end}", nl=False, err=True)


def print_run(values: Mapping[str, object]) -> None:
    """The score for people: the headline with its interval, what to know of it, the signature."""
    from cecbench.report.text import headline, lines_of

    click.echo(headline(values))
    for line in lines_of(values):
        click.echo(line)
    click.echo(str(values["signature"]))


def _plain(name: str) -> str:
    kept = "".join(c if c.isalnum() or c in "._-" else "-" for c in name.replace("://", "-"))
    return kept.strip("-.") or "unnamed"
