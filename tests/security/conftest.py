"""Lets the tests of this folder share the tiny models of cecbench and one another's helpers."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "cecbench"), str(Path(__file__).parent)]
