"""The search for rows of a corpus that a benchmark has, too: exactly, overlapping, or nearly."""
