"""Figures by matplotlib: a user's runs and studies beside the numbers that the paper prints.

Text in the SVG files is drawn as paths, so that they need no font; the same input gives the same
bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import polars as pl

from cecbench.page import group_scores_by_system, name_runs
from cecbench.results import SCORE, Run, find_runs
from cecdata.common import html
from cecdata.common.codec import parse
from cecdata.common.durable import write_text
from cecdata.common.durable.files import check_inside
from cecdata.common.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BEST = "Qwen3-32B-RL"  # of the published systems
PUBLISHED = Path(__file__).with_name("published.tsv")  # the paper's table of results
Drawing = Callable[["Axes"], None]


@dataclass(frozen=True, slots=True)
class Point:
    """A value in per cent with the ends of its interval, if known; `note` says what these are."""

    value: float
    low: float | None = None
    high: float | None = None
    note: str = ""


Series = Mapping[str, Mapping[str, Point]]  # series → label on the axis → point
_STYLE = {"svg.fonttype": "path", "svg.hashsalt": "cec-zero", "font.size": 9.0}
_HEIGHT, _BAR = 3.4, 0.22  # inches: of a figure, and of a bar with its share of the margin
Figure = tuple[Drawing, float]  # what draws it, and its width in inches


def redraw(sources: Sequence[Path], out: Path) -> list[Path]:
    """Write each figure to `out` as SVG, and a page that lists them; return the paths.

    `sources` are folders or files with runs of cecbench (score.json) and studies (STUDY.json).
    Raises InputError for a source that has none of these.
    """
    figures: dict[str, Figure] = {}
    runs, documents = _read(sources)
    if runs:
        figures["scores"] = scores(runs)
    for file, document in documents.items():
        try:
            name = check_inside(str(document["study"])).replace("/", "-")
            figures[f"study-{name}"] = _of_study(document)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{file}: a value is missing or wrong ({error})") from error
    out.mkdir(parents=True, exist_ok=True)
    paths = [_saved(draw, width, out / f"{name}.svg") for name, (draw, width) in figures.items()]
    shown = "".join(
        f'<figure><img src="{escape(path.name)}" alt="{escape(path.stem)}"></figure>'
        for path in paths
    )
    title = "Beside the paper's numbers"
    body = f"<h1>{title}</h1><p>CEC-Zero, arXiv 2512.23971.</p>{shown}"
    write_text(out / "index.html", html.write_page(title, body))
    return [out / "index.html", *paths]


def _saved(draw: Drawing, width: float, path: Path) -> Path:
    """Draw a figure of this width in inches to an SVG file, without a window or a date."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context(_STYLE):
        canvas = Canvas(figsize=(width, _HEIGHT), layout="constrained")
        axes = canvas.add_subplot()
        axes.grid(axis="y", linewidth=0.4)
        axes.set_axisbelow(True)
        draw(axes)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=8, frameon=False)
        canvas.savefig(path, format="svg", metadata={"Date": None})
    return path


def bars(title: str, labels: Sequence[str], series: Series) -> Figure:
    """Return grouped bars: at each label one bar a series, its interval as a whisker."""

    def draw(axes: Axes) -> None:
        thick = 0.8 / max(1, len(series))
        for index, (name, points) in enumerate(series.items()):
            known = [place for place, label in enumerate(labels) if label in points]
            values = [points[labels[place]] for place in known]
            at = [place + (index - (len(series) - 1) / 2) * thick for place in known]
            axes.bar(
                at,
                [point.value for point in values],
                thick * 0.9,
                label=name,
                yerr=_whiskers(values),
                capsize=2,
            )
        axes.set_xticks(range(len(labels)), labels, rotation=30, ha="right")
        axes.set_title(title)

    return draw, max(4.5, 1 + _BAR * len(labels) * (len(series) + 1))


def dots(title: str, labels: Sequence[str], series: Series, marks: Series) -> Figure:
    """Return dots with whiskers; `marks` are lines across (published values)."""

    def draw(axes: Axes) -> None:
        for index, (name, points) in enumerate(series.items()):
            known = [place for place, label in enumerate(labels) if label in points]
            values = [points[labels[place]] for place in known]
            at = [place + (index - (len(series) - 1) / 2) * 0.12 for place in known]
            heights = [point.value for point in values]
            axes.errorbar(at, heights, _whiskers(values), fmt="o", capsize=2, label=name)
        for name, points in marks.items():
            known = [place for place, label in enumerate(labels) if label in points]
            heights = [points[labels[place]].value for place in known]
            style = {"linestyles": "dashed" if name == BEST else "solid", "colors": "grey"}
            starts, ends = ([place + side for place in known] for side in (-0.4, 0.4))
            axes.hlines(heights, starts, ends, label=name, **style)
        axes.set_xticks(range(len(labels)), labels, rotation=30, ha="right")
        axes.set_ylim(bottom=0)
        axes.set_title(title)

    return draw, max(4.5, 1 + 0.5 * len(labels))


def _whiskers(points: Sequence[Point]) -> list[list[float]] | None:
    """Return the lengths below and above each value, [2, points]; None without any interval."""
    if all(point.low is None for point in points):
        return None
    below = [0.0 if p.low is None else max(0.0, p.value - p.low) for p in points]
    above = [0.0 if p.high is None else max(0.0, p.high - p.value) for p in points]
    return [below, above]


def scores(runs: Sequence[Run]) -> Figure:
    """Return headlines with intervals of systems that change text; published ones are lines."""
    found = group_scores_by_system(runs)
    names = [name for run, name in name_runs(runs) if run.active]
    names = list(dict.fromkeys(names))
    labels = list(dict.fromkeys(benchmark for name in names for benchmark in found[name]))
    series = {
        name: {
            benchmark: Point(cell.value, cell.low, cell.high)
            for benchmark, cell in found[name].items()
            if cell.value is not None
        }
        for name in names
    }
    table = pl.read_csv(PUBLISHED, separator="\t", comment_prefix="#", glob=False)
    marks = {
        row["system"]: {label: Point(row[label]) for label in labels if row.get(label) is not None}
        for row in table.iter_rows(named=True)
        if row["system"] in ("GPT-4", BEST)
    }
    known = {name: points for name, points in marks.items() if points}
    return dots("F1 by benchmark, with 95 % intervals", labels, series, known)


def _read(sources: Sequence[Path]) -> tuple[list[Run], dict[Path, dict[str, object]]]:
    """Return the runs below the sources, and the studies by their files."""
    with_runs: list[Path] = []
    documents: dict[Path, dict[str, object]] = {}
    for source in sources:
        files = [source] if source.is_file() else sorted(source.glob("*.json"))
        known = {file: document for file in files if (document := _document(file))}
        has_runs = source.name == SCORE or any(source.rglob(SCORE))
        if not known and not has_runs:
            raise InputError(
                f"{source}: no runs of `cecbench run`, and no study of `python -m "
                "experiments study`"
            )
        documents |= known
        with_runs += [source] if has_runs and not known else []
    return (find_runs(with_runs) if with_runs else []), documents


def _document(file: Path) -> dict[str, object] | None:
    """Return the study in a file; None for JSON of another kind."""
    try:
        document = parse(file.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: not readable as JSON ({error})") from error
    if isinstance(document, dict) and {"study", "rows"} <= document.keys():
        return dict(document)
    return None


def _of_study(study: Mapping[str, object]) -> Figure:
    """Return each variant's score (mean, least and greatest over seeds) beside the published one.

    It is F1, or the first column of a study without F1.
    """
    yours: dict[str, Point] = {}
    printed: dict[str, Point] = {}
    rows = study["rows"]
    if not isinstance(rows, list):
        raise TypeError  # the caller names the study
    columns = list(dict.fromkeys(name for row in rows for name in row["values"]))
    column = "F1" if "F1" in columns or not columns else columns[0]
    for row in rows:
        each = [100 * value for value in row["values"].get(column, ())]
        if each:
            yours[row["name"]] = (
                Point(fmean(each), min(each), max(each), f"{len(each)} seeds")
                if len(each) > 1
                else Point(each[0])
            )
        if row.get("published") is not None:
            printed[row["name"]] = Point(float(row["published"]))
    labels = [row["name"] for row in rows]
    both = {"yours": yours, "published": printed}
    series = {name: points for name, points in both.items() if points}
    return bars(f"{column}, study {study['study']}", labels, series)
