"""A table for papers, in LaTeX or Markdown: precision, recall, F and over-correction by benchmark.

The best value of a column is bold; systems whose F differs significantly from the best are marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from cecbench.benchmarks import published
from cecbench.results import Run
from cecbench.scorers import Score
from cecdata.common import markdown as md
from cecdata.common.errors import UsageError, did_you_mean
from cecdata.common.markdown import Markdown

LEVEL = 0.05  # of significance, after correction for all comparisons of the table
COLUMNS = ("P", "R", "F", "OC")
_MARK = "†"
_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%#_${}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    _MARK: r"$^\dagger$",
    "±": r"$\pm$",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A system on a benchmark: its runs, several where seeds differ, each with its counts.

    worse: whether the F of every run differs significantly from that of every best one.
    """

    runs: tuple[tuple[Run, Score], ...]
    worse: bool = False

    @property
    def numbers(self) -> dict[str, list[float]]:
        """Precision, recall, F and over-correction of the runs that have them, in percent."""
        values: dict[str, list[float]] = {column: [] for column in COLUMNS}
        for run, score in self.runs:
            columns = list(score.scorer.headline_columns)
            tp, predicted, gold = score.counts[:, columns].sum(axis=0).tolist()
            rate = run.values["breakdown"]["clean"]["over_correction_rate"]
            values["P"] += [100 * tp / predicted] if predicted else []
            values["R"] += [100 * tp / gold] if gold else []
            values["F"].append(100 * score.interval().value)
            values["OC"] += [] if rate is None else [100 * rate]
        return values


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the table: its text, whether it is the best of its column."""

    text: str = ""
    best: bool = False


Rows = dict[str, list[Cell]]


def paper_table(groups: Mapping[str, Mapping[str, Entry]], form: str, quoted: Sequence[str]) -> str:
    """Return the table: one line a system, four columns a benchmark.

    groups: the systems by benchmark and name. form: `latex` or `markdown`. quoted: the rows of the
    paper's main table that are shown below them. Raises UsageError for one that it does not have.
    """
    rows = _rows(groups)
    printed = _quoted_rows(groups, quoted)
    caption = _caption(groups, quoted=bool(quoted))
    write = _latex if form == "latex" else _markdown
    return "\n".join(write(list(groups), rows, printed, caption)) + "\n"


def _rows(groups: Mapping[str, Mapping[str, Entry]]) -> Rows:
    rows: Rows = {name: [] for group in groups.values() for name in group}
    for group in groups.values():
        numbers = {name: entry.numbers for name, entry in group.items()}
        idle = {name for name, e in group.items() if not any(run.active for run, _ in e.runs)}
        for column in COLUMNS:
            means = {name: fmean(v) for name in group if (v := numbers[name][column])}
            rivals = [mean for n, mean in means.items() if column != "OC" or n not in idle]
            best = (min if column == "OC" else max)(rivals, default=None)
            for name, cells in rows.items():
                if name not in means:
                    cells.append(Cell("–" if name in group else ""))
                    continue
                values = numbers[name][column]
                spread = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
                mark = _MARK if column == "F" and group[name].worse else ""
                is_best = means[name] == best and not (column == "OC" and name in idle)
                cells.append(Cell(f"{means[name]:.2f}{spread}{mark}", is_best))
    return rows


def _quoted_rows(groups: Iterable[str], quoted: Sequence[str]) -> Rows:
    """Return the rows that are quoted from the paper, which prints an F1 alone."""
    source = published.table("main")
    known = {row[0]: row for row in source.rows}
    set_of = {benchmark: name for name, benchmark in published.BENCHMARK_OF_SET.items()}
    rows: Rows = {}
    for name in quoted:
        if name not in known:
            hint = did_you_mean(name, list(known))
            raise UsageError(f"--published: the paper has no row {name!r}: {hint}")
        rows[name] = []
        for benchmark in groups:
            column = set_of.get(benchmark)
            value = source.number(known[name], column) if column else None
            shown = "" if value is None else f"{value:.2f}"
            rows[name] += [Cell(), Cell(), Cell(shown), Cell()]
    return rows


def _caption(groups: Mapping[str, Mapping[str, Entry]], *, quoted: bool) -> Iterator[str]:
    """Yield the sentences of the caption."""
    entries = [entry for group in groups.values() for entry in group.values()]
    beta = f"{entries[0].runs[0][1].scorer.beta:g}"
    yield "Precision, recall and F, and the share of error-free sentences changed (OC), in percent."
    yield "Bold: the best of a column; for OC, the lowest of systems that change text."
    yield (
        f"{_MARK}: differs significantly from the highest F (paired randomisation, p < {LEVEL:g} "
        "after Holm's correction for all pairs)."
    )
    if any(len(entry.runs) > 1 for entry in entries):
        yield "±: the standard deviation of runs with the same name, such as several seeds."
    if quoted:
        said = next(text for row, column, text in published.remarks("main") if row == column == "*")
        yield (
            "Rows in italics are quoted from the main table of CEC-Zero (arXiv 2512.23971): "
            f"{said}."
        )
    firsts = (next(iter(group.values())).runs[0][0] for group in groups.values())
    signatures = (str(run.values["signature"]) for run in firsts)
    yield f"F is F{beta}. Signatures: {'; '.join(signatures)}."


def _latex(
    benchmarks: Sequence[str], rows: Rows, printed: Rows, caption: Iterable[str]
) -> Iterator[str]:
    """Yield the lines of a table that needs the package booktabs."""
    yield r"\begin{table}"
    yield r"\centering"
    yield r"\begin{tabular}{l" + "rrrr" * len(benchmarks) + "}"
    yield r"\toprule"
    heads = (rf"\multicolumn{{4}}{{c}}{{{_escape_latex(name)}}}" for name in benchmarks)
    yield " & ".join(["", *heads]) + r" \\"
    yield " & ".join(["System", *list(COLUMNS) * len(benchmarks)]) + r" \\"
    yield r"\midrule"
    for name, cells in rows.items():
        texts = (
            rf"\textbf{{{_escape_latex(c.text)}}}" if c.best else _escape_latex(c.text)
            for c in cells
        )
        yield " & ".join([_escape_latex(name), *texts]) + r" \\"
    if printed:
        yield r"\midrule"
    for name, cells in printed.items():
        yield " & ".join([rf"\textit{{{_escape_latex(name)}}}", *(c.text for c in cells)]) + r" \\"
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield rf"\caption{{{_escape_latex(' '.join(caption))}}}"
    yield r"\end{table}"


def _markdown(
    benchmarks: Sequence[str], rows: Rows, printed: Rows, caption: Iterable[str]
) -> Iterator[str]:
    heads = [f"{name} {column}" for name in benchmarks for column in COLUMNS]
    lines = []
    for name, cells in rows.items():
        shown = (Markdown(f"**{c.text}**") if c.best else Markdown(c.text) for c in cells)
        lines.append([md.text(name), *shown])
    for name, cells in printed.items():
        lines.append([Markdown(f"*{md.text(name)}*"), *(Markdown(c.text) for c in cells)])
    yield md.table(["system", *heads], lines)
    yield ""
    yield md.text(" ".join(caption))


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in md.one_line(text))
