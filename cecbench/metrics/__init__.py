"""The published scorers: counts per sentence that add up, and reports of their sums."""
