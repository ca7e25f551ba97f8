"""A table for papers, in Markdown: precision, recall, F and over-correction by benchmark.

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


def paper_table(groups: Mapping[str, Mapping[str, Entry]], quoted: Sequence[str]) -> str:
    """Return the table: one line a system, four columns a benchmark.

    groups: the systems by benchmark and name. quoted: the rows of the paper's main table that are
    shown below them. Raises UsageError for one that it does not have.
    """
    heads = [f"{name} {column}" for name in groups for column in COLUMNS]
    lines = [*_rows(groups), *_quoted_rows(groups, quoted)]
    caption = md.text(" ".join(_caption(groups, quoted=bool(quoted))))
    return f"{md.table(['system', *heads], lines)}\n\n{caption}\n"


def _rows(groups: Mapping[str, Mapping[str, Entry]]) -> Iterator[list[Markdown]]:
    rows = {name: [md.text(name)] for group in groups.values() for name in group}
    for group in groups.values():
        numbers = {name: entry.numbers for name, entry in group.items()}
        idle = {name for name, e in group.items() if not any(run.active for run, _ in e.runs)}
        for column in COLUMNS:
            means = {name: fmean(v) for name in group if (v := numbers[name][column])}
            rivals = [mean for n, mean in means.items() if column != "OC" or n not in idle]
            best = (min if column == "OC" else max)(rivals, default=None)
            for name, cells in rows.items():
                if name not in means:
                    cells.append(Markdown("–" if name in group else ""))
                    continue
                values = numbers[name][column]
                spread = f" ± {stdev(values):.2f}" if len(values) > 1 else ""
                mark = _MARK if column == "F" and group[name].worse else ""
                is_best = means[name] == best and not (column == "OC" and name in idle)
                text = f"{means[name]:.2f}{spread}{mark}"
                cells.append(Markdown(f"**{text}**" if is_best else text))
    yield from rows.values()


def _quoted_rows(groups: Iterable[str], quoted: Sequence[str]) -> Iterator[list[Markdown]]:
    """Yield the rows that are quoted from the paper, which prints an F1 alone."""
    source = published.table("main")
    known = {row[0]: row for row in source.rows}
    set_of = {benchmark: name for name, benchmark in published.BENCHMARK_OF_SET.items()}
    for name in quoted:
        if name not in known:
            hint = did_you_mean(name, list(known))
            raise UsageError(f"--published: the paper has no row {name!r}: {hint}")
        cells = [Markdown(f"*{md.text(name)}*")]
        for benchmark in groups:
            column = set_of.get(benchmark)
            value = source.number(known[name], column) if column else None
            shown = "" if value is None else f"{value:.2f}"
            cells += [Markdown(), Markdown(), Markdown(shown), Markdown()]
        yield cells


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
