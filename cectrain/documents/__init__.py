"""Files as people write them: their prose, and the same bytes with edits of it alone.

This room depends on cecdata and the corrector, and on nothing else of cectrain.
"""
