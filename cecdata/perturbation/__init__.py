"""The engine: it draws an operator, positions and replacements as functions of the seed."""
