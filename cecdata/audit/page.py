"""An audit for people: text for the terminal, HTML in one file that asks nothing of a network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from cecdata.audit.audit import Audit, Explained

# What each family means, beside its name.
MEANING = {
    "same_sound": "same syllable, same tone",
    "tone": "same syllable, another tone",
    "initial": "fuzzy initial: zh/z, n/l, h/f …",
    "final": "fuzzy final: an/ang, in/ing …",
    "keyboard": "one letter typed beside the right key",
    "edit1": "one letter of the pinyin wrong, missing or too many",
    "rare_reading": "same syllable, but in a reading that few know",
    "look_alike": "looks alike, sounds different",
    "shared_part": "one component apart",
    "variant": "traditional or variant form",
    "other": "none of these",
}
_FORMULA = (
    "Bits per error: mean of −log2(0.99 · P(wrong | right) + 0.01 / 8104). Candidates: of a "
    "character of running text, on average."
)
_EACH = 3_000
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;
color:#1b1b1b;background:#fff}
table{border-collapse:collapse;margin:.5rem 0 1.5rem;width:100%}
th,td{padding:.2rem .6rem;border-bottom:1px solid #ddd;text-align:right}
th:first-child,td:first-child{text-align:left}
thead th{position:sticky;top:0;background:#fff}
@media (prefers-color-scheme:dark){body,thead th{background:#161616;color:#e6e6e6}
th,td{border-color:#333}}
"""
Rows = Iterable[Sequence[object]]


def text(audit: Audit) -> str:
    """The audit for a terminal."""
    lines = [_headline(audit), ""]
    lines += [f"{'':30}{'coverage':>10}{'bits/error':>12}{'candidates':>12}"]
    lines += [
        f"{score.name[:29]:30}{score.coverage:>10.2%}{score.bits_per_error:>12.3f}"
        f"{score.mean_candidates:>12.1f}"
        for score in audit.scores
    ]
    lines += ["", f"{'family':16}{'tokens':>8}{'share':>8}{'covered':>9}{'bits':>7}"]
    lines += [
        f"{name:16}{facts['tokens']:>8,.0f}{facts['share']:>8.1%}{facts['coverage']:>9.1%}"
        f"{facts['bits_per_error']:>7.2f}  {MEANING[name]}"
        for name, facts in audit.coverage_by_family().items()
    ]
    explained = ", ".join(f"{name} {count:,}" for name, count in audit.by_operator().items())
    others = ", ".join(f"{name} {count:,}" for name, count in audit.errors.others.most_common())
    uncovered = " ".join(
        f"{item.right}→{item.wrong}" + (f"×{item.count}" if item.count > 1 else "")
        for item in audit.uncovered()[:40]
    )
    lines += [
        "",
        f"explained by   {explained or 'nothing'}",
        f"other errors   {others or 'none'}",
        f"not covered    {uncovered or 'nothing'}",
    ]
    return "\n".join(lines) + "\n"


def html(audit: Audit) -> str:
    """The audit as a page of its own."""
    parts = [
        f"<h1>Real errors and the recipe {escape(audit.recipe)}</h1>",
        f"<p>{escape(_headline(audit))}</p>",
        f"<p>{_FORMULA}</p>",
        _table(("set", "coverage", "bits per error", "candidates"), [
            (s.name, f"{s.coverage:.2%}", f"{s.bits_per_error:.3f}", f"{s.mean_candidates:.1f}")
            for s in audit.scores
        ]),
        "<h2>By family</h2>",
        _families(audit),
        "<h2>Other errors</h2>",
        _table(("kind", "count"), audit.errors.others.most_common()),
        "<h2>Not covered</h2>",
        _errors(audit.uncovered()),
        "<h2>Covered</h2>",
        _errors([item for item in audit.explained if item.rank]),
    ]  # fmt: skip
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Audit of {escape(audit.recipe)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _headline(audit: Audit) -> str:
    errors, limit = audit.errors, "" if audit.limited else ", without limit"
    beside = errors.neighbouring / errors.tokens if errors.tokens else 0.0
    return (
        f"{errors.tokens:,} characters written for another in {errors.wrong_pairs:,} of "
        f"{errors.pairs:,} pairs ({beside:.1%} of them next to another); recipe "
        f"{audit.recipe}{limit}" + (f" ({audit.fitted})" if audit.fitted else "")
    )


def _families(audit: Audit) -> str:
    found = audit.coverage_by_family()
    rows = [
        (name, MEANING[name], f"{facts['tokens']:,.0f}", f"{facts['share']:.1%}",
         f"{facts['coverage']:.1%}", f"{facts['bits_per_error']:.2f}")
        for name, facts in found.items()
    ]  # fmt: skip
    return _table(("family", "meaning", "tokens", "share", "covered", "bits"), rows)


def _errors(items: Sequence[Explained]) -> str:
    rows = [
        (f"{item.right} → {item.wrong}", item.count, item.family, item.operator or "–",
         f"{item.share:.4f}", item.rank or "–", f"{item.bits:.1f}")
        for item in items[:_EACH]
    ]  # fmt: skip
    more = len(items) - len(rows)
    note = f"<p>… and {more:,} more; <code>--json --each</code> lists all.</p>" if more > 0 else ""
    head = ("right → wrong", "count", "family", "operator", "share", "rank", "bits")
    return _table(head, rows) + note


def _table(head: Sequence[str], rows: Rows) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table>\n<thead><tr>{top}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
