"""Expressions for Polars: `import cecdata.polars` gives every expression the namespace `cec`.

>>> import polars as pl
>>> import cecdata.polars
>>> frame = pl.DataFrame({"text": ["他的病情\u3000已经好转。", "明天上午九点开会，请准时参加。"]})
>>> frame.select(pl.col("text").cec.normalise())["text"].to_list()
['他的病情 已经好转。', '明天上午九点开会，请准时参加。']
>>> pairs = frame.select(pl.col("text").cec.perturb(recipe="realistic", copies=1))
>>> pairs.explode("text").unnest("text")["operator"].len()
2
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.config import load
from cecdata.corpus.ids import id_column
from cecdata.corpus.normalise import Options, normalise
from cecdata.corpus.privacy import mask
from cecdata.frames.pairs import PAIRS, perturbed
from cecdata.frames.rates import Rates, engine, rates_of
from cecdata.frames.texts import Given, rows_of, strings_of

if TYPE_CHECKING:
    from cecdata.shards.manifest import Manifest

_Function = Callable[[pa.Array], pa.Array]
_ANY_LENGTH = Options(min_chars=1, max_chars=2**31 - 1)


@pl.api.register_expr_namespace("cec")
class Cec:
    """The namespace `pl.col(…).cec`; each method takes a column of text, and a null stays null."""

    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression

    def perturb(
        self,
        recipe: str | None = None,
        seed: int | None = None,
        copies: int | None = None,
        rates: Rates | Manifest | str | os.PathLike[str] | None = None,
        **settings: object,
    ) -> pl.Expr:
        """Return the pairs of each text, as a build of this column makes and keeps them.

        The result is a list of structs with the fields `copy`, `source`, `operator`, `edits` and
        `distance`; it is empty for a text that is no sentence (too short, too long, or with
        control characters).

        With `rates`, from `cecdata.rates` or a finished dataset (its folder or manifest), the
        expression is elementwise: it streams, and the settings that are not given are those of the
        rates. Without `rates`, it first reads the whole column to calibrate the rates on it; the
        recipe is then `paper` by default. `settings` are those of a recipe, such as
        ``filters=("levenshtein",)``, which measures no cosine and is much faster.
        """
        settings = {"recipe": recipe, "seed": seed, "copies": copies, **settings}
        if rates is None:
            return self._expression.map_batches(_calibrating(settings), PAIRS)
        made, count = engine(rates, settings)
        return self._expression.map_batches(
            lambda series: perturbed(series, made, count), PAIRS, is_elementwise=True
        )

    def normalise(self) -> pl.Expr:
        """Return the normal form of each text; null for a text that has none.

        It is NFC, without invisible characters, with single spaces. An empty text has none, and
        neither has a text with a control character or another forbidden one.
        """
        return self._map(_normalised, pl.String)

    def mask(self) -> pl.Expr:
        """Return each text with placeholders such as <PHONE> in place of personal data."""
        return self._map(_masked, pl.String)

    def id(self) -> pl.Expr:
        """Return the id of each text: the column `id` of a dataset that was built from it.

        It is the XXH3-64 of the normal form's UTF-8, as a signed integer; null for a text that has
        no normal form.
        """
        return self._map(lambda text: _ids(_normalised(text)), pl.Int64)

    def distance(self, other: pl.Expr | str) -> pl.Expr:
        """Return the Levenshtein distance to another text, in code points (Int32).

        `other` is an expression, or the name of a column.
        """
        both = [self._expression, pl.col(other) if isinstance(other, str) else other]
        return pl.map_batches(both, _distances, pl.Int32, is_elementwise=True)

    def _map(self, function: _Function, kind: type[pl.DataType]) -> pl.Expr:
        def whole(series: pl.Series) -> pl.Series:
            return pl.Series(series.name, function(strings_of(series)), kind)

        return self._expression.map_batches(whole, kind, is_elementwise=True)


def _calibrating(settings: Mapping[str, object]) -> Callable[[pl.Series], pl.Series]:
    """Return the function that calibrates on a whole column and perturbs it."""
    flags = {name: value for name, value in settings.items() if name != "recipe"}
    config = load(str(settings["recipe"] or "paper"), **flags)

    def whole(series: pl.Series) -> pl.Series:
        return perturbed(series, *engine(rates_of(Given(frame=series), config), {}))

    return whole


def _normalised(text: pa.Array) -> pa.Array:
    clean = normalise(rows_of(text), _ANY_LENGTH).batch
    places = np.full(len(text), -1, np.int64)
    places[np.asarray(clean.column("row"))] = np.arange(len(clean))
    return clean.column("text").take(pa.array(places, mask=places < 0))


def _masked(text: pa.Array) -> pa.Array:
    return pc.if_else(text.is_valid(), mask(text.fill_null("")), text)


def _ids(text: pa.Array) -> pa.Array:
    return pc.if_else(text.is_valid(), id_column(pc.fill_null(text, "")), None)


def _distances(columns: Sequence[pl.Series]) -> pl.Series:
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    size = max(map(len, columns))
    if any(len(column) == 0 for column in columns):
        return pl.Series(columns[0].name, [], pl.Int32)
    sides = [column.new_from_index(0, size) if len(column) < size else column for column in columns]
    texts = [side.fill_null("").to_list() for side in sides]
    distances = cpdist(*texts, scorer=Levenshtein.distance, dtype=np.int32)
    known = sides[0].is_not_null() & sides[1].is_not_null()
    made = pl.select(pl.when(known).then(pl.Series(distances)))
    return made.to_series().alias(columns[0].name)
