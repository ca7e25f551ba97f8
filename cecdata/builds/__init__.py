"""A build of a dataset: three maps over idempotent tasks, read → distinct → corrupt."""
