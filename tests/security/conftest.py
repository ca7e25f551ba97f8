"""Lets the tests of this folder share the loopback server and one another's helpers."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "cecbench"), str(Path(__file__).parent)]
