"""Clean Chinese text in, validated (source, target) training pairs out."""

__version__ = "0.1.0"
