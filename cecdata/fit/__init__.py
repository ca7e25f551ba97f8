"""Weights of a recipe out of a small sample of real errors: labels are used, and it is said."""
