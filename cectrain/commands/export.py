"""`cectrain export`."""

from __future__ import annotations

from pathlib import Path

import click

from cecdata.common.errors import RefusedError
from cecdata.common.progress import suggest


@click.command()
@click.option(
    "--policy", "name", required=True, help="Folder of a run or a model, or a name on the hub."
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to create.")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16", "float16"]),
    default="float32",
    show_default=True,
    help="Type of the weights.",
)
def export(name: str, out: Path, dtype: str) -> None:
    """Write a policy as one folder that transformers, vLLM and cecbench load.

    The folder has merged safetensors, the tokenizer, a generation config, the prompt version and a
    model card.

    Example: cectrain export --policy out/train --out out/model --dtype bfloat16
    """
    from cectrain.config import PolicyConfig
    from cectrain.corrector.folder import trained_prompt
    from cectrain.model.export import publish_model
    from cectrain.model.policy import load_policy
    from cectrain.store.results import read_summary

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RefusedError(f"{out} exists already: choose another folder")
    policy = load_policy(PolicyConfig(name=name, prompt=trained_prompt(name)), 0, "cpu")
    summary = Path(name) / "summary.json"
    facts = read_summary(summary) if summary.is_file() else {}
    publish_model(policy, out, facts, dtype)
    click.echo(out)
    suggest(f"cectrain correct --policy {out} TEXT")
