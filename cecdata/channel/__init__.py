"""P(observed | right) of a recipe, and its inverse: the right texts that may have become it."""
