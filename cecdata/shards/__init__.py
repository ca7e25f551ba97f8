"""Shards: the dataset on disk."""
