"""Scores for Chinese spelling correction that match the published scorers and can be compared.

Start reading at `scorers.py`: one table names every scorer, `score` gives counts per sentence and
the published numbers, `score_file` the JSON object that `cecbench score` prints.
"""

from __future__ import annotations
