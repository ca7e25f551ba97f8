"""The fit of a recipe to a small sample of real errors, which are labels."""
