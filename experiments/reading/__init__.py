"""Errors read by eye, with their verdicts."""
