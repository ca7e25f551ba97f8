"""`cecbench export-task`: a benchmark as a task of another harness."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from string import Template

import click

from cecbench.benchmarks.catalogue import load, sample
from cecbench.commands.list import DATA
from cecbench.commands.options import LIMIT
from cecbench.scorers import find_scorer
from cecdata.common.durable import publish, write_text
from cecdata.common.errors import RefusedError
from cecdata.models import prompts

TEMPLATES = Path(__file__).parents[1] / "templates"
#: harness → file of the task → its template; what runs the task
HARNESSES = {
    "lm-eval": ({"cec.yaml": "lm_eval.yaml.txt", "utils.py": "lm_eval.py.txt"}, "lm_eval"),
    "inspect": ({"cec.py": "inspect.py.txt"}, "inspect-ai"),
}
ROWS = "rows.jsonl"


@click.command(epilog="Example: cecbench export-task inspect lemon/car --limit 300 --out out/task")
@click.argument("harness", type=click.Choice(list(HARNESSES)))
@click.argument("benchmark")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="New folder of the task."
)
@DATA
@LIMIT
@click.option("--prompt", default=prompts.DEFAULT, help="Version of cecbench's prompt.")
@click.option("--scorer", default="cscd", help="The published scorer, as in `cecbench run`.")
def export_task(
    harness: str, benchmark: str, out: Path, data: Path | None, limit: int, prompt: str, scorer: str
) -> None:
    """Write BENCHMARK as a task for lm-evaluation-harness or Inspect.

    The folder holds the task and the rows of the benchmark, which keep their licence. The task uses
    the prompt of cecbench, and reads and scores answers like `cecbench run`. Install cecbench in
    the environment of the harness.
    """
    prompts.prompt(prompt)
    find_scorer(scorer)
    dataset = load(benchmark, data)
    if out.exists():
        raise RefusedError(f"{out} already exists: name a new folder with --out")
    rows = sample(dataset.rows, limit)
    templates, package = HARNESSES[harness]
    words = {
        "benchmark": repr(f"{dataset.name}: {len(rows)} of {len(dataset.rows)} rows"),
        "licence": repr(dataset.licence),
        "prompt": repr(prompt),
        "scorer": repr(scorer),
    }
    texts = {
        name: Template((TEMPLATES / file).read_text("utf-8")).substitute(words)
        for name, file in templates.items()
    }
    texts[ROWS] = "".join(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in rows)
    staged = out.with_name(f".{os.getpid()}-{out.name}")
    for name, text in texts.items():
        write_text(staged / name, text)
    publish(staged, out)
    for name in texts:
        click.echo(str(out / name))
    click.echo(f"{len(rows):,} rows. Run the task where {package} and cec-zero are installed")
