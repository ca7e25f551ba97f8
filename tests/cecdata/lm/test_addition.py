"""A new kind of language model is one module, and its name in a table."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pyarrow as pa

from cecdata.corpus.quality import perplexity
from cecdata.lm import open_scorer, scorer

MODULE = '''
import numpy as np
from cecdata.lm.scorer import Kind, Scorer

class Lengths(Scorer):
    """Each character has the probability 1/e."""
    name = identity = "lengths"

    def log_prob(self, texts):
        return np.array([-float(len(str(text))) for text in texts])

KIND = Kind(lambda name: name == "lengths", lambda name: Lengths())
'''


def test_an_addition_serves_all_that_takes_a_language_model(monkeypatch):
    """The two files are the module and the table `KINDS`; filters then take its name."""
    module = ModuleType("cecdata.lm.lengths")
    exec(MODULE, module.__dict__)
    monkeypatch.setitem(sys.modules, "cecdata.lm.lengths", module)
    monkeypatch.setattr(scorer, "KINDS", ("lengths", *scorer.KINDS))
    assert open_scorer("lengths").log_ratios("他来了", [(0, 1, "")]).tolist() == [1.0]
    assert np.allclose(perplexity(pa.array(["他来了"]), "lengths"), np.e)
    assert open_scorer("words").name != "lengths"
