"""A channel over the words of an n-gram model, as the arrays that the lattice takes.

A span is a text that an error puts in the place of a whole word, a form is a word without one of
its characters. Both are found by 64-bit keys in hash tables, which lead to the words meant.

Making them takes seconds, so that those of a file are kept in the user's cache, from where they are
mapped into memory.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from cecdata import lm as lm_room
from cecdata.common.kernels import compiled_with, hash_sources, inlined
from cecdata.common.machine import find_user_folder
from cecdata.hanzi.characters import (
    TABLES,
    find_frequency,
    is_standard,
    standard_characters,
    traditional_forms,
    variant_forms,
)
from cecdata.hanzi.readings import common_readings, list_similar_syllables
from cecdata.lm.kernels import find_shift, slot_of_key
from cecdata.lm.ngrams import find_model, locate
from cecdata.lm.table import Ngrams, Tables
from cectrain.corrector.channel.inverse import SHIPPED_FILE, Channel, load_shipped_channel
from cectrain.corrector.channel.layout import HOLE, MOST_WORD, ChannelArrays, name_kinds

Ints = NDArray[np.int32]
Longs = NDArray[np.uint64]
Floats = NDArray[np.float32]
NUMERALS = frozenset("〇零一二三四五六七八九十百千万亿")
PARTIES = frozenset("甲乙丙丁")  # of a contract
POSITIONS = ("左右", "上下", "前后", "内外", "东西南北", "男女")
# added to log P: seldom does a context tell which number, party or position is right
NEVER, ELSEWHERE = -99.0, -4.0
AS_FREQUENT = 0.5

LONGEST_COMPLETED = 4  # characters of a word that is known by all of its characters but one
LONGEST_FORM = 4  # most characters of a word without the one that is missing
LEAST_LIKELY = -14.0  # least log P of a word that may lack a character
FORMS_KEPT = 16  # most words that look the same without one of their characters
MOST_CACHED = 4  # tables, about 130 MB each; those that were used last
_FACTS = "facts.json"  # beside the files of the arrays
MISSING = -2.0  # added to log P that a character is missing: people's text lacks fewer


class ChannelTables(NamedTuple):
    """The tables of a channel over an n-gram model, and what is told of them.

    counts: of the model's words, pairs and triples. error: θ, the cost of an error that fits it.
    missing: log P that a character is missing, see `Channel`. terms: the numbers of the words that
    are terms of the user or parts of one.
    """

    model: str
    recipe: str
    counts: tuple[int, int, int]
    error: float
    missing: float | None
    ngrams: Tables
    channel: ChannelArrays
    terms: Ints


def make_tables(model: Ngrams, channel: Channel | None = None) -> ChannelTables:
    """Return the tables of a model and a channel; by default that of the recipe `typed`."""
    channel = channel or load_shipped_channel()
    counts = len(model.words), len(model.pairs), len(model.triples)
    model = _add_lost_words(model)
    with ThreadPoolExecutor() as threads:
        ngrams = threads.submit(model.build_tables)
        arrays = make_channel_arrays(channel, model)
    return ChannelTables(
        model=model.name,
        recipe=channel.recipe,
        counts=counts,
        error=model.error,
        missing=channel.missing,
        ngrams=ngrams.result(),
        channel=arrays,
        terms=np.zeros(0, np.int32),
    )


def open_tables(lm: str | Path | None = None) -> ChannelTables:
    """Return the tables of an n-gram model, kept since the last call or made.

    lm: see `ngrams.find_model`. The user's cache holds `MOST_CACHED` tables, or none where it
    cannot be written.
    """
    folder = find_cache_folder(lm)
    with contextlib.suppress(OSError, KeyError, ValueError, TypeError, EOFError):
        tables = _restore_tables(folder)
        with contextlib.suppress(OSError):
            folder.touch()
        return tables
    tables = make_tables(find_model(lm))
    with contextlib.suppress(OSError):
        _write_tables(tables, folder)
        folders = sorted(folder.parent.iterdir(), key=lambda path: -path.stat().st_mtime)
        for old in folders[MOST_CACHED:]:
            shutil.rmtree(old, ignore_errors=True)
    return tables


def find_cache_folder(lm: str | Path | None) -> Path:
    """Return the folder in which such tables are kept: its name has digests of all inputs.

    Raises InputError where the model is missing.
    """
    digest = xxhash.xxh3_128(
        hash_sources(Path(__file__).parent, Path(str(lm_room.__file__)).parent).encode()
    )
    for path in (*locate(lm), *locate(), SHIPPED_FILE, TABLES / "characters.tsv"):
        digest.update(path.read_bytes())
    return find_user_folder("XDG_CACHE_HOME") / "cec-zero" / "channel" / digest.hexdigest()


def _write_tables(tables: ChannelTables, folder: Path) -> None:
    """Write a file of each array, and one of the facts with a digest of all arrays."""
    arrays: dict[str, NDArray[np.generic]] = {"terms": tables.terms}
    fields = ("model", "recipe", "counts", "error", "missing")
    facts: dict[str, object] = {name: getattr(tables, name) for name in fields}
    for part in ("ngrams", "channel"):
        for name, value in getattr(tables, part)._asdict().items():
            if isinstance(value, np.ndarray):
                arrays[f"{part}.{name}"] = value
            else:
                facts[f"{part}.{name}"] = value.item() if isinstance(value, np.generic) else value
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent) as temporary:
        staged = Path(temporary) / folder.name
        staged.mkdir()
        for name, array in arrays.items():
            np.save(staged / f"{name}.npy", array, allow_pickle=False)
        record = json.dumps({**facts, "digest": _digest_arrays(arrays)})
        (staged / _FACTS).write_text(record, "utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        staged.rename(folder)


def _restore_tables(folder: Path) -> ChannelTables:
    """Return the tables of a folder, mapped into memory; raise ValueError where one is damaged."""
    facts = json.loads((folder / _FACTS).read_bytes())
    paths = folder.glob("*.npy")
    arrays = {path.stem: np.load(path, mmap_mode="c", allow_pickle=False) for path in paths}
    if _digest_arrays(arrays) != facts["digest"]:
        raise ValueError("the arrays are not those that were kept")
    shifts = {name: np.uint64(facts[name]) for name in facts if name.endswith("_shift")}
    values = {**facts, **{name: np.asarray(array) for name, array in arrays.items()}, **shifts}
    return ChannelTables(
        model=facts["model"],
        recipe=facts["recipe"],
        counts=tuple(facts["counts"]),
        error=facts["error"],
        missing=facts["missing"],
        ngrams=Tables(*(values[f"ngrams.{name}"] for name in Tables._fields)),
        channel=ChannelArrays(*(values[f"channel.{name}"] for name in ChannelArrays._fields)),
        terms=values["terms"],
    )


def _digest_arrays(arrays: Mapping[str, NDArray[np.generic]]) -> str:
    """Return one digest of all arrays, in the order of their names."""
    digest = xxhash.xxh3_64()
    for name in sorted(arrays):
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


def make_channel_arrays(channel: Channel, model: Ngrams) -> ChannelArrays:
    """Return the channel's arrays, without spans whose right text is not a word of the model."""
    # the channel's rows of characters are found by `slot`, those of spans by `span_keys`
    size = np.diff(channel.bounds)
    is_single = np.array([len(text) == 1 for text in channel.observed])
    of_single = np.repeat(is_single, size)
    slot = np.zeros(0x110000, np.int32)
    singles = [text for text in channel.observed if len(text) == 1]
    slot[[ord(sign) for sign in singles]] = np.arange(1, len(singles) + 1)
    bounds = np.cumsum([0, *size[is_single]]).astype(np.int64)
    right = [ord(text[0]) for text, single in zip(channel.right, of_single, strict=True) if single]
    log_prob = channel.log_prob + _weigh_reluctances(channel, model)
    word_points, word_size = to_points(("", *model.words[1:]))
    spans = _list_spans(channel, model, log_prob, of_single, word_points, word_size)
    span_keys, span_rows, span_bounds, order = _index_spans(spans.key)
    form_keys, form_rows, form_bounds, form_words = _index_forms(model, word_points, word_size)
    sounds, near = _number_sounds()
    return ChannelArrays(
        slot=slot,
        bounds=bounds,
        ends=bounds[1:],
        right=np.array(right, np.int32),
        log_prob=log_prob[of_single],
        span_keys=span_keys,
        span_shift=np.uint64(find_shift(len(span_keys))),
        span_rows=span_rows,
        span_bounds=span_bounds,
        span_words=spans.word[order],
        span_log_prob=spans.log_prob[order],
        form_keys=form_keys,
        form_shift=np.uint64(find_shift(len(form_keys))),
        form_rows=form_rows,
        form_bounds=form_bounds,
        form_words=form_words,
        sounds=sounds,
        near=near,
        repeated=NEVER if channel.repeated is None else channel.repeated,
        word_points=word_points,
        word_size=word_size,
        kinds=name_kinds(),
        term_bounds=np.zeros(3 * len(singles) + 4, np.int64),
        term_words=np.zeros(0, np.int32),
    )


class _Spans(NamedTuple):
    """Spans by key, each with a word that it may be meant for, and log P of that."""

    key: Longs
    word: Ints
    log_prob: Floats


def _list_spans(
    channel: Channel,
    model: Ngrams,
    log_prob: Floats,
    of_single: NDArray[np.bool_],
    points: Ints,
    size: Ints,
) -> _Spans:
    """Return the spans of the rows that are not `of_single`, and words that lack a character."""
    numbers = {word: number for number, word in enumerate(model.words) if number}
    word = np.array([numbers.get(text, 0) for text in channel.right], np.int32)
    key = np.repeat(make_keys(*to_points(channel.observed)), np.diff(channel.bounds))
    is_listed = ~of_single & (word > 0)
    spans = _Spans(key[is_listed], word[is_listed], log_prob[is_listed])
    if channel.missing is None:
        return spans
    likely = np.flatnonzero(model.word_log_prob >= LEAST_LIKELY).astype(np.int32)
    shortened = list_forms(points, size, likely, NUMERALS)
    forms, words = _keep_likeliest(*shortened, model.word_log_prob)
    missing = np.full(len(forms), channel.missing + MISSING, np.float32)
    return _Spans(
        np.concatenate([spans.key, forms]),
        np.concatenate([spans.word, words]),
        np.append(spans.log_prob, missing),
    )


def _index_forms(
    model: Ngrams, points: Ints, size: Ints
) -> tuple[Longs, Ints, NDArray[np.int64], Ints]:
    """Return slots, rows, bounds and words of the hash table from forms to words.

    A form is a word without one of its characters. Words are the likely ones of two characters, and
    all of three and four. A numeral, a party or a position is never completed: no context tells
    which is right.
    """
    uncertain = NUMERALS | PARTIES | {*"".join(POSITIONS)}
    is_chosen = (model.word_log_prob >= LEAST_LIKELY) | (size > 2)
    chosen = np.flatnonzero(is_chosen & (size <= LONGEST_COMPLETED)).astype(np.int32)
    keys, words = list_forms(points, size, chosen, uncertain, hole=True)
    slots, rows, bounds, order = _index_spans(keys)
    return slots, rows, bounds, words[order]


def _number_sounds() -> tuple[Ints, NDArray[np.uint8]]:
    """Return `ChannelArrays.sounds` and `near`."""
    numbers: dict[str, int] = {}
    sounds = np.full((0x110000, 2), -1, np.int32)
    for character in standard_characters():
        names = dict.fromkeys(reading.syllable for reading in common_readings(character))
        for place, name in enumerate([*names][:2]):
            sounds[ord(character), place] = numbers.setdefault(name, len(numbers))
    near = np.eye(len(numbers), dtype=np.uint8)
    for syllable, others in list_similar_syllables().items():
        for similar in others:
            if syllable in numbers and similar in numbers:
                near[numbers[syllable], numbers[similar]] = 1
    return sounds, near


def list_forms(
    points: Ints, size: Ints, words: Ints, kept: Collection[str], *, hole: bool = False
) -> tuple[Longs, Ints]:
    """Return the keys of words without one of their characters, and the words' numbers.

    Words have two to `LONGEST_FORM` + 1 characters. kept: characters that are never left out.
    hole: whether `HOLE` stands in the place of the one that is left out.
    """
    keys, numbers = [], []
    for length in range(2, LONGEST_FORM + 2):
        rows = words[size[words] == length]
        for place in range(length):
            lacking = rows[~np.isin(points[rows, place], [ord(sign) for sign in kept])]
            forms = points[lacking]
            forms[:, place] = HOLE
            if not hole:
                forms = np.delete(forms, place, axis=1)
            form_size = length if hole else length - 1
            keys.append(make_keys(forms, np.full(len(lacking), form_size, np.int32)))
            numbers.append(lacking)
    return np.concatenate(keys), np.concatenate(numbers)


def _keep_likeliest(key: Longs, word: Ints, log_prob: Floats) -> tuple[Longs, Ints]:
    """Return the `FORMS_KEPT` likeliest words of each key, each once."""
    order = np.lexsort((word, -log_prob[word], key))
    key, word = key[order], word[order]
    is_new = np.ones(len(key), np.bool_)
    is_new[1:] = (key[1:] != key[:-1]) | (word[1:] != word[:-1])  # 妈妈 gives 妈 twice
    key, word = key[is_new], word[is_new]
    is_first = np.ones(len(key), np.bool_)
    is_first[1:] = key[1:] != key[:-1]
    begins = np.flatnonzero(is_first)
    # 0, 1, 2 … within each key, from its likeliest word on
    rank = np.arange(len(key)) - np.repeat(begins, np.diff(np.append(begins, len(key))))
    return key[rank < FORMS_KEPT], word[rank < FORMS_KEPT]


def _index_spans(key: Longs) -> tuple[Longs, Ints, NDArray[np.int64], NDArray[np.intp]]:
    """Return a hash table of keys, their rows by its slots, the bounds of rows, and the order.

    In that order, entries of one key stand together: row r is [bounds[r]:bounds[r + 1]].
    """
    spans, count = np.unique(key, return_counts=True)
    keys, rows = make_span_table(spans, np.arange(len(spans), dtype=np.int32))
    return keys, rows, np.cumsum([0, *count]).astype(np.int64), np.argsort(key, kind="stable")


def _weigh_reluctances(channel: Channel, model: Ngrams) -> Floats:
    """Return what is added to log P of each row of the channel."""
    converted = _find_converted_pairs(model)
    affected = {*NUMERALS, *PARTIES, *"".join(POSITIONS), *(written for written, _ in converted)}
    added = np.zeros(len(channel.right), np.float32)
    for observed, (low, high) in zip(channel.observed, pairwise(channel.bounds), strict=True):
        if not affected.isdisjoint(observed):
            for row in range(low, high):
                # in texts of two lengths, the characters that have the same place
                pairs = list(zip(observed, channel.right[row], strict=False))
                added[row] = NEVER if converted & {*pairs} else min(map(weigh_reluctance, pairs))
    return added


def weigh_reluctance(pair: tuple[str, str]) -> float:
    """Return what is added to log P that the second character of a pair was written as the first.

    `NEVER` where a numeral or a party replaces another, `ELSEWHERE` where a position does.
    """
    if pair[0] == pair[1]:
        return 0.0
    if {*pair} <= NUMERALS | PARTIES:
        return NEVER
    return ELSEWHERE if any({*pair} <= {*group} for group in POSITIONS) else 0.0


def _add_lost_words(model: Ngrams) -> Ngrams:
    """Return the model with the words that a conversion of its texts replaced, as likely."""
    lost = [
        (word.replace(character, form), number)
        for form, character in sorted(_find_converted_pairs(model))
        for number, word in enumerate(model.words)
        if character in word and len(word) > 1
    ]
    like = [number for _, number in lost]  # the words whose probabilities they get
    return replace(
        model,
        words=(*model.words, *(word for word, _ in lost)),
        word_log_prob=np.append(model.word_log_prob, model.word_log_prob[like]),
        word_backoff=np.append(model.word_backoff, model.word_backoff[like]),
    )


def _find_converted_pairs(model: Ngrams) -> set[tuple[str, str]]:
    """Return pairs (x, y) of standard characters such that the model's texts had x converted to y.

    x is a traditional form or a variant of y. Where x is `AS_FREQUENT` as y in running text and no
    word has it, its words are among those with y: 哪咤 stands for 哪吒, which is right.
    """
    used = set("".join(word for word in model.words if len(word) > 1))
    return {
        (form, character)
        for character in standard_characters()
        for form in traditional_forms(character) + variant_forms(character)
        if form not in used
        and is_standard(form)
        and find_frequency(form) >= AS_FREQUENT * find_frequency(character)
    }


def to_points(texts: Sequence[str]) -> tuple[Ints, Ints]:
    """Return the code points [T, MOST_WORD] and sizes [T] of texts; longer ones are empty."""
    short = [text if len(text) <= MOST_WORD else "" for text in texts]
    size = np.array([len(text) for text in short], np.int32)
    points = np.zeros((len(short), MOST_WORD), np.int32)
    # 0, 1, 2 … within each text
    within = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
    flat = np.frombuffer("".join(short).encode("utf-32-le"), np.uint32)
    points[np.repeat(np.arange(len(short)), size), within] = flat
    return points, size


@inlined
def make_span_key(points, first, last):
    """Return a 64-bit key of points[first:last], which is never 0: that is an empty slot."""
    key = np.uint64(last - first)
    for place in range(first, last):
        key = (key ^ np.uint64(points[place])) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(29)
    return key | np.uint64(1)


@compiled_with(lm_room)
def make_keys(points, sizes):
    """Return the key of each text, [T]; `points` [T, MOST_WORD] and `sizes` [T] are theirs."""
    keys = np.empty(len(points), np.uint64)
    for row in range(len(points)):
        keys[row] = make_span_key(points[row], 0, sizes[row])
    return keys


@compiled_with(lm_room)
def make_span_table(spans, numbers):
    """Return a hash table of the keys of spans, and the numbers of their rows by its slots."""
    size = 16
    while size <= 2 * len(spans):
        size *= 2
    keys, rows = np.zeros(size, np.uint64), np.zeros(size, np.int32)
    mask, shift = size - 1, find_shift(size)
    for row in range(len(spans)):
        at = slot_of_key(spans[row], mask, shift)
        while keys[at] != 0:
            at = (at + 1) & mask
        keys[at], rows[at] = spans[row], numbers[row]
    return keys, rows


@compiled_with(lm_room)
def find_listed(bounds, values, rows, wanted):
    """Return whether each wanted value [N] is in its row of the values; none is in row -1."""
    is_listed = np.zeros(len(rows), np.bool_)
    for n in range(len(rows)):
        if rows[n] >= 0:
            for k in range(bounds[rows[n]], bounds[rows[n] + 1]):
                is_listed[n] |= values[k] == wanted[n]
    return is_listed


@inlined
def find_row(keys, rows, shift, span):
    """Return the row of a span in the hash table, or -1."""
    at = slot_of_key(span, len(keys) - 1, shift)
    while keys[at] != 0 and keys[at] != span:
        at = (at + 1) & (len(keys) - 1)
    return rows[at] if keys[at] != 0 else -1


@compiled_with(lm_room)
def find_rows(keys, rows, shift, spans):
    """Return the row of each span in the hash table, or -1."""
    numbers = np.empty(len(spans), np.int32)
    for n in range(len(spans)):
        numbers[n] = find_row(keys, rows, shift, spans[n])
    return numbers
