"""Text of which each line is read by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cectrain.documents.document import Passage, join_parts


def find_passages(source: str) -> Iterator[Passage]:
    """Yield each line."""
    for line in re.finditer(r"[^\n]+", source):
        yield join_parts(source, [line.span()])
