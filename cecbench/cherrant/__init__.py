"""ChERRANT at the granularity of characters: align → merge → classify → M2 → counts.

Restated from the published rules and outputs (HillZhang1999/MuCGEC, scorers/ChERRANT).
"""

from __future__ import annotations
