"""`cectrain correct`."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from cecdata.errors import InputError
from cecdata.hanzi.edits import align
from cectrain.policy import BUILTIN

_CHUNK = 256  # sentences that are sorted by length together


@click.command()
@click.argument("sentences", nargs=-1)
@click.option(
    "--policy", "name", default=BUILTIN, show_default=True,
    help="A run's folder, a model's, a hub name.",
)  # fmt: skip
@click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path, allow_dash=True),
    help="One sentence a line; - is standard input.",
)
@click.option("--batch", type=click.IntRange(1), default=64, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with the edits.")
@click.option("--plain", is_flag=True, help="The corrected sentences alone.")
def correct(
    sentences: tuple[str, ...],
    name: str,
    path: Path | None,
    batch: int,
    as_json: bool,
    plain: bool,
) -> None:  # fmt: skip
    """Correct SENTENCES, or the lines of a file, and show the edits in colour.

    Example: cectrain correct --policy out/train 他己经来了。
    """
    from cectrain.config import PolicyConfig
    from cectrain.heldout import corrections
    from cectrain.policy import load_policy, trained_prompt

    if not sentences and path is None:
        raise click.UsageError("give sentences, or a file with --file")
    policy = load_policy(PolicyConfig(name=name, prompt=trained_prompt(name)), 0)
    lines = itertools.chain(sentences, _lines(path))
    while chunk := list(itertools.islice(lines, _CHUNK)):
        kept = [line for line in chunk if line.strip()]
        answers = iter(corrections(policy, kept, batch))
        for line in chunk:
            answer = next(answers) if line.strip() else line
            click.echo(answer if plain else _json(line, answer) if as_json else shown(line, answer))


def shown(source: str, answer: str) -> str:
    """The answer with what was changed: the old in red in brackets, the new in green."""
    parts, done = [], 0
    for edit in align(source, answer):
        parts.append(answer[done : edit.start])
        if edit.source:
            parts.append(click.style(f"[{edit.source}]", fg="red", strikethrough=True))
        parts.append(click.style(edit.target, fg="green", bold=True))
        done = edit.end
    return "".join([*parts, answer[done:]])


def _json(source: str, answer: str) -> str:
    edits = [[edit.start, edit.end, edit.target, edit.source] for edit in align(source, answer)]
    return json.dumps({"source": source, "answer": answer, "edits": edits}, ensure_ascii=False)


def _lines(path: Path | None) -> Iterator[str]:
    if path is None:
        return
    try:
        with click.open_file(str(path), encoding="utf-8") as file:
            yield from _stripped(file)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); give a UTF-8 text file") from error


def _stripped(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line.rstrip("\r\n")
