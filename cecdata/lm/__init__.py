"""Language models: how probable is a text, and how much more or less so after a change?"""

from cecdata.lm.language_model import Change, LanguageModel, open_scorer

__all__ = ["Change", "LanguageModel", "open_scorer"]
