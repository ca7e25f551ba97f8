"""The version of the product, which records of runs hold."""

from __future__ import annotations

__version__ = "0.1.0"
