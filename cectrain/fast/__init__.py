"""Speed up generation and log-probabilities."""
