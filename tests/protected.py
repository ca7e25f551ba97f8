"""The protected spans of one text, for the tests."""

import numpy as np

from cecdata.corpus.protect import FIRST, FURTHER, mark_spans


def spans_of(text: str) -> list[tuple[int, int]]:
    """Return the protected spans of one text."""
    raw = np.frombuffer(text.encode() or b"\0", np.uint8)
    marks = mark_spans(raw, np.array([0, len(text.encode())], np.int32)).tolist()
    spans: list[tuple[int, int]] = []
    for at, held in enumerate(marks):
        if held == FIRST:
            spans.append((at, at + 1))
        elif held == FURTHER:
            spans[-1] = spans[-1][0], at + 1
    return spans
