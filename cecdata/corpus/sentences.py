"""The splitting of paragraphs into sentences; only whitespace at the cuts is lost.

。！？ end a sentence. Half-width ! and ? do unless letters or digits follow, as in the query of a
URL. …… does only before a space, a closing mark or the end of the line; elsewhere it is a pause.
Closing marks and further end marks belong to the sentence that they follow, and nothing ends before
a comma, colon, semicolon or dash.

Between brackets or quotation marks of one line nothing ends. After them a sentence may end, if the
last character between them ends one: always after quotation marks, never after the marks of a
title, and after parentheses if the sentence began with them. The end of a line ends one, too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.kernels import Bytes, Int32s, compiled, read_code_point, view_string_buffers
from cecdata.corpus.characters import WHITESPACE
from cecdata.shards.schema import ROW

_ENDS, _HALF_WIDTH, _PAUSE = "。！？｡﹗﹖‼⁇⁈⁉", "!?", "…"
_QUOTES, _TITLES = "“”‘’「」『』﹁﹂﹃﹄｢｣〝〞«»‹›❛❜❝❞", "《》〈〉＜＞⟨⟩⟪⟫︽︾︿﹀"
_PARENTHESES = (
    "（）()【】[]〔〕［］｛｝{}〖〗〘〙〚〛⦅⦆｟｠⟦⟧⦃⦄﹙﹚﹛﹜﹝﹞︵︶︷︸︹︺︻︼﹇﹈⁅⁆❨❩❪❫❲❳❴❵"
)
_STRAIGHT = ('"＂', "'＇")  # quotation marks without sides
_APOSTROPHE = np.uint32(ord("'"))  # between letters or digits, as in "don't", no quotation mark
_CLOSING_AFTER_PAUSE = _QUOTES[1::2] + "".join(_STRAIGHT) + "〟）】》"
# a tilde draws out the end that it follows
_CLOSING = _CLOSING_AFTER_PAUSE + _PARENTHESES[1::2] + _TITLES[1::2] + "～〜~"
_COMMAS = "，、；：,;:—､﹐﹑﹔﹕︐︑︓︔–―─⸺⸻‒‑‐－﹘﹣〰"
_LINE_ENDS = "\n\r\x0b\x0c\x85\u2028\u2029"
_SEPARATORS = "\x1c\x1d\x1e\x1f"  # whitespace to Python, besides WHITESPACE
_CONTINUES = "_&=/%#.+-"  # and ASCII letters and digits: no sentence ends before these
_OF = np.uint32(ord("的"))  # no sentence begins with it: “着火了！”的喊声

# Classes of characters, as bits
_END, _HALF, _DOTS, _CLOSE, _AFTER, _LINE, _SPACE, _GOES_ON, _COMMA = (1 << bit for bit in range(9))
# Above them the number of a pair of brackets, twice, and 1 for the closing one; straight ones first
_PAIR, _FIRST_QUOTE = 9, 1 + len(_STRAIGHT)
_FIRST_TITLE = _FIRST_QUOTE + len(_QUOTES) // 2  # numbers of pairs
_FIRST_PARENTHESIS = _FIRST_TITLE + len(_TITLES) // 2
_LONGEST = 1536  # bytes, some 512 characters: a longer stretch between brackets is cut as any text
_TABLE = 1 << 16
_NONE = np.uint64(1 << 63)  # no place

Classes = npt.NDArray[np.uint16]


def _make_classes() -> Classes:
    """Return the classes of the characters below U+10000; all others have none."""
    table = np.zeros(_TABLE, np.uint16)
    ranged = [chr(code) for code in range(0x2000, 0x200B)]
    spaces = [*WHITESPACE.replace("\u2000-\u200a", ""), *ranged, *_SEPARATORS]
    letters = [chr(code) for code in range(128) if chr(code).isalnum()]
    of_class = {
        _END: _ENDS,
        _HALF: _HALF_WIDTH,
        _DOTS: _PAUSE,
        _CLOSE: _CLOSING,
        _AFTER: [*_CLOSING_AFTER_PAUSE, *spaces],
        _LINE: _LINE_ENDS,
        _SPACE: spaces,
        _GOES_ON: [*_CONTINUES, *letters],
        _COMMA: _COMMAS,
    }
    for bit, characters in of_class.items():
        table[[ord(character) for character in characters]] |= bit
    for number, mark in enumerate(_QUOTES + _TITLES + _PARENTHESES, 2 * _FIRST_QUOTE):
        table[ord(mark)] |= number << _PAIR
    for number, marks in enumerate(_STRAIGHT, 1):
        table[[ord(mark) for mark in marks]] |= 2 * number << _PAIR
    return table


_CLASSES = _make_classes()


def split_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Split the texts of a batch of the schema ROW; each sentence keeps its origin, file, row."""
    places, sentences = _cut_sentences(batch.column("text"))
    if len(places) == batch.num_rows:
        return batch
    # without the text, which would be copied whole for each of its sentences
    others = batch.select([name for name in ROW.names if name != "text"])
    taken = others.take(pa.array(places))
    arrays = [sentences if name == "text" else taken.column(name) for name in ROW.names]
    return pa.RecordBatch.from_arrays(arrays, schema=ROW)


def _cut_sentences(text: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """Return, for each sentence of the texts, the index of its text, and the sentence."""
    data, bounds = view_string_buffers(text)
    longest = int(np.diff(bounds).max(initial=0)) + 1
    work = np.empty((3, longest), np.int32)
    empty = np.empty(0, np.int64)
    count = int(_find_sentences(data, bounds, _CLASSES, work, empty, empty, empty))
    rows, starts, stops = (np.empty(count, np.int64) for _ in range(3))
    _find_sentences(data, bounds, _CLASSES, work, rows, starts, stops)
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(stops - starts, out=offsets[1:])
    copied = np.empty(int(offsets[-1]), np.uint8)
    _copy(data, starts, offsets, copied)
    buffers = pa.py_buffer(offsets), pa.py_buffer(copied)
    return rows, pa.StringArray.from_buffers(count, *buffers)


@compiled
def _copy(data: Bytes, starts: npt.NDArray[np.int64], offsets: Int32s, copied: Bytes) -> None:
    """Copy the bytes of the sentences that begin at `starts` into `copied`, at `offsets`."""
    for i in range(starts.size):
        size = offsets[i + 1] - offsets[i]
        copied[offsets[i] : offsets[i + 1]] = data[starts[i] : starts[i] + size]


@compiled
def _is_in_word(data: Bytes, start: int, at: np.uint64, stop: int, classes: Classes) -> bool:
    """Return whether the byte before `at` lies between two ASCII letters or digits."""
    if at - np.uint64(start) < 2 or at >= np.uint64(stop):
        return False
    return bool(classes[data[at - np.uint64(2)]] & classes[data[at]] & _GOES_ON)


@compiled
def _find_mates(
    data: Bytes, start: int, stop: int, classes: Classes, work: npt.NDArray[np.int32]
) -> None:
    """Write into work[0] the place of each bracket's other half in its line, or -1.

    Places count from `start`. A bracket without its other half, or too far from it, has none.
    """
    mates, places, pairs = work[0], work[1], work[2]
    open_pairs = np.zeros(64, np.int32)  # by number
    top = 0
    at = np.uint64(start)
    while at < np.uint64(stop):
        here = np.int64(at) - start
        code, at = read_code_point(data, at)
        mates[here] = -1
        kind = np.int64(classes[code] if code < _TABLE else 0)
        if kind & _LINE:
            open_pairs[:] = 0
            top = 0
        number = kind >> _PAIR
        if number == 0 or (code == _APOSTROPHE and _is_in_word(data, start, at, stop, classes)):
            continue
        pair = number >> 1
        closes = open_pairs[pair] > 0 if pair < _FIRST_QUOTE else number & 1
        if not closes:
            places[top], pairs[top] = here, pair
            top += 1
            open_pairs[pair] += 1
        elif open_pairs[pair]:
            while pairs[top - 1] != pair:  # brackets that were not closed inside this pair
                top -= 1
                open_pairs[pairs[top]] -= 1
            top -= 1
            open_pairs[pair] -= 1
            if here - places[top] <= _LONGEST:
                mates[here], mates[places[top]] = places[top], here


@compiled
def _ends_sentence(
    data: Bytes, at: np.uint64, stop: np.uint64, kind: np.int64, pause: bool, classes: Classes
) -> bool:
    """Return whether the mark of a class that is before `at` ends a sentence."""
    if kind & _HALF and at < stop:
        code, _ = read_code_point(data, at)
        return bool(np.int64(classes[code] if code < _TABLE else 0) & _GOES_ON == 0)
    if kind & _DOTS:
        if pause:
            return False
        while at < stop:
            code, at = read_code_point(data, at)
            following = np.int64(classes[code] if code < _TABLE else 0)
            if not following & _DOTS:
                return bool(following & (_AFTER | _LINE))
        return True
    return bool(kind & (_END | _HALF))


@compiled
def _find_sentences(
    data: Bytes,
    bounds: Int32s,
    classes: Classes,
    work: npt.NDArray[np.int32],
    rows: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    stops: npt.NDArray[np.int64],
) -> int:
    """Write row, start and stop (bytes) of each sentence; return the number of sentences.

    Empty arrays are not written.
    """
    count = 0
    for row in range(bounds.size - 1):
        before = count
        start, stop = np.uint64(bounds[row]), np.uint64(bounds[row + 1])
        _find_mates(data, bounds[row], bounds[row + 1], classes, work)
        at, first, last = start, _NONE, start  # first, last: bounds of the sentence without spaces
        ended = pause = False
        depth = 0
        while at <= stop:
            here, code, kind, mate = at, np.uint32(0), np.int64(0), np.int64(-1)
            if at < stop:
                code, at = read_code_point(data, at)
                kind = np.int64(classes[code] if code < _TABLE else 0)
                mate = np.int64(work[0, here - start])
            else:
                at += np.uint64(1)
            opens = mate > np.int64(here - start)
            closes = not opens and (kind & _CLOSE) != 0
            ends = _ends_sentence(data, at, stop, kind, pause, classes)
            space = (kind & _SPACE) != 0
            stays = ends or closes or space or (pause and (kind & _DOTS) != 0)
            pause = (kind & _DOTS) != 0
            line = here == stop or (kind & _LINE) != 0
            goes_on = depth > 0 or (kind & _COMMA) != 0 or code == _OF
            if goes_on and not (line or stays):
                ended = False
            if line or (ended and not stays):
                if first != _NONE:
                    if rows.size:
                        rows[count] = row
                        starts[count], stops[count] = np.int64(first), np.int64(last)
                    count += 1
                first, ended = _NONE, False
            if opens:
                depth += 1
            elif mate >= 0:
                depth -= 1
                pair = kind >> (_PAIR + 1)
                if pair >= _FIRST_PARENTHESIS:
                    ended = ended and first == start + np.uint64(mate)
                elif pair >= _FIRST_TITLE:
                    ended = False
            if here < stop and not space:
                first = here if first == _NONE else first
                last = at
            ended = (ended or ends) and not line
            if line:
                depth = 0
        if count == before:
            if rows.size:
                rows[count] = row
                starts[count], stops[count] = np.int64(start), np.int64(stop)
            count += 1
    return count
