"""From rows to sentences: NFC, no invisible characters, single spaces, an allowed length, an id.

One compiled pass over the Arrow buffer recognises clean rows, which are nearly all, and leaves them
unchanged; only a row that the pass flags goes through `normalise_text`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.common.kernels import Bytes, Int32s, compiled, read_code_point, view_string_buffers
from cecdata.corpus import characters as ch
from cecdata.corpus.ids import Mask, make_id_column
from cecdata.shards.schema import POOLED, REJECTED_ROW

# The pool's row before it is written, with its place in the corpus.
LOCATED_SENTENCE = pa.schema(
    [*POOLED, pa.field("file", pa.string(), False), pa.field("row", pa.int64(), False)]
)


@dataclass(frozen=True, slots=True)
class Normalised:
    """`batch` has the schema LOCATED_SENTENCE, `rejected` REJECTED_ROW; each row is in one."""

    batch: pa.RecordBatch
    rejected: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a text is not a sentence."""

    reason: str
    detail: str


_NFC = functools.partial(unicodedata.normalize, "NFC")


def normalise(
    batch: pa.RecordBatch,
    min_chars: int,
    max_chars: int,
    mask: Callable[[pa.Array], pa.Array] | None = None,
) -> Normalised:
    """Normalise a batch of the schema ROW and give every sentence its id.

    A sentence has `min_chars` to `max_chars` code points in its normal form.
    `mask`, such as `privacy.mask`, replaces personal data in the normal form of the texts, and in
    the texts of the rejected rows. Reasons: empty, control_character, replacement_character,
    private_use, noncharacter, too_short, too_long.
    """
    text = batch.column("text")
    lengths, flagged = measure_texts(text)
    faults = list[Fault]()
    fault_index = np.full(len(text), -1, dtype=np.int32)  # in `faults`; -1: the text has none
    slow = np.flatnonzero(flagged)
    if len(slow):
        text = _repair(text, slow, lengths, fault_index, faults)
    if mask is not None:
        text = mask(text)
        lengths, _ = measure_texts(text)
        batch = batch.set_column(0, batch.schema.field("text"), text)  # of rejected rows, too
    _add_length_faults(lengths, min_chars, max_chars, fault_index, faults)
    # with the original text unless it is masked
    rejected = _reject_faulty(batch, fault_index, faults)
    batch = batch.set_column(0, batch.schema.field("text"), text)
    if faults:
        batch = batch.filter(pa.array(fault_index < 0))
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns["id"] = make_id_column(columns["text"])
    placed = [columns[name] for name in LOCATED_SENTENCE.names]
    return Normalised(pa.RecordBatch.from_arrays(placed, schema=LOCATED_SENTENCE), rejected)


def _reject_faulty(
    batch: pa.RecordBatch, fault_index: Int32s, faults: list[Fault]
) -> pa.RecordBatch:
    """Return the rows that have a fault, as a batch of the schema REJECTED_ROW."""
    places = np.flatnonzero(fault_index >= 0)
    fault_of, bad = pa.array(fault_index[places]), batch.take(pa.array(places))
    reasons = pa.array([fault.reason for fault in faults], pa.string()).take(fault_of)
    details = pa.array([fault.detail for fault in faults], pa.string()).take(fault_of)
    return reject_rows(bad, reasons, details)


def reject_rows(
    batch: pa.RecordBatch, reason: str | pa.Array, details: list[str] | pa.Array
) -> pa.RecordBatch:
    """Return rows with columns text, origin, file, row as a batch of the schema REJECTED_ROW."""
    reasons = [reason] * len(batch) if isinstance(reason, str) else reason
    made = {"reason": pa.array(reasons, pa.string()), "detail": pa.array(details, pa.string())}
    arrays = [made[name] if name in made else batch.column(name) for name in REJECTED_ROW.names]
    return pa.RecordBatch.from_arrays(arrays, schema=REJECTED_ROW)


def normalise_text(text: str) -> str | Fault:
    r"""Return the normal form of one text, or the forbidden character in it.

    >>> normalise_text("\ufeff 他的\u200b病情\u3000 已经好转。\n")
    '他的病情 已经好转。'
    >>> normalise_text("他的\x00病情")
    Fault(reason='control_character', detail='U+0000 at 2')
    """
    for reason, signs in ch.FORBIDDEN.items():
        if sign := re.search(f"[{signs}]", text):
            return Fault(reason, f"U+{ord(sign[0]):04X} at {sign.start()}")
    text = text.translate(ch.look_alikes())
    form, before = _NFC(re.sub(f"[{ch.INVISIBLE}]+", "", text)), ""
    while form != before:  # without a joiner characters may compose, and others join nothing
        before, form = form, _NFC(re.sub(_STRAY, "", form))
    return re.sub(f"[{ch.WHITESPACE}]+", " ", form).strip(" ")


# A joiner or a style at an edge, at whitespace or beside Han characters or ASCII joins nothing, nor
# does a tag that follows no flag. A run of them is found whole, so that one pass removes it.
_EDGE = f"[{ch.WHITESPACE}{ch.HAN_CLASS}\x21-\x7e\u3001-\u303f\uff01-\uffef]"
_STRAY = (
    f"(?:^|(?<={_EDGE}))(?:[{ch.JOINERS}{ch.TAGS}]|[{ch.STYLES}](?!\u20e3))+"
    f"|(?<![{ch.JOINERS}])[{ch.JOINERS}]+(?=$|{_EDGE})"
    f"|(?<![\U0001f3f4{ch.TAGS}])[{ch.TAGS}]+"
)


# The form that is judged: what looks alike is the same character. The text itself keeps its width.

_LETTERS = re.compile(r"[0-9A-Za-z@._/+#&%=*:-]+")
_FOLDED = (*range(0xA0, 0x20000), *range(0xE0000, 0xE1000))  # beyond: Han, and private use


@functools.cache
def map_forms() -> dict[int, str]:
    """Return what a character is judged as, by code point, where that is not the character itself.

    Digits of any script, circled ones too, are ASCII digits; letters of any width, style or circle
    and signs of addresses are ASCII; all dashes are hyphens; combining marks, characters of format
    and the blank of Braille are left out. Chinese punctuation keeps its width.
    """
    table = {code: chr(form) for code, form in ch.look_alikes().items()}
    invisible = re.compile(f"[{ch.INVISIBLE}{ch.JOINERS}\u2800]").match
    for code in _FOLDED:
        sign = chr(code)
        kind = unicodedata.category(sign)
        form, digit = unicodedata.normalize("NFKC", sign), unicodedata.digit(sign, None)
        if kind in ("Mn", "Me", "Cf") or invisible(sign):
            table[code] = ""
        elif digit is not None:
            table[code] = str(digit)
        elif kind == "Pd":
            table[code] = "-"
        elif form != sign and _LETTERS.fullmatch(form) and sign != "\uff1a":
            table[code] = form
    return table


@functools.cache
def make_judged_pattern() -> str:
    """Return a character class of all keys of `map_forms`, none of which RE2 reads as a sign."""
    return f"[{''.join(map(chr, map_forms()))}]"


def fold_for_judging(text: pa.Array) -> pa.Array:
    """Return the texts in the form that is judged."""
    chosen = pc.match_substring_regex(text, make_judged_pattern())
    if not pc.any(chosen).as_py():
        return text
    forms = [value.translate(map_forms()) for value in text.filter(chosen).to_pylist()]
    return pc.replace_with_mask(text, chosen, pa.array(forms, pa.string()))


def measure_texts(text: pa.Array) -> tuple[Int32s, Mask]:
    """Return every string's number of code points, and whether it needs `normalise_text`."""
    lengths = np.zeros(len(text), dtype=np.int32)
    slow = np.zeros(len(text), dtype=np.bool_)
    if len(text):
        data, offsets = view_string_buffers(text)
        _measure(data, offsets, ch.classify_treatments(), lengths, slow)
    return lengths, slow


def _repair(
    text: pa.Array,
    slow: npt.NDArray[np.int64],
    lengths: Int32s,
    fault_index: Int32s,
    faults: list[Fault],
) -> pa.Array:
    """Return the texts with the flagged rows normalised, and update their lengths.

    New faults go to the end of `faults`, and the index of a row's fault to `fault_index`. Equal
    texts are normalised once: a few hundred compressed bytes may hold a million of them.
    """
    coded = text.take(pa.array(slow)).dictionary_encode()
    different = coded.dictionary.to_pylist()
    fault_of_different = np.full(len(different), -1, np.int32)
    for place, value in enumerate(different):
        form = normalise_text(value)
        if isinstance(form, Fault):
            fault_of_different[place] = len(faults)
            faults.append(form)
        else:
            different[place] = form
    fault_index[slow] = fault_of_different[coded.indices.to_numpy()]
    replacement = pa.array(different, pa.string()).take(coded.indices)
    lengths[slow], _ = measure_texts(replacement)
    mask = np.zeros(len(text), dtype=np.bool_)
    mask[slow] = True
    return pc.replace_with_mask(text, pa.array(mask), replacement)


def _add_length_faults(
    lengths: Int32s, min_chars: int, max_chars: int, fault_index: Int32s, faults: list[Fault]
) -> None:
    """Add the faults of texts that are too short or too long, one for each length."""
    outside = (lengths < max(min_chars, 1)) | (lengths > max_chars)
    outside &= fault_index < 0
    sizes, places = np.unique(lengths[outside], return_inverse=True)
    fault_index[outside] = len(faults) + places
    faults += [_describe_length_fault(size, min_chars, max_chars) for size in sizes.tolist()]


def _describe_length_fault(length: int, min_chars: int, max_chars: int) -> Fault:
    """Return why a text of this length is not a sentence."""
    if length == 0:
        return Fault("empty", "nothing but whitespace")
    if length < min_chars:
        return Fault("too_short", f"{length} characters; the minimum is {min_chars}")
    return Fault("too_long", f"{length} characters; the limit is {max_chars}")


@compiled
def _measure(data: Bytes, offsets: Int32s, classes: Bytes, lengths: Int32s, slow: Mask) -> None:
    """Count each row's code points, and mark the rows that may not be in normal form."""
    for row in range(lengths.size):
        at, end = np.uint64(offsets[row]), np.uint64(offsets[row + 1])
        count = 0
        flag = False
        space = True  # the edge of the text counts as a space, so a space there is removed
        while at < end:
            code, at = read_code_point(data, at)
            count += 1
            # above the table: Han as far as U+3FFFD
            kind = classes[code] if code < ch.TABLE_SIZE else ch.SLOW * (code >= 0x3FFFE)
            flag |= kind == ch.SLOW or (space and kind == ch.SPACE)
            space = kind == ch.SPACE
        lengths[row] = count
        slow[row] = flag or space
