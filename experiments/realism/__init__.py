"""A classifier that tells a recipe's errors from real ones."""
