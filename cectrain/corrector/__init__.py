"""The corrector: what `cectrain correct`, `cectrain.Corrector` and cecbench's `policy:` run.

This room depends on cecdata, and on nothing else of cectrain.
"""
