"""Lets the tests of this folder share the loopback server, whatever order they are imported in."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
