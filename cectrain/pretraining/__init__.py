"""The built-in policy from nothing: pool, stages of supervised steps, what is shipped of it."""
