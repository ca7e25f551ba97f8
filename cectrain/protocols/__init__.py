"""Protocols of several runs: named runs of one recipe, a folder each, a table out of them."""
