"""`cecbench figures`: the paper's figures from one's own runs."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(epilog="Example: cecbench figures out/bench/runs out/ablation --out out/figures")
@click.argument("sources", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("out/figures"),
    show_default=True,
    help="Folder of the figures.",
)
@click.option("--language", type=click.Choice(["en", "zh"]), default="en", show_default=True)
def figures(sources: tuple[Path, ...], out: Path, language: str) -> None:
    """Redraw the paper's figures as SVG, with your runs beside the published numbers.

    SOURCES are folders of runs (`cecbench run`) and of studies (`cectrain study`), and files
    with the output of `cecdata encoders compare --json`. Without any, the published numbers are
    drawn alone. OUT/index.html shows all figures.
    """
    from cecbench.report.outlines import is_installed
    from cecbench.report.redraw import redraw
    from cecdata.common.errors import how_to_install

    for path in redraw(sources, out, chinese=language == "zh"):
        click.echo(path)
    if language == "zh" and not is_installed():
        click.echo(
            "Labels are text, which a program without a Chinese font shows as boxes. For labels as "
            f"outlines {how_to_install('figures')}, and repeat this command.",
            err=True,
        )
