"""A recipe estimated from a few real errors."""
