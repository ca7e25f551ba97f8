"""Benchmarks: their files, licences and readers."""
