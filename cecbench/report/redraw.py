"""Draw the paper's figures again, with a user's runs and studies beside the published numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from statistics import fmean

from cecbench.report import plots
from cecbench.report.figures import Point, bars
from cecbench.report.overview import overview
from cecbench.report.svg import standalone
from cecbench.report.write import find_runs
from cecbench.results import SCORE, Run
from cecdata.common import html
from cecdata.common.durable import write_text
from cecdata.common.errors import InputError
from cecdata.common.strict_json import parse

#: what the figures say → the same in Chinese; the longer ones come first
CHINESE = {
    "Average F1 by size of the backbone": "各规模骨干模型的平均 F1",
    "CS by error category, four of twelve systems": "CS 按错误类别（十二个系统中的四个）",
    "Reward ablation at 14B (averages recomputed)": "14B 奖励消融（平均值为重新计算）",
    "F1 by benchmark, with 95 % intervals": "各评测集的 F1 与 95 % 区间",
    "F1 by number of errors": "按错误个数的 F1",
    "F1 by category": "按错误类别的 F1",
    "study": "实验",
    "published": "论文",
    "yours": "本次",
    "more-stroke": "多笔画",
    "fewer-stroke": "少笔画",
    "same-stroke": "同笔画",
    "homophone": "同音",
    "stroke": "笔画",
    "split": "拆字",
    "mixed": "混合",
    "clean": "无错",
    "other": "其他",
    "avg": "平均",
}


def redraw(sources: Sequence[Path], out: Path, *, chinese: bool = False) -> list[Path]:
    """Write each figure to `out` as SVG, and a page with all of them; return the paths.

    `sources` are folders or files with runs of cecbench (score.json) and studies of cectrain
    (STUDY.json). Without any the published numbers are drawn alone. Raises InputError for a source
    that has neither.
    """
    names = ("paper-categories", "paper-scaling", "paper-ablation")
    figures = dict(zip(names, plots.from_the_paper(), strict=True))
    runs, studies = _read(sources)
    if runs:
        figures |= _of_runs(runs)
    for study in studies:
        try:
            figures[f"study-{study['study']}"] = _of_study(study)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"the rows of study {study['study']!r} are damaged") from error
    drawn = {
        name: standalone(_translated(figure) if chinese else figure)
        for name, figure in figures.items()
        if figure
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, text in drawn.items():
        write_text(out / f"{name}.svg", text)
    body = "".join(f"<figure>{drawn[name]}</figure>" for name in drawn)
    title = "论文中的图" if chinese else "The paper's figures"
    note = "<p>CEC-Zero, arXiv 2512.23971.</p>"
    page = html.page(
        title, f"<h1>{escape(title)}</h1>{note}<div class='scroll' tabindex='0'>{body}</div>"
    )
    write_text(out / "index.html", page)
    return [out / "index.html", *(out / f"{name}.svg" for name in drawn)]


def _read(sources: Sequence[Path]) -> tuple[list[Run], list[dict[str, object]]]:
    """Return the runs and the studies below the sources."""
    with_runs, studies = [], []
    for source in sources:
        files = [source] if source.is_file() else sorted(source.glob("*.json"))
        known = [study for file in files if (study := _study(file))]
        has_runs = source.name == SCORE or any(source.rglob(SCORE))
        if not known and not has_runs:
            raise InputError(
                f"{source}: neither runs of `cecbench run` nor a study of `cectrain study`"
            )
        studies += known
        with_runs += [source] if has_runs and not known else []
    return (find_runs(with_runs) if with_runs else []), studies


def _study(file: Path) -> dict[str, object] | None:
    """Return the study in a file; None for a JSON file of another kind."""
    try:
        document = parse(file.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: not readable as JSON ({error})") from error
    if isinstance(document, dict) and "study" in document and "rows" in document:
        return dict(document)
    return None


def _of_runs(runs: Sequence[Run]) -> dict[str, str]:
    view = overview(runs)
    names = plots.drawn(view)
    figures = {"scores": plots.scores_with_intervals(view, names)}
    for benchmark, drawings in plots.by_category_and_number(runs, names).items():
        for number, figure in enumerate(drawings):
            part = ("categories", "numbers")[number]
            figures[f"{part}-{benchmark.replace('/', '-')}"] = figure
    return figures


def _of_study(study: Mapping[str, object]) -> str:
    """Draw each variant's F1 beside the published one: the mean over seeds, least, and most."""
    yours: dict[str, Point] = {}
    printed: dict[str, Point] = {}
    rows = study["rows"]
    if not isinstance(rows, list):
        raise TypeError  # the caller names the study
    for row in rows:
        values = row["values"]
        each = [100 * value for value in values.get("F1") or next(iter(values.values()), ())]
        if each:
            yours[row["name"]] = Point(fmean(each), min(each), max(each), f"{len(each)} seeds")
        if row.get("published") is not None:
            printed[row["name"]] = Point(float(row["published"]))
    labels = [row["name"] for row in rows]
    both = {"yours": yours, "published": printed}
    series = {name: points for name, points in both.items() if points}
    return bars(f"F1, study {study['study']}", labels, series)


def _translated(figure: str) -> str:
    """Return a figure whose words are Chinese; names of systems and benchmarks stay."""
    for text, chinese in CHINESE.items():
        for before, after in ((">", "<"), (">", ", "), (", ", "<"), ("study ", "<")):
            figure = figure.replace(f"{before}{text}{after}", f"{before}{chinese}{after}")
    return figure.replace("F1, study ", "F1，实验 ")
