"""The one engine: choose an operator, places and replacements; the same rows for the same seed."""
