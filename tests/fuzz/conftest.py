"""Lets the tests of this folder share the table of readers and the mutator."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
