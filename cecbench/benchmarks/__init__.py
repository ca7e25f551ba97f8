"""Benchmarks by name: where each lies, under which licence, and how it is read."""
