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

# The class of a character: flags in the bits 0 to 8, and above them the number of a mark in a pair.
# That is twice the number of the pair, and 1 more for the closing mark; 0 for any other character.
# Pairs are numbered from 1: straight quotation marks, other ones, marks of titles, parentheses.
_END, _HALF, _DOTS, _CLOSE, _AFTER, _LINE, _SPACE, _GOES_ON, _COMMA = (1 << bit for bit in range(9))
_MARK, _FIRST_QUOTE = 9, 1 + len(_STRAIGHT)
_FIRST_TITLE = _FIRST_QUOTE + len(_QUOTES) // 2
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
        table[ord(mark)] |= number << _MARK
    for pair, marks in enumerate(_STRAIGHT, 1):
        table[[ord(mark) for mark in marks]] |= 2 * pair << _MARK
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


def _cut_sentences(text: pa.Array) -> tuple[Int32s, pa.Array]:
    """Return, for each sentence of the texts, the index of its text, and the sentence."""
    data, bounds = view_string_buffers(text)
    longest = int(np.diff(bounds).max(initial=0)) + 1
    work = np.empty((3, longest), np.int32)
    # room for a sentence of each byte and each empty text; only what is written takes memory
    most = int(bounds[-1] - bounds[0]) + len(text)
    sentences = np.empty((3, most), np.int32)
    count = int(_find_sentences(data, bounds, _CLASSES, work, sentences))
    rows, starts, stops = sentences[:, :count]
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(stops - starts, out=offsets[1:])
    copied = np.empty(int(offsets[-1]), np.uint8)
    _copy(data, starts, offsets, copied)
    buffers = pa.py_buffer(offsets), pa.py_buffer(copied)
    return rows, pa.StringArray.from_buffers(count, *buffers)


@compiled
def _copy(data: Bytes, starts: Int32s, offsets: Int32s, copied: Bytes) -> None:
    """Copy the bytes of the sentences that begin at `starts` into `copied`, at `offsets`."""
    for number in range(starts.size):
        at, end, start = offsets[number], offsets[number + 1], starts[number]
        copied[at:end] = data[start : start + end - at]


@compiled
def _classify(code: np.uint32, classes: Classes) -> np.int64:
    """Return the class of a code point."""
    return np.int64(classes[code] if code < _TABLE else 0)


@compiled
def _is_in_word(data: Bytes, start: int, at: np.uint64, stop: int, classes: Classes) -> bool:
    """Return whether the byte before `at` lies between two ASCII letters or digits."""
    if at - np.uint64(start) < 2 or at >= np.uint64(stop):
        return False
    return bool(classes[data[at - np.uint64(2)]] & classes[data[at]] & _GOES_ON)


@compiled
def _find_mates(data: Bytes, start: int, stop: int, classes: Classes, work: Int32s) -> None:
    """Write into work[0] the place of each bracket's other half in its line, or -1.

    Places are bytes from `start` on. A bracket too far from its other half has none.
    """
    mates = work[0]
    places, pairs, top = work[1], work[2], 0  # those of the brackets that are open, and how many
    open_pairs = np.zeros(64, np.int32)  # how many of each pair are open
    at = np.uint64(start)
    while at < np.uint64(stop):
        here = np.int64(at) - start
        code, at = read_code_point(data, at)
        mates[here] = -1
        kind = _classify(code, classes)
        if kind & _LINE:
            open_pairs[:] = 0
            top = 0
        mark = kind >> _MARK
        if mark == 0 or (code == _APOSTROPHE and _is_in_word(data, start, at, stop, classes)):
            continue
        pair = mark >> 1
        closes = open_pairs[pair] > 0 if pair < _FIRST_QUOTE else mark & 1
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
    """Return whether the mark before `at`, of the class `kind`, ends a sentence.

    `pause`: whether one … stands before this one, which then decides nothing.
    """
    if kind & _HALF and at < stop:
        code, _ = read_code_point(data, at)
        return bool(_classify(code, classes) & _GOES_ON == 0)
    if kind & _DOTS:
        if pause:
            return False
        while at < stop:
            code, at = read_code_point(data, at)
            following = _classify(code, classes)
            if not following & _DOTS:
                return bool(following & (_AFTER | _LINE))
        return True
    return bool(kind & (_END | _HALF))


@compiled
def _find_sentences(
    data: Bytes, bounds: Int32s, classes: Classes, work: Int32s, sentences: Int32s
) -> int:
    """Write row, start and stop (bytes) of each sentence; return the number of sentences."""
    count = 0
    for row in range(bounds.size - 1):
        start, stop = bounds[row], bounds[row + 1]
        _find_mates(data, start, stop, classes, work)
        before = count
        count = _cut_text(data, start, stop, classes, work[0], sentences, count)
        if count == before:  # a text of spaces
            sentences[1, count], sentences[2, count] = start, stop
            count += 1
        sentences[0, before:count] = row
    return count


@compiled
def _cut_text(
    data: Bytes,
    text_start: int,
    text_stop: int,
    classes: Classes,
    mates: Int32s,
    sentences: Int32s,
    count: int,
) -> int:
    """Write the bounds of a text's sentences behind the first `count`; return the new count.

    Row 1 of `sentences` has the first byte of each, row 2 the byte behind its last. `mates` has the
    offset in the text of the other bracket of a pair, or -1. The turn at `stop` ends a line.
    """
    start, stop = np.uint64(text_start), np.uint64(text_stop)
    at, first, last = start, _NONE, start  # first, last: bounds of the sentence without spaces
    ended = pause = False  # whether the sentence may end here, and whether it stands at a …
    depth = 0  # of brackets
    while at <= stop:
        here, code, kind, mate = at, np.uint32(0), np.int64(0), np.int64(-1)
        if at < stop:
            code, at = read_code_point(data, at)
            kind = _classify(code, classes)
            mate = np.int64(mates[here - start])
        else:
            at += np.uint64(1)
        opens = mate > np.int64(here - start)
        closes = not opens and (kind & _CLOSE) != 0
        ends = _ends_sentence(data, at, stop, kind, pause, classes)
        is_space = (kind & _SPACE) != 0
        # A character that belongs to a sentence that has ended.
        belongs = ends or closes or is_space or (pause and (kind & _DOTS) != 0)
        pause = (kind & _DOTS) != 0
        is_line_end = here == stop or (kind & _LINE) != 0
        continues = depth > 0 or (kind & _COMMA) != 0 or code == _OF
        if continues and not (is_line_end or belongs):
            ended = False
        if is_line_end or (ended and not belongs):
            if first != _NONE:
                sentences[1, count], sentences[2, count] = np.int64(first), np.int64(last)
                count += 1
            first, ended = _NONE, False
        if opens:
            depth += 1
        elif mate >= 0:
            depth -= 1
            ended = ended and _may_end_after(kind, first == start + np.uint64(mate))
        if here < stop and not is_space:
            first = here if first == _NONE else first
            last = at
        ended = (ended or ends) and not is_line_end
        if is_line_end:
            depth = 0
    return count


@compiled
def _may_end_after(kind: np.int64, began_with_it: bool) -> bool:
    """Return whether a sentence may end after a closing mark of the class `kind`.

    Never after that of a title; after a parenthesis only if the sentence began with the other one.
    """
    pair = kind >> (_MARK + 1)
    return bool(pair < _FIRST_TITLE or (pair >= _FIRST_PARENTHESIS and began_with_it))
