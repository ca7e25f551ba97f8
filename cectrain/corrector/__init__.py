"""The corrector: what `cectrain correct`, `cectrain.Corrector` and cecbench's `policy:` run.

This room depends on `cecdata` alone: neither on the rest of cectrain nor on cecbench.
"""
