"""Counts per sentence that add up, and the reports that the published scripts make of them."""

from __future__ import annotations
