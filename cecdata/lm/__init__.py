"""Language models: how probable is a text, and how much more or less so after a change?"""

from cecdata.lm.scorer import Change, Scorer, open_scorer, shared_scorer

__all__ = ["Change", "Scorer", "open_scorer", "shared_scorer"]
