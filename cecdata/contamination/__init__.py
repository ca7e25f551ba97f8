"""Rows of a corpus that a benchmark has, too: the whole text, or one inside the other."""
