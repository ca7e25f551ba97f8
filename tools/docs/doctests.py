"""Doctests of docstrings as blocks of code: Markdown takes `>>>` for three quotations."""

from __future__ import annotations

import re

from griffe import Extension, Object

_DOCTEST = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


class Doctests(Extension):
    """Puts fences around the doctests of what mkdocstrings shows."""

    def on_instance(self, *, obj: Object, **_: object) -> None:
        """Change the docstring of a module, class, function or attribute."""
        if obj.docstring:
            text = _DOCTEST.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
            obj.docstring.value = text
