"""Scores for Chinese spelling correction that match the published scorers and can be compared.

`score` scores predictions; `cecbench` on a command line also runs systems on benchmarks and reports
their results. To read the code, begin at `scorers.py`, whose `SCORERS` names every scorer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cecbench.scorers import Score

__all__ = ["score"]


def score(
    sources: Iterable[str],
    targets: Iterable[str],
    predictions: Iterable[str],
    *,
    scorer: str = "cscd",
    **options: object,
) -> Score:
    """Score predictions of a corrector with one of the published scorers.

    The three columns have one entry for each sentence: what was written, what is right, what the
    corrector answered. options: those of the scorer, as `cecbench score` has them, such as
    `unequal_length="drop"`; docs/reference/scorers.md explains them.

    Printed, the result is what one pastes into a paper: the main number and the signature.

    The result has the published numbers in `values`, the main one of them in `headline`, counts for
    each sentence in `counts`, what a comparison must share in `signature`, and a bootstrap interval
    in `interval()`. UsageError is raised for columns of different lengths and for unknown names.

    >>> import cecbench
    >>> sources = ["他己经来了。", "今天天气很好。"]
    >>> targets = ["他已经来了。", "今天天气很好。"]
    >>> result = cecbench.score(sources, targets, ["他已经来了。", "今天天汽很好。"])
    >>> result.headline
    66.667
    >>> result.values["S_C_p"], result.values["S_C_r"]
    (50.0, 100.0)
    >>> result.values["behaviour.over_correction_rate"]
    1.0
    """
    from cecbench import scorers
    from cecdata.common.errors import UsageError
    from cecdata.common.settings import require

    columns = {"sources": sources, "targets": targets, "predictions": predictions}
    for name, column in columns.items():
        listed = isinstance(column, Iterable) and not isinstance(column, (str, bytes))
        require(listed, name, column, "a list of sentences")
    lists = [list(column) for column in columns.values()]
    counts = [len(column) for column in lists]
    if len(set(counts)) > 1:
        named = "{:,} sources, {:,} targets, {:,} predictions".format(*counts)
        raise UsageError(f"{named}: give one of each for every sentence")
    rows = ((str(number), *row) for number, row in enumerate(zip(*lists, strict=True), 1))
    return scorers.score(rows, scorer, options)
