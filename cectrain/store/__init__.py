"""Keep the checkpoints, metrics and results of a run."""
