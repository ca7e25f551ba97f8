"""Compute rewards, advantages and values."""
