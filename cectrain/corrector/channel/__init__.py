"""The noisy-channel corrector: P(observed | right) of a recipe times an n-gram model of words."""
