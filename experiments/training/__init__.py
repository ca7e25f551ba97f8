"""Studies over many training runs, and their reports."""
