"""A reward term is added by touching the files that CONTRIBUTING.md names, and no others."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TERM = '''
def length_P_L(batch: Batch) -> FloatArray:
    """Return 1 for each candidate that is as long as its source, else 0."""
    pairs = zip(batch.sources, batch.candidates_P_L, strict=True)
    return np.array([[float(len(text) == len(x)) for text in group] for x, group in pairs])


LENGTH = Term("length", length_P_L)

'''
TABLE = "#: `reward.kind` → its terms"
#: file → what is replaced there, and what by
EDITS = {
    "cectrain/reward/terms.py": {
        TABLE: f"{TERM}\n{TABLE}",
        "= (EDIT,)": "= (EDIT, LENGTH)",
    },
    "cectrain/reward/config.py": {
        "    unchanged: float": (
            "    length_weight: float = 0.0  # of the length term\n    unchanged: float"
        ),
    },
    "docs/reference/metrics.md": {
        "| `reward_edit` |": "| `reward_length` | share as long as the source |\n| `reward_edit` |",
    },
}
USE = """
import re
from pathlib import Path
import pytest
from cecdata.common.errors import UsageError
from cectrain import config
from cectrain.reward.batch import Batch
from cectrain.reward.terms import total_reward
from cectrain.run import metrics_log

made = config.load("exact-match", ["reward.length_weight=0.25", 'reward.kind="majority"'])
assert "length term 0.25" in made.reward.words()
rewards = total_reward(Batch(made.reward, ["己来"], ["已来"], [["已来", "已来", "己"]]))
assert rewards.total_P_L.tolist() == [[1.0, 1.0, 0.0]]
assert rewards.figures() == {"reward_majority": 2 / 3, "reward_length": 2 / 3}
assert metrics_log.renamed({"reward_length": 0.5}) == {"reward_length": 0.5}
with pytest.raises(UsageError, match=r"reward\\.length_weight must be"):
    config.load("exact-match", ["reward.length_weight=1.5"])
with pytest.raises(UsageError, match="the sum of"):
    config.load("exact-match", ["reward.length_weight=0.6", "reward.edit_weight=0.6"])
page = Path("docs/reference/metrics.md").read_text()
explained = re.findall(r"^\\| `([a-z0-9_]+)` \\|", page, re.M)
assert set(metrics_log.NAMES) <= set(explained)
"""


def recipe(title):
    """The paragraph of CONTRIBUTING.md that begins with a title."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    return next(p for p in text.split("\n\n") if p.startswith(f"**{title}**"))


def test_a_term_is_a_function_and_three_entries(tmp_path):
    """A toy term then has a weight, a check, words, a column, and docs."""
    named = set(re.findall(r"`((?:cectrain|docs)/[^`]+)`", recipe("A reward term")))
    assert named == {*EDITS}
    assert len(named) <= 3
    shutil.copytree(
        ROOT / "cectrain", tmp_path / "cectrain", ignore=shutil.ignore_patterns("weights", "*.pyc")
    )
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for name, edits in EDITS.items():
        text = (tmp_path / name).read_text("utf-8")
        for old, new in edits.items():
            assert text.count(old) == 1
            text = text.replace(old, new)
        (tmp_path / name).write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
