"""The expression of Polars that corrects a column."""

import polars as pl
import pytest

import cectrain.polars  # noqa: F401  (registers the namespace)
from cecdata.common.errors import CecError
from cectrain import Corrector


def test_a_column_is_corrected_as_its_texts_are():
    """Each text is answered as by `Corrector.correct`, and a null stays null."""
    texts = ["他的病情己经好转。", None, "今天天气很好。", ""]
    column = pl.LazyFrame({"text": texts}).select(pl.col("text").cec.correct()).collect()["text"]
    answers = iter(Corrector().correct([text for text in texts if text is not None]))
    assert column.to_list() == [None if text is None else next(answers).target for text in texts]
    assert column[0] == "他的病情已经好转。"


def test_a_column_of_numbers_is_refused_by_name():
    """The message names the column and its type."""
    frame = pl.DataFrame({"number": [1]})
    refusal = (CecError, pl.exceptions.ComputeError)  # Polars may wrap it
    with pytest.raises(refusal, match=r"'number' is Int64, not text"):
        frame.select(pl.col("number").cec.correct())
