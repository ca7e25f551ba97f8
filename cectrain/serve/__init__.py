"""A local web page, and a JSON endpoint, in front of a corrector."""
