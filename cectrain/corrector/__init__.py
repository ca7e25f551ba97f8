"""The corrector: what `cectrain correct`, `cectrain.Corrector` and cecbench's `policy:` run.

This room depends on cecdata, and on cecbench's prompts and causal models; on nothing else of
cectrain.
"""
