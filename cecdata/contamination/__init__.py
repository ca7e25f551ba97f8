"""Which rows of a corpus a benchmark also has: exactly, inside a longer text, or nearly."""
