"""The report of a dataset: one HTML page and one Markdown file."""
