"""M2: sentences in tokens with their edits, as ERRANT and ChERRANT write them.

S 我 门 走 。
T0-A0 我 们 走 。
A 1 2|||S|||们|||REQUIRED|||-NONE-|||0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cecdata.common.text import joined

_NOTHING = ("-NONE-", "")
_RIGHT = ("没有错误", "")  # in place of a sentence that equals the source
Line = tuple[int, str]  # with its number
Edit = tuple[int, int, list[str], int]  # start, end, tokens, number of its line


def sentences(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Yield the lines of each sentence, blank ones left out, from its line S on."""
    held: list[Line] = []
    for number, line in lines:
        if line.startswith("S ") or line == "S":
            if held:
                yield held
            held = [(number, line)]
        elif line.strip():
            held.append((number, line))
    if held:
        yield held


def parsed(held: list[Line]) -> tuple[list[str], list[str], dict[int, list[Edit]]]:
    """Return a sentence in tokens, its corrections in lines T, and the edits of each annotator.

    Raises ValueError, which names the line, for a line of another form.
    """
    first, sentence = held[0]
    if sentence.partition(" ")[0] != "S":
        raise ValueError(f"line {first} must begin with S, A or T, that of a sentence with S")
    tokens, given = _tokens(sentence[1:]), list[str]()
    edits: dict[int, list[Edit]] = {}
    for number, line in held[1:]:
        mark, _, rest = line.partition(" ")
        if mark == "A":
            try:
                place, kind, text, _, _, *_, annotator = rest.split("|||")
                changes = edits.setdefault(int(annotator), [])
                start, end = map(int, place.split())
            except ValueError:
                form = "`A start end|||type|||text|||…|||annotator`"
                raise ValueError(f"line {number} is not {form}") from None
            if kind.strip() != "noop" and start >= 0:
                words = [] if text.strip(" ") in _NOTHING else _tokens(text)
                changes.append((start, end, words, number))
        elif mark.startswith("T"):
            given.append(joined(tokens if rest.strip(" ") in _RIGHT else _tokens(rest)))
        else:
            raise ValueError(f"line {number} must begin with S, A or T")
    return tokens, given, edits


def _tokens(text: str) -> list[str]:
    """Return the tokens of a line: one may be white space that is wide or ends a line elsewhere."""
    return [token for token in text.replace("\t", " ").split(" ") if token]


def edited(tokens: list[str], edits: list[Edit]) -> str:
    """Return the corrected sentence; edits at one place are made in the file's order.

    Raises ValueError, which names the line, for edits that overlap.
    """
    parts: list[str] = []
    at = 0
    for start, end, words, number in sorted(edits, key=lambda edit: edit[:2]):
        if not at <= start <= end <= len(tokens):
            raise ValueError(f"line {number} has an overlapping or impossible span {start} {end}")
        parts += tokens[at:start] + words
        at = end
    return joined(parts + tokens[at:])
