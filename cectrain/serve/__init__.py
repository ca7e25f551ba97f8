"""The server of the corrector: a page for people, and JSON for programs."""
