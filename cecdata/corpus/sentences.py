"""The splitting of paragraphs into sentences; only whitespace at the cuts is lost.

。！？ end a sentence anywhere. Half-width ! and ? do unless letters or digits follow, as in the
query of a URL. …… does only before a space, a closing quote or the end of the line; elsewhere it is
a pause. Closing quotes and further marks belong to the sentence that they follow. The end of a line
ends a sentence, too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.kernels.jit import compiled
from cecdata.common.kernels.utf8 import Bytes, Int32s, code_point, string_buffers
from cecdata.corpus.characters import WHITESPACE
from cecdata.shards.schema import ROW

_ENDS, _HALF_WIDTH, _PAUSE = "。！？", "!?", "…"
_CLOSING = '”’」』）】》〉"'
_CLOSING_AFTER_PAUSE = '”’」』）】》"'
_LINE_ENDS = "\n\r\x0b\x0c\x85\u2028\u2029"
_SEPARATORS = "\x1c\x1d\x1e\x1f"  # whitespace to Python, besides WHITESPACE
_CONTINUES = "_&=/%#.+-"  # and ASCII letters and digits: no sentence ends before these

# Classes of characters, as bits
_END, _HALF, _DOTS, _CLOSE, _AFTER, _LINE, _SPACE, _GOES_ON = (1 << bit for bit in range(8))
_TABLE = 1 << 16
_NONE = np.uint64(1 << 63)  # no place


def _classes() -> Bytes:
    """Return the classes of the characters below U+10000; all others have none."""
    table = np.zeros(_TABLE, np.uint8)
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
    }
    for bit, characters in of_class.items():
        table[[ord(character) for character in characters]] |= bit
    return table


_CLASSES = _classes()


def split_text(text: str) -> list[str]:
    """Return the sentences of one paragraph, with closing quotes, without the space between them.

    >>> split_text("他说：“走吧！”我没动。网址是 https://a.cn/?q=1，圆周率是3.14。")
    ['他说：“走吧！”', '我没动。', '网址是 https://a.cn/?q=1，圆周率是3.14。']
    """
    sentences: list[str] = _cut(pa.array([text], pa.string()))[1].to_pylist()
    return sentences


def split(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Split the texts of a batch of the schema ROW; each sentence keeps its origin, file, row."""
    places, sentences = _cut(batch.column("text"))
    if len(places) == batch.num_rows:
        return batch
    # without the text, which would be copied whole for each of its sentences
    others = batch.select([name for name in ROW.names if name != "text"])
    taken = others.take(pa.array(places))
    arrays = [sentences if name == "text" else taken.column(name) for name in ROW.names]
    return pa.RecordBatch.from_arrays(arrays, schema=ROW)


def _cut(text: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """Return, for each sentence of the texts, the index of its text, and the sentence."""
    data, bounds = string_buffers(text)
    count = int(_pieces(data, bounds, _CLASSES, *_nothing()))
    rows, starts, stops = (np.empty(count, np.int64) for _ in range(3))
    _pieces(data, bounds, _CLASSES, rows, starts, stops)
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(stops - starts, out=offsets[1:])
    held = np.empty(int(offsets[-1]), np.uint8)
    _copy(data, starts, offsets, held)
    buffers = pa.py_buffer(offsets), pa.py_buffer(held)
    return rows, pa.StringArray.from_buffers(count, *buffers)


def _nothing() -> tuple[npt.NDArray[np.int64], ...]:
    return tuple(np.empty(0, np.int64) for _ in range(3))


@compiled
def _copy(data: Bytes, starts: npt.NDArray[np.int64], offsets: Int32s, held: Bytes) -> None:
    for i in range(starts.size):
        size = offsets[i + 1] - offsets[i]
        held[offsets[i] : offsets[i + 1]] = data[starts[i] : starts[i] + size]


@compiled
def _pieces(
    data: Bytes,
    bounds: Int32s,
    classes: Bytes,
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
        at, first, last = start, _NONE, start  # first, last: bounds of the sentence without spaces
        ended = pause = False
        while at <= stop:
            here, kind = at, np.int64(0)
            if at < stop:
                code, at = code_point(data, at)
                kind = np.int64(classes[code] if code < _TABLE else 0)
            else:
                at += np.uint64(1)
            ends = (kind & _END) != 0
            if kind & (_HALF | _DOTS):
                # Does the run of … or the half-width mark end the sentence?
                ends = True
                if kind & _DOTS:
                    ends = not pause
                    while ends and at < stop:
                        code, after = code_point(data, at)
                        following = np.int64(classes[code] if code < _TABLE else 0)
                        if not following & _DOTS:
                            ends = (following & (_AFTER | _LINE)) != 0
                            break
                        at = after
                    pause = True
                elif at < stop:
                    code, _ = code_point(data, at)
                    following = np.int64(classes[code] if code < _TABLE else 0)
                    ends = not following & _GOES_ON
            if not kind & _DOTS:
                pause = False
            line = here == stop or (kind & _LINE) != 0
            if line or (ended and not ends and not kind & _CLOSE):
                if first != _NONE:
                    if rows.size:
                        rows[count] = row
                        starts[count], stops[count] = np.int64(first), np.int64(last)
                    count += 1
                first, ended = _NONE, False
            if here < stop and not kind & _SPACE:
                first = here if first == _NONE else first
                last = at
            ended = (ended or ends) and not line
        if count == before:
            if rows.size:
                rows[count] = row
                starts[count], stops[count] = np.int64(start), np.int64(stop)
            count += 1
    return count
