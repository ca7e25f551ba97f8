"""The system that changes nothing, with which every other one is compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cecbench.systems.answer import Answer
from cecbench.systems.kind import Kind
from cecbench.systems.options import NoOptions


class CopySystem:
    """Answers every sentence with itself."""

    name = "copy"
    identity: Mapping[str, object] = {"kind": "copy"}
    block = 0

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        """Return the sources themselves."""
        return (Answer(source, source) for source in sources)


KIND = Kind(
    "copy", "changes nothing; the floor", NoOptions, lambda *_: CopySystem(), recorded=False
)
