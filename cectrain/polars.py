"""Expressions for Polars: `import cectrain.polars` adds `correct` to the namespace `cec`.

>>> import polars as pl
>>> import cectrain.polars
>>> frame = pl.DataFrame({"text": ["他的病情己经好转。", None]})
>>> frame.select(pl.col("text").cec.correct())["text"].to_list()
['他的病情已经好转。', None]
"""

from __future__ import annotations

from functools import cache

import polars as pl

from cecdata.common.errors import InputError
from cectrain.corrector.corrector import Corrector

_default = cache(Corrector)


@pl.api.register_expr_namespace("cec")
class Cec:
    """The expressions on a column of texts."""

    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression

    def correct(self, corrector: Corrector | None = None) -> pl.Expr:
        """Return the correction of each text by a corrector, by default `Corrector()`.

        A null stays null. The expression is elementwise, so that it streams.
        """

        def whole(series: pl.Series) -> pl.Series:
            if series.dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Null):
                raise InputError(f"the column {series.name!r} must be text, not {series.dtype}")
            answers = (corrector or _default()).stream(series.drop_nulls().to_list())
            texts = [None if text is None else next(answers).target for text in series]
            return pl.Series(series.name, texts, pl.String)

        return self._expression.map_batches(whole, pl.String, is_elementwise=True)
