"""Fence the doctests of docstrings as code: Markdown reads `>>>` as three nested quotations."""

from __future__ import annotations

import re

from griffe import Extension, Object

_DOCTEST = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


class Doctests(Extension):
    """Put fences around the doctests that mkdocstrings shows."""

    def on_instance(self, *, obj: Object, **_: object) -> None:
        """Change the docstring of a module, class, function or attribute."""
        if obj.docstring:
            text = _DOCTEST.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
            obj.docstring.value = text
