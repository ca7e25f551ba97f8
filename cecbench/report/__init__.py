"""A user's results beside the published rows, for people and for programs."""
