"""ChERRANT at the granularity of characters: align → merge → classify → count.

The rules are inferred from the published ones and their outputs (HillZhang1999/MuCGEC,
scorers/ChERRANT).
"""
