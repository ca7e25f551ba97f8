"""Reports: a user's results beside the published ones."""
