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
from cecdata.common.names import one_part
from cecdata.common.strict_json import parse

#: what the figures say → the same in Chinese; the longer ones come first
CHINESE = {
    "Average F1 by size of the backbone": "各规模骨干模型的平均 F1",
    "CS by error category, four of twelve systems": "CS 按错误类别（十二个系统中的四个）",
    "Reward ablation at 14B (averages recomputed)": "14B 奖励消融（平均值为重新计算）",
    "Pearson correlation of cosine and human rating, × 100": "余弦与人工评分的相关系数 × 100",
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

    `sources` are folders or files with runs of cecbench (score.json), studies of cectrain
    (STUDY.json) and outputs of `cecdata encoders compare --json`. Without any the published numbers
    are drawn alone. Raises InputError for a source that has none of these.
    """
    names = ("paper-categories", "paper-scaling", "paper-ablation", "paper-encoders")
    figures = dict(zip(names, plots.from_the_paper(), strict=True))
    runs, documents = _read(sources)
    if runs:
        figures |= _of_runs(runs)
    for file, document in documents.items():
        try:
            if "study" in document:
                figures[f"study-{one_part(str(document['study']))}"] = _of_study(document)
            else:
                figures["paper-encoders"] = plots.correlation(_correlations(document))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{file}: a value is missing or wrong ({error})") from error
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


def _read(sources: Sequence[Path]) -> tuple[list[Run], dict[Path, dict[str, object]]]:
    """Return the runs below the sources, and the studies and comparisons by their files."""
    with_runs: list[Path] = []
    documents: dict[Path, dict[str, object]] = {}
    for source in sources:
        files = [source] if source.is_file() else sorted(source.glob("*.json"))
        known = {file: document for file in files if (document := _document(file))}
        has_runs = source.name == SCORE or any(source.rglob(SCORE))
        if not known and not has_runs:
            raise InputError(
                f"{source}: no runs of `cecbench run`, study of `cectrain study` or output of "
                "`cecdata encoders compare --json`"
            )
        documents |= known
        with_runs += [source] if has_runs and not known else []
    return (find_runs(with_runs) if with_runs else []), documents


def _document(file: Path) -> dict[str, object] | None:
    """Return the study or the comparison of encoders in a file; None for JSON of another kind."""
    try:
        document = parse(file.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: not readable as JSON ({error})") from error
    kinds = ({"study", "rows"}, {"pairs", "encoders"})
    if isinstance(document, dict) and any(kind <= document.keys() for kind in kinds):
        return dict(document)
    return None


def _correlations(comparison: Mapping[str, object]) -> dict[str, Point]:
    """Return each encoder's r with its interval, in hundredths."""
    encoders = comparison["encoders"]
    if not isinstance(encoders, list):
        raise TypeError  # the caller names the file
    points = {}
    for one in encoders:
        values = (one["pearson"], *one["pearson_interval"])
        points[one["encoder"]] = Point(*(100 * value for value in values))
    return points


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
    """Draw each variant's score (mean, least and greatest over seeds) beside the published one.

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


def _translated(figure: str) -> str:
    """Return a figure whose words are Chinese; names of systems and benchmarks stay."""
    for text, chinese in CHINESE.items():
        for before, after in ((">", "<"), (">", ", "), (", ", "<"), ("study ", "<")):
            figure = figure.replace(f"{before}{text}{after}", f"{before}{chinese}{after}")
    return figure.replace(", study ", "，实验 ")
