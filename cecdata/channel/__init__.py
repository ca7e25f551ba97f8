"""P(observed | right) of a recipe, and its inverse: the right texts behind an observed one."""
