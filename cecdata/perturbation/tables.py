"""Confusion sets, and the language model that takes one of several proposals, as flat arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cecdata.common.durable import sha256_of
from cecdata.common.errors import UsageError
from cecdata.config import Config
from cecdata.hanzi.characters import find_frequency, list_cluster_ranges, standard_characters
from cecdata.lm import kernels, ngrams
from cecdata.lm.table import Ngrams, Trie
from cecdata.operators import Operator
from cecdata.operators.base import CharConfusions, reweigh
from cecdata.perturbation.kernel import layout
from cecdata.perturbation.kernel.layout import FIRST_HAN, HAN, Ints, Language, Longs, Shorts, Tables
from cecdata.perturbation.span_tables import Cost, compile_spans, make_alias_tables, pack_chances

Numbers = npt.NDArray[np.int64]
MODEL = "lm"  # the key of the language model in `Compiled.sha256`
_MOST_STEPS = 600  # of the costs with and without an edit: beyond 48 nats nothing differs


@dataclass(frozen=True, slots=True)
class Compiled:
    """The tables, and the names that their codes stand for."""

    arrays: Tables
    operators: tuple[str, ...]
    kinds: tuple[str, ...]
    # [T + T'] for the columns of edits: row s is the character of slot s, 0 is empty; spans last
    texts: pa.StringArray
    sha256: dict[str, str]  # of each operator's confusion set, and of the language model
    costs: tuple[Cost, ...]  # of one edit, by operator


def compile_recipe(config: Config) -> Compiled:
    """Return the tables of the operators with a prior, in their order.

    The weights of the configuration change the operators' own, see `reweigh`. The first
    call takes a moment; the tables are cached by operators and weights.
    """
    available = config.find_operators()
    operators = tuple(available[name] for name in available if config.prior.get(name, 0.0) > 0)
    changes = (config.weights.get(operator.name, {}) for operator in operators)
    weights = tuple(tuple(sorted(change.items())) for change in changes)
    tables = _compile_operators(operators, weights)
    if config.proposals == 1:
        return tables
    model, digest = read_language(config.lm, config.fluency)
    return replace(
        tables, arrays=tables.arrays._replace(model=model), sha256=tables.sha256 | {MODEL: digest}
    )


@cache
def _compile_operators(
    operators: tuple[Operator, ...], changes: tuple[tuple[tuple[str, float], ...], ...]
) -> Compiled:
    """Return the tables of operators; `changes` has (kind, factor) pairs for each operator."""
    changed = [
        reweigh(operator, dict(change)) if change else operator
        for operator, change in zip(operators, changes, strict=True)
    ]
    beside = "".join(operator.beside for operator in changed)
    return compile_tables(changed, (*standard_characters(), *dict.fromkeys(beside)))


def compile_tables(operators: Sequence[Operator], characters: Sequence[str]) -> Compiled:
    """Compile these operators' confusion sets over these characters into flat arrays.

    Texts are first numbered: the empty one, the characters, and others as they are listed. Their
    rows in the tables have the same order, but for the characters, whose rows are their slots.
    """
    kinds = tuple(dict.fromkeys(kind for operator in operators for kind in operator.kinds))
    _check_sizes(operators, kinds)
    numbers = {"": 0} | {character: number for number, character in enumerate(characters, 1)}
    listed = [_list_candidates(each, tuple(characters), kinds, numbers) for each in operators]
    slot_of = _choose_slots(characters)
    row_of = np.r_[slot_of, len(slot_of) : len(numbers)]
    texts = {text: row for row, text in sorted(zip(row_of.tolist(), numbers, strict=True))}
    sorted_by_slot = [_sort_by_slot(columns, row_of) for columns in listed]
    rows, eligible = _make_rows(sorted_by_slot, len(slot_of))
    slots = {character: texts[character] for character in characters}
    spans, span_texts, span_hashes, span_costs = compile_spans(operators, slots, texts, kinds)
    assert len(texts) < 2**layout.TEXT_BITS
    text_table = _pack_texts(list(texts))
    arrays = Tables(
        code_points=_classify_code_points(slots),
        eligible=eligible,
        rows=rows,
        candidates=np.concatenate([_pack_candidates(columns) for columns in sorted_by_slot]),
        inserts=np.array([operator.action == "insert" for operator in operators], np.uint8),
        cost=np.array([operator.cost for operator in operators], np.int32),
        texts=text_table,
        spans=spans,
        model=make_empty_language(),
    )
    return Compiled(
        arrays,
        operators=tuple(operator.name for operator in operators),
        kinds=kinds,
        texts=pa.array((*texts, *span_texts), pa.string()),
        sha256={
            operator.name: span_hashes.get(operator.name)
            or _hash_set(columns, text_table[row_of], kinds)
            for operator, columns in zip(operators, listed, strict=True)
        },
        costs=tuple(
            span_costs.get(operator.name, Cost(operator.cost, operator.cost))
            for operator in operators
        ),
    )


def _choose_slots(characters: Sequence[str]) -> Numbers:
    """Return the slot of each character by its number, [characters + 1]; 0 for none.

    Frequent ones have the lowest slots: what the kernel reads most lies together in the cache.
    """
    order = np.argsort([-find_frequency(character) for character in characters], kind="stable")
    slot_of = np.zeros(len(characters) + 1, np.int64)
    slot_of[order + 1] = np.arange(1, len(slot_of))
    return slot_of


def _check_sizes(operators: Sequence[Operator], kinds: Sequence[str]) -> None:
    """Raise UsageError for more operators or kinds than the kernel's masks hold."""
    rewriting = [operator for operator in operators if operator.action == "rewrite"]
    for what, count, most in (
        ("operators", len(operators), layout.MOST_OPERATORS),
        ("operators that rewrite spans", len(rewriting), layout.MOST_REWRITING),
        ("kinds of edits", len(kinds), layout.MOST_KINDS),
    ):
        if count > most:
            raise UsageError(
                f"the recipe uses {count} {what}, but at most {most} are possible: set the prior "
                "of some to 0, or widen the masks (see CONTRIBUTING, 'More than 16 operators')"
            )


class _Columns(NamedTuple):
    """One operator's candidates by slot: slot 0 is any character, before which it inserts.

    Until `_sort_by_slot`, texts have their numbers in place of slots and rows.
    """

    slot: npt.NDArray[np.int64]
    text: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]


def _list_candidates(
    operator: Operator, characters: tuple[str, ...], kinds: Sequence[str], texts: dict[str, int]
) -> _Columns:
    """Return an operator's candidates, by numbers; `texts` has these and gets those of new texts.

    Those of operators that rewrite are compiled by `compile_spans`.
    """
    standard = standard_characters()
    if isinstance(operator.confusions, CharConfusions) and characters[: len(standard)] == standard:
        table = operator.confusions.build()
        kind_numbers = np.array([kinds.index(kind) for kind in operator.kinds])
        number = np.repeat(np.arange(1, len(standard) + 1), np.diff(table.bounds))
        # of the texts, the characters have the first numbers, too
        return _Columns(
            number, table.replacement + np.int64(1), kind_numbers[table.kind], table.weight
        )
    numbered = () if operator.action == "rewrite" else tuple(enumerate(characters, 1))
    if operator.action == "insert":
        numbered = ((0, ""),)  # the same candidates before every character
    items = [(number, item) for number, name in numbered for item in operator.confusions(name)]
    return _Columns(
        np.array([number for number, _ in items], np.int64),
        np.array([texts.setdefault(item.replacement, len(texts)) for _, item in items], np.int64),
        np.array([kinds.index(item.kind) for _, item in items], np.int64),
        np.array([item.weight for _, item in items], np.float64),
    )


def _sort_by_slot(columns: _Columns, row_of: Numbers) -> _Columns:
    """Return the candidates sorted by slot; `row_of` maps a text's number to its row or slot."""
    order = np.argsort(row_of[columns.slot], kind="stable")
    slot, text = row_of[columns.slot[order]], row_of[columns.text[order]]
    return _Columns(slot, text, columns.kind[order], columns.weight[order])


def _make_rows(sets: Sequence[_Columns], slots: int) -> tuple[Ints, Shorts]:
    """Return `Tables.rows` and `Tables.eligible`; the candidates lie operator by operator."""
    rows, eligible = np.zeros((len(sets), slots, 2), np.int32), np.zeros(slots, np.uint16)
    written = 0
    for o, columns in enumerate(sets):
        counts = np.bincount(columns.slot, minlength=slots)
        rows[o, :, 1] = counts
        rows[o, :, 0] = np.where(counts > 0, written + np.cumsum(counts) - counts, 0)
        eligible |= (counts > 0).astype(np.uint16) << np.uint16(o)
        written += len(columns.slot)
    return rows, eligible


def _pack_candidates(columns: _Columns) -> Longs:
    """Return one operator's candidates as words, whose fields `Tables.candidates` lists."""
    begins = np.flatnonzero(np.r_[True, columns.slot[1:] != columns.slot[:-1]])
    bounds = np.r_[begins, len(columns.slot)] if len(columns.slot) else np.zeros(1, np.int64)
    keep, alias = make_alias_tables(bounds, columns.weight)
    entry_bits = np.uint64(layout.TEXT_BITS + layout.KIND_BITS)
    entries = (columns.kind << layout.TEXT_BITS | columns.text).astype(np.uint64)
    chance = pack_chances(keep).astype(np.uint64)
    return np.asarray(entries | entries[alias] << entry_bits | chance << np.uint64(2) * entry_bits)


def _pack_texts(texts: Sequence[str]) -> Longs:
    """Return `Tables.texts`, [texts, 2]: the UTF-8 of each text, and its size and code points."""
    table = np.zeros((len(texts), 2), np.uint64)
    for t, text in enumerate(texts):
        raw = text.encode()
        first, second = (*map(ord, text), 0, 0)[:2]
        table[t] = int.from_bytes(raw, "little"), len(raw) | first << 8 | second << 32
    return table


def _classify_code_points(slot_of: Mapping[str, int]) -> Shorts:
    """Return `Tables.code_points`; `slot_of` maps characters to slots."""
    classes = np.zeros(0x110000, np.uint16)
    for mark, rule in (
        (layout.CLINGS_BEFORE, "before"),
        (layout.CLINGS_AFTER, "after"),
        (layout.REGIONAL, "pair"),
    ):
        for low, high in zip(*list_cluster_ranges(rule), strict=True):
            code_point_range = classes[low : high + 1]
            is_both = (code_point_range == layout.CLINGS_BEFORE) & (mark == layout.CLINGS_AFTER)
            code_point_range[:] = np.where(is_both, layout.CLINGS_BOTH, mark)
    for character, slot in slot_of.items():
        classes[ord(character)] = layout.FIRST_SLOT + slot - 1
    return classes


def _hash_set(columns: _Columns, texts: Longs, kinds: Sequence[str]) -> str:
    """Return the SHA-256 of the confusions, with shares to seven digits: all processors agree."""
    total = np.bincount(columns.slot, columns.weight)
    share = columns.weight / total[columns.slot]
    digest = hashlib.sha256("\t".join(kinds[kind] for kind in np.unique(columns.kind)).encode())
    digest.update(columns.slot.astype("<i8").tobytes())
    digest.update(texts[columns.text, 1].astype("<u8").tobytes())  # which identifies a text
    digest.update((np.unique(columns.kind, return_inverse=True)[1]).astype("<i8").tobytes())
    digest.update(np.round(share * 1e7).astype("<i8").tobytes())
    return digest.hexdigest()


@lru_cache(maxsize=4)
def read_language(name: str, fluency: float) -> tuple[Language, str]:
    """Return a model for the kernel, and the SHA-256 of its files.

    `name` is what `cecdata.lm.ngrams.locate` takes. Raises InputError where it is missing or has no
    Chinese words.
    """
    model = ngrams.find_model(name)
    ngrams.require_chinese(model)
    digests = [sha256_of(path).sha256 for path in ngrams.locate(name)]
    return make_language(model, fluency), " ".join(digests)


def make_language(model: Ngrams, fluency: float) -> Language:
    """Return a model for the kernel, which takes proposals with this exponent."""
    tables = model.build_tables(trigrams=False)
    trie = Trie(
        tables.edge_keys, tables.edge_nodes, tables.edge_marks, tables.edge_shift, tables.word
    )
    return Language(
        first=_find_first_nodes(trie),
        trie=trie,
        cost=kernels.quantise(model.word_log_prob).astype(np.int32),
        backoff=kernels.quantise(model.word_backoff).astype(np.int32),
        bigrams=tables.bigrams,
        bigram_marks=tables.bigram_marks,
        bigram_shift=tables.bigram_shift,
        chance=_list_acceptance_chances(fluency),
    )


def _find_first_nodes(trie: Trie) -> Ints:
    """Return the node of the trie after each Han character that begins a word, else -1."""
    nodes = np.full(HAN, -1, np.int32)
    keys = trie.edge_keys.astype(np.int64) - FIRST_HAN  # a key is node << 21 | code point
    from_root = (keys >= 0) & (keys < HAN)
    nodes[keys[from_root]] = trie.edge_nodes[from_root]
    return nodes


def _list_acceptance_chances(fluency: float) -> npt.NDArray[np.float64]:
    """Return `Language.chance`, exp(fluency · nats): by decimals, so that all machines agree."""
    step = Decimal(fluency) * Decimal(str(kernels.STEP))
    return np.array([float((step * n).exp()) for n in range(-_MOST_STEPS, _MOST_STEPS + 1)])


def make_empty_language() -> Language:
    """Return empty tables, for recipes with one proposal."""
    longs, ints, shift = np.zeros(0, np.uint64), np.zeros(0, np.int32), np.uint64(0)
    trie = Trie(longs, ints, longs, shift, ints)
    return Language(ints, trie, ints, ints, longs, longs, shift, np.zeros(0))
