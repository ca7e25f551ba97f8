"""Fixtures of this folder."""

from training_fixtures import (  # noqa: F401
    dataset,
    dataset_path,
    encoder,
    one_thread,
    small_policy,
    start,
)
