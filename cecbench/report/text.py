"""Numbers in words and columns, shared by the terminal and the Markdown report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cecbench.systems.answer import STATUSES


def percent(fraction: object) -> str:
    """A fraction as a percentage with two decimals; an en dash where there is none.

    >>> percent(0.4358), percent(None)
    ('43.58', '–')
    """
    return "–" if fraction is None else f"{100 * float(str(fraction)):.2f}"


def section(values: Mapping[str, object], *names: str) -> Mapping[str, object]:
    """A nested object of a score; empty where it is not there.

    >>> section({"breakdown": {"clean": {"changed": 3}}}, "breakdown", "clean")["changed"]
    3
    """
    found: object = values
    for name in names:
        found = found.get(name, {}) if isinstance(found, Mapping) else {}
    return found if isinstance(found, Mapping) else {}


def headline(values: Mapping[str, object]) -> str:
    """System, benchmark, the headline number and its interval in one line."""
    name = str(values["headline"])
    value = values.get(name)
    text = f"{values['system']} on {values['benchmark']}: {name} "
    interval = section(values, "interval")
    if value is None:
        value = f"{percent(interval.get('value'))} (the published script prints nothing here)"
    text += f"{value}"
    if interval:
        level = float(str(interval["level"]))
        text += f"  [{percent(interval['low'])}, {percent(interval['high'])}] at {level:.0%}"
    return text + ("  (synthetic errors)" if values.get("synthetic") else "")


def lines_of(values: Mapping[str, object]) -> Iterator[str]:
    """What a reader must know of the number, then its parts."""
    answers = section(values, "answers")
    if set(answers) != {"ok"}:
        for status, count in answers.items():
            yield f"  {count:>6} × {status}: {STATUSES.get(status, 'a status of another version')}"
    if values.get("unanswered"):
        means = values.get("unanswered_means", "")
        yield f"  {values['unanswered']} without a readable answer: {means}"
    for what, count in section(values, "retried").items():
        yield f"  {count:>6} × {what}: the request was sent again, or given up"
    if values.get("traditional_predictions"):
        yield f"  {values['traditional_predictions']} predictions bring in traditional characters"
    clean = section(values, "breakdown", "clean")
    if clean.get("sentences"):
        rate = percent(clean.get("over_correction_rate"))
        counts = f"{clean.get('changed')} of {clean['sentences']}"
        yield f"  clean sentences changed: {counts} ({rate} %)"
    yield from _parts("by category", section(values, "breakdown", "category"))
    yield from _parts("by number of errors", section(values, "breakdown", "errors"))
    yield from _parts("by frequency of the character", section(values, "breakdown", "frequency"))


def _parts(title: str, parts: Mapping[str, object]) -> Iterator[str]:
    if not parts:
        return
    yield f"  {title:<30} {'n':>6} {'P':>7} {'R':>7} {'F':>7}"
    for name in parts:
        part = section(parts, name)
        numbers = " ".join(f"{percent(part[key]):>7}" for key in ("p", "r", "f"))
        yield f"    {name:<28} {part['sentences']:>6} {numbers}"
