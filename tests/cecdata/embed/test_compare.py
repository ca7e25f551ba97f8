"""The comparison of encoders with human ratings, `tools/encoder/compare.py`."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from cecdata.common.errors import InputError

TOOL = Path(__file__).resolve().parents[3] / "tools" / "encoder" / "compare.py"
TEXTS = ["他的病情已经好转。", "他的病情己经好转。", "今天天气很好。", "请在窗口输入命令。"]


@pytest.fixture(scope="module")
def tool():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("encoder_compare", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_encoders_are_compared(tool, tmp_path, monkeypatch, capsys):
    """Both correlations, their intervals and the share that the gate would reject are given."""
    path = tmp_path / "ratings.tsv"
    rows = [(TEXTS[1], TEXTS[0], 5), (TEXTS[2], TEXTS[0], 1), (TEXTS[3], TEXTS[2], 0),
            (TEXTS[0], TEXTS[0], 5), (TEXTS[3], TEXTS[3], 5)]  # fmt: skip
    lines = ["input\toutput\trating", *(f"{a}\t{b}\t{r}" for a, b, r in rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    words = ["compare", str(path), "--encoder", "builtin"]
    monkeypatch.setattr(sys, "argv", [*words, "--json"])
    tool.main()
    found = json.loads(capsys.readouterr().out)["encoders"][0]
    assert found["pearson"] > 0.8
    assert found["pearson_interval"][0] <= found["pearson"] <= found["pearson_interval"][1]
    assert found["below_threshold"] == 0.4
    assert (found["rating_rejected"], found["rating_kept"]) == (0.5, 5.0)
    monkeypatch.setattr(sys, "argv", words)
    tool.main()
    assert "above 5.0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("input\toutput\n一\t二\n", "no column 'rating'"),
        ("input\toutput\trating\n一\t二\tviel\n", "cannot be read"),
        ("input\toutput\trating\n一\t二\t1\n", "at least three rows"),
        ("input\toutput\trating\n" + "一\t二\tnan\n" * 3, "must be numbers"),
        ("input\toutput\trating\n" + '他说"好\t二\t1\n' * 3, "not all the same"),
    ],
)
def test_bad_ratings_are_named(tool, tmp_path, text, said):
    """A file that is not what is wanted says what is wanted."""
    path = tmp_path / "ratings.tsv"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=said):
        tool.read_ratings(path)


def test_correlations_on_paper(tool):
    """Pearson and Spearman of numbers worked out by hand, ties included."""
    x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0])
    assert tool.pearson(x, y) == pytest.approx(0.8)
    assert tool.spearman(x, np.array([1.0, 10.0, 5.0, 99.0])) == pytest.approx(0.8)
    assert tool.spearman(x, np.array([1.0, 2.0, 2.0, 3.0])) == pytest.approx(0.9486833)
