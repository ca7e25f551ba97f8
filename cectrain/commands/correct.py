"""`cectrain correct`."""

from __future__ import annotations

import codecs
import io
import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

import click

from cecbench.systems.pieces import cut, put_back
from cecdata.common.errors import InputError
from cecdata.hanzi.edits import align
from cectrain.corrector.folder import BUILTIN

if TYPE_CHECKING:
    from cectrain.corrector.policy import Policy

T = TypeVar("T")
_CHUNK = 256  # sentences that are sorted by length together
_PIPE = 1 << 16  # bytes, as many as a pipe holds


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
    help="One sentence a line; - is standard input, answered as it comes.",
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

    What is longer than the policy can read is corrected in pieces; a piece that cannot be cut is
    left as it is, and stderr names it.

    Example: cectrain correct --policy out/train 他己经来了。
    """
    from cectrain.config import PolicyConfig
    from cectrain.corrector.folder import trained_prompt
    from cectrain.model.policy import load_policy

    if not sentences and path is None:
        raise click.UsageError("give sentences, or a file with --file")
    policy = load_policy(PolicyConfig(name=name, prompt=trained_prompt(name)), 0)
    given = ((f"sentence {number}", text) for number, text in enumerate(sentences, 1))
    for chunk in itertools.chain(_chunks(given), _of_file(path)):
        for (_, line), answer in zip(chunk, _corrected(policy, chunk, batch), strict=True):
            click.echo(answer if plain else _json(line, answer) if as_json else shown(line, answer))


def _corrected(policy: Policy, lines: list[tuple[str, str]], batch: int) -> list[str]:
    """One answer a line (its place, its text); what the policy cannot read is left, and told."""
    from cectrain.model.heldout import corrections

    pieces = [list(_pieces(policy, place, text)) for place, text in lines]
    asked = [text.strip() for parts in pieces for text, readable in parts if readable]
    answers = iter(corrections(policy, asked, batch))
    return [
        "".join(put_back(text, next(answers)) if readable else text for text, readable in parts)
        for parts in pieces
    ]


def _pieces(policy: Policy, place: str, line: str) -> Iterator[tuple[str, bool]]:
    """What the line is corrected in, and whether the policy can read it."""
    from cectrain.model.heldout import fits, special_token

    if found := special_token(policy, line):
        told = f"{place}: holds {found}, which the policy would obey; left as it is"
        click.echo(told, err=True)
        yield line, False
        return
    for piece in cut(line, lambda text: fits(policy, text.strip())):
        text = piece.strip()
        readable = fits(policy, text)
        if not readable:
            told = f"{len(text)} characters without a sign to cut behind are too long"
            click.echo(f"{place}: {told} for the policy; left as they are", err=True)
        yield piece, readable and bool(text)


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


def _of_file(path: Path | None) -> Iterator[list[tuple[str, str]]]:
    """The lines of a file with their places, by the chunk; those of standard input as they come."""
    if path is None:
        return
    try:
        if str(path) == "-":
            yield from _piped()
            return
        # What Windows writes begins with a byte order mark.
        with click.open_file(str(path), encoding="utf-8-sig") as file:
            lines = (line.removesuffix("\n") for line in file)
            yield from _chunks((f"{path}, line {n}", line) for n, line in enumerate(lines, 1))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); give a UTF-8 text file") from error


def _piped() -> Iterator[list[tuple[str, str]]]:
    number = itertools.count(1)
    with click.open_file("-", "rb") as stream:
        for lines in _arrived(stream):
            yield [(f"standard input, line {next(number)}", line) for line in lines]


def _arrived(stream: IO[bytes]) -> Iterator[list[str]]:
    """What whole lines have come, at most a chunk of them: whoever types waits for an answer."""
    text = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")(), translate=True)
    rest, ended = "", False
    while not ended:
        read = stream.read1(_PIPE)  # type: ignore[attr-defined]  # waits for the first byte alone
        ended = not read
        *lines, rest = (rest + text.decode(read, final=ended)).split("\n")
        if ended and rest:
            lines.append(rest)
        yield from _chunks(lines)


def _chunks(lines: Iterable[T]) -> Iterator[list[T]]:
    lines = iter(lines)
    while chunk := list(itertools.islice(lines, _CHUNK)):
        yield chunk
