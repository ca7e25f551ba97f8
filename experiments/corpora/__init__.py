"""Corpora of errors, compared by the corrector that each one trains."""
