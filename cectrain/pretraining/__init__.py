"""Pretraining of the built-in policy: a pool of sentences, and stages of supervised steps."""
