"""The engine: it draws an operator, places and replacements as functions of the seed."""
