"""Load, ask, score and export policies."""
