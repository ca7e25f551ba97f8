"""Numbers in words and columns, shared by the terminal and the Markdown report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from cecbench.score_shape import Rates, RunScore
from cecbench.systems.answer import STATUSES
from cecdata.common.html import percent


def headline(values: RunScore) -> str:
    """Return system, benchmark, the headline number and its interval in one line."""
    name, interval = values["headline"], values.get("interval")
    printed = cast("Mapping[str, object]", values).get(name)
    if printed is None:
        value = interval["value"] if interval else None
        printed = f"{percent(value)} (the published script prints nothing here)"
    text = f"{values['system']} on {values['benchmark']}: {name} {printed}"
    if interval:
        low, high = percent(interval["low"]), percent(interval["high"])
        text += f"  [{low}, {high}] at {interval['level']:.0%}"
    return text + ("  (synthetic errors)" if values["synthetic"] else "")


def lines_of(values: RunScore) -> Iterator[str]:
    """Yield what a reader must know of the number, then its parts."""
    if set(values["answers"]) != {"ok"}:
        for status, count in values["answers"].items():
            yield f"  {count:>6} × {status}: {STATUSES.get(status, 'a status of another version')}"
    if values["unanswered"]:
        means = values["unanswered_means"]
        yield f"  {values['unanswered']} without a readable answer: {means}"
    for what, count in values["retried"].items():
        yield f"  {count:>6} × {what}: the request was sent again, or given up"
    if values["traditional_predictions"]:
        yield f"  {values['traditional_predictions']} predictions bring in traditional characters"
    parts = values["breakdown"]
    clean = parts["clean"]
    if clean["sentences"]:
        counts = f"{clean['changed']} of {clean['sentences']}"
        rate = percent(clean["over_correction_rate"], unit=" %")
        yield f"  clean sentences changed: {counts} ({rate})"
    yield from _table("by category", parts["category"])
    yield from _table("by number of errors", parts["errors"])
    yield from _table("by frequency of the character", parts["frequency"])


def _table(title: str, parts: Mapping[str, Rates]) -> Iterator[str]:
    if not parts:
        return
    yield f"  {title:<30} {'n':>6} {'P':>7} {'R':>7} {'F':>7}"
    for name, part in parts.items():
        numbers = " ".join(f"{percent(rate):>7}" for rate in (part["p"], part["r"], part["f"]))
        yield f"    {name:<28} {part['sentences']:>6} {numbers}"
