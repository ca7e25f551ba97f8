"""An audit as text for a terminal, and as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from cecdata.audit.audit import Audit, Explained
from cecdata.audit.classifier import Realism
from cecdata.common.html import page, percent, table

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
_REALISM = "Can a classifier tell the real errors from the recipe's?"
_EACH = 3_000
_UNCOVERED_HEAD = ("right → wrong", "count", "family")


def text(audit: Audit) -> str:
    """Return the audit as text."""
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
    if audit.realism is not None:
        groups = ", ".join(f"{name} {value:.3f}" for name, value in _realism(audit.realism)[2:])
        lines += [
            "",
            f"{_REALISM}: AUC {audit.realism.auc:.3f}; null test {audit.realism.auc_null:.3f}",
            f"by group       {groups}",
        ]
    return "\n".join(lines) + "\n"


def html(audit: Audit) -> str:
    """Return the audit as a self-contained HTML page."""
    uncovered = audit.uncovered()
    sets = [
        (s.name, percent(s.coverage, 2, "%"), f"{s.bits_per_error:.3f}", f"{s.mean_candidates:.1f}")
        for s in audit.scores
    ]
    parts = [
        f"<h1>Real errors and the recipe {escape(audit.recipe)}</h1>",
        f"<p>{escape(_headline(audit))}</p>",
        f"<p>{_FORMULA}</p>",
        table(("set", "coverage", "bits per error", "candidates"), sets),
        *_realism_part(audit.realism),
        "<h2>By family</h2>",
        _families(audit),
        "<h2>Other errors</h2>",
        table(("kind", "count"), audit.errors.others.most_common()),
        "<h2>Not covered</h2>",
        f"<p>The recipe writes none of these. {_price(uncovered)}</p>",
        table(_UNCOVERED_HEAD, (_uncovered_row(item) for item in uncovered[:_EACH]), words=(2,)),
        _more(len(uncovered)),
        "<h2>Covered</h2>",
        _covered([item for item in audit.explained if item.rank]),
    ]
    return page(f"Audit of {audit.recipe}", "\n".join(parts))


def _realism(realism: Realism) -> list[tuple[str, float]]:
    return [
        ("all features", realism.auc),
        ("null test: two sources by the recipe", realism.auc_null),
        *realism.auc_by_group.items(),
    ]


def _realism_part(realism: Realism | None) -> list[str]:
    if realism is None:
        return []
    rows = [(name, f"{value:.3f}") for name, value in _realism(realism)]
    return [
        f"<h2>{_REALISM}</h2>",
        f"<p>AUC of gradient-boosted trees on {realism.pairs:,} targets; 0.5: it cannot.</p>",
        table(("features", "AUC"), rows),
    ]


def _headline(audit: Audit) -> str:
    errors, limit = audit.errors, "" if audit.limited else ", without limit"
    beside = errors.neighbouring / errors.tokens if errors.tokens else 0.0
    return (
        f"{errors.tokens:,} characters written for another in {errors.wrong_pairs:,} of "
        f"{errors.pairs:,} pairs ({beside:.1%} of them next to another); recipe "
        f"{audit.recipe}{limit}" + (f" ({audit.fitted})" if audit.fitted else "")
    )


def _families(audit: Audit) -> str:
    rows = [
        (
            name,
            MEANING[name],
            f"{facts['tokens']:,.0f}",
            percent(facts["share"], 1, "%"),
            percent(facts["coverage"], 1, "%"),
            f"{facts['bits_per_error']:.2f}",
        )
        for name, facts in audit.coverage_by_family().items()
    ]
    return table(("family", "meaning", "tokens", "share", "covered", "bits"), rows, words=(1,))


def _price(uncovered: Sequence[Explained]) -> str:
    """Return the bits of an uncovered error as text; all have the same, because P is 0."""
    return f"Each costs {uncovered[0].bits:.1f} bits." if uncovered else ""


def _uncovered_row(item: Explained) -> tuple[object, ...]:
    return f"{item.right} → {item.wrong}", item.count, item.family


def _covered(items: Sequence[Explained]) -> str:
    rows = [
        (
            *_uncovered_row(item),
            item.operator or "–",
            f"{item.share:.4f}",
            item.rank,
            f"{item.bits:.1f}",
        )
        for item in items[:_EACH]
    ]
    head = (*_UNCOVERED_HEAD, "operator", "share", "rank", "bits")
    return table(head, rows, words=(2, 3)) + _more(len(items))


def _more(count: int) -> str:
    if count <= _EACH:
        return ""
    return f"<p>… and {count - _EACH:,} more; <code>--json --each</code> lists all.</p>"
