"""The click skin: one module a command."""
