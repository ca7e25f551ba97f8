"""Lets the tests of this folder share the loopback server."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "cecbench"))
