"""The adaptation of the corrector to a field, from clean text of the field alone."""
