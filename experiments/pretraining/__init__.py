"""Pretraining of the built-in policy."""
