"""★ The main path: read a sentence, corrupt its copies, write pairs and edits.

A sentence is read once (`scan`); each copy draws an operator and positions (`positions`), chooses
among proposals (`fluency`), writes its source and edits and computes the distance (`edit`). Every
draw is a pure function of (seed, id, copy, purpose, index). Sets of operators are masks of bits.
"""

from __future__ import annotations

import numpy as np

from cecdata import lm
from cecdata.common.kernels import entry_with, inlined
from cecdata.perturbation.kernel import edit, positions
from cecdata.perturbation.kernel.fluency import read_words, redraw_edits
from cecdata.perturbation.kernel.layout import Draws, Longs, Output, Scratch, Sentences, Tables
from cecdata.perturbation.kernel.positions import draw, draw_fraction
from cecdata.perturbation.kernel.scan import apply_protection, find_heads, mark_spans, read_sentence

_SENTENCE = float(1 << 20)  # one sentence in a histogram: integers add up the same in any order


@entry_with(lm)
def perturb(text: Sentences, draws: Draws, tables: Tables, scratch: Scratch, out: Output):
    """Write copies 0..copies-1 of every sentence in turn; return the number of edits."""
    inserts, with_prior = positions.make_mask(tables.inserts), positions.make_mask(draws.priors)
    rewriting = with_prior & _mask_rewriting(tables)
    single = with_prior & ~rewriting
    out.offsets[0], out.edits[0] = 0, 0
    at, edits, pair, read = 0, 0, 0, 0  # bytes, edits, pairs and code points so far
    last_able = np.int64(-1)
    for row in range(len(text.offsets) - 1):
        length = _read_sentence(text, row, read, tables, inserts, scratch)
        read += length
        if draws.proposals > 1:
            read_words(length, tables.model, scratch)
        able = positions.find_able_mask(scratch.mask, length, single) | rewriting
        marked = np.int64(0)
        if able != last_able:
            positions.accumulate_priors(draws.priors, able, scratch.cumulative)
            last_able = able
        for copy in range(draws.copies):
            key = positions.make_key(draws.seed, text.ids[row], copy)
            operator, count, marked = _draw_operator(
                length, able, marked, key, draws, tables, scratch
            )
            for k in range(count):
                scratch.randoms[k] = draw(key, positions.REPLACEMENT, k)
            if draws.proposals > 1 and count:
                redraw_edits(tables, draws, scratch, length, operator, count, key)
            at, edits, distance = _write_copy(
                text, length, operator, count, at, edits, tables, scratch, out
            )
            out.operator[pair] = operator
            out.distance[pair] = distance
            pair += 1
            out.offsets[pair], out.edits[pair] = at, edits
    return edits


@inlined
def _read_sentence(text, row, read, tables, inserts, scratch):
    """Read sentence `row` into `scratch`; return its number of code points.

    `read` is the number of code points before it, `inserts` the set of operators that insert.
    """
    length = read_sentence(
        text.data, text.offsets[row], text.offsets[row + 1], tables, inserts, scratch
    )
    if len(text.protected):
        apply_protection(text.protected, read, length, inserts, scratch)
    return length


@inlined
def _draw_operator(length, able, marked, key, draws, tables, scratch):
    """Draw the operator and the positions of a copy: (operator, number of edits, marked).

    The operator is a value of `Output.operator`. `able` are the operators that may edit, including
    all that rewrite spans: their spans are looked up only once such an operator is drawn. `marked`
    has a bit for each column of `SpanTables.rows` whose spans have been marked in this sentence.
    """
    mixed, operator, count = len(draws.priors), -1, 0
    if draws.unchanged > 0 and draw_fraction(key, positions.UNCHANGED, 0) < draws.unchanged:
        operator = mixed + 1
    elif able:
        if draws.mixed > 0 and draw_fraction(key, positions.MIXED, 0) < draws.mixed:
            # spans of one operator never overlap, but other edits might fall inside
            single = able & ~_mask_rewriting(tables)
            count = positions.draw_mixed_positions(length, single, draws, key, scratch)
            operator = mixed
        if count == 0:
            fraction = draw_fraction(key, positions.OPERATOR, 0)
            operator, marked = _skip_spanless(
                positions.choose_operator(fraction, scratch.cumulative),
                length, able, marked, key, draws, tables, scratch,
            )  # fmt: skip
            if operator >= 0:
                wanted = 1 << operator
                count = positions.draw_positions(length, operator, wanted, draws, key, scratch)
    return operator, count, marked


@inlined
def _skip_spanless(operator, length, able, marked, key, draws, tables, scratch):
    """Draw again while a rewriting operator without a span is drawn: (operator or -1, marked).

    `able` and `marked` are as in `_draw_operator`; -1 stands for no operator that can edit. Drawing
    again from the remaining operators gives each its prior, renormalised over those that can edit.
    """
    tries = 0
    while operator >= 0 and tables.spans.column[operator] >= 0:
        column = np.int64(tables.spans.column[operator])
        if not (marked >> column) & 1:
            if not marked:
                find_heads(length, tables.spans, scratch)
            marked |= np.int64(1) << column
            mark_spans(column, tables, scratch)
        if scratch.span_counts[column]:
            return operator, marked
        able &= ~(np.int64(1) << operator)
        tries += 1
        if able:
            positions.accumulate_priors(draws.priors, able, scratch.cumulative_here)
            fraction = draw_fraction(key, positions.OPERATOR, tries)
            operator = positions.choose_operator(fraction, scratch.cumulative_here)
        else:
            operator = -1
    return operator, marked


@inlined
def _write_copy(text, length, drawn, count, at, edits, tables, scratch, out):
    """Write the source and the edits of a copy: (bytes and edits written so far, the distance).

    `at` and `edits` are those before it. `drawn` is a value of `Output.operator`, `count` the
    number of edits, which are in `scratch`.
    """
    # Byte b of the target that is still to be written is at shift + b of the output. After each
    # edit the whole tail is copied, and the next edit overwrites it: copying only up to the next
    # edit, or skipping a copy that moves no byte, would cost a mispredicted branch.
    begin, end = scratch.bounds[0], scratch.bounds[length]
    shift, first_edit, distance, exact = at - begin, edits, 0, True
    if drawn >= 0:
        edit.copy_bytes(out.data, at, text.data, begin, end)
    else:
        shift = at - end  # nothing is written
    mixed = drawn == len(tables.inserts)
    for k in range(count):
        position, random = scratch.chosen[k], scratch.randoms[k]
        operator = scratch.operators[k] if mixed else drawn
        if tables.spans.column[operator] >= 0:
            shift, cost = edit.edit_span(
                tables, operator, position, length, scratch, text.data, random, shift, out, edits
            )
            exact &= count == 1
            distance += cost
        else:
            shift, facts = edit.edit_character(
                tables, operator, position, length, scratch, text.data, random, shift, out, edits
            )
            if count > 1:
                exact &= edit.is_new(scratch.points, length, facts)
                # in a mixed pair, a deletion and an insertion may together be one substitution
                exact &= edit.read_size(facts) != 0 or not mixed
            distance += tables.cost[operator]
        edits += 1
    if not exact:
        # Of several edits, one may introduce a character that the target has, so the sum is only
        # an upper bound. The cost of a single edit is exact: a replacement never has the replaced
        # character, so nothing matches between the common prefix and the common suffix.
        distance = edit.measure_distance(out, first_edit, edits, tables, distance, scratch)
    return shift + end, edits, distance


@inlined
def _mask_rewriting(tables):
    """Return the rewriting operators as a set of bits."""
    bits = np.int64(0)
    for column in range(len(tables.spans.operator)):
        bits |= np.int64(1) << tables.spans.operator[column]
    return bits


@entry_with(lm)
def add_to_histogram(text: Sentences, tables: Tables, priors, scratch: Scratch, histogram):
    """Add sentences to histogram[operator, length, positions], the input of calibration.

    histogram: [O, limit + 1, limit + 2] int64, in units of 2**-20 sentences. A sentence counts with
    the probability that the operator is drawn for it, which grows where others have no position.
    """
    inserts, with_prior = positions.make_mask(tables.inserts), positions.make_mask(priors)
    read = 0
    for row in range(len(text.offsets) - 1):
        length = _read_sentence(text, row, read, tables, inserts, scratch)
        read += length
        if len(tables.spans.operator):
            find_heads(length, tables.spans, scratch)
        for column in range(len(tables.spans.operator)):
            mark_spans(column, tables, scratch)
        able = positions.find_able_mask(scratch.mask, length, with_prior)
        total = positions.sum_priors(priors, able)
        for o in range(len(priors)):
            if (able >> o) & 1:
                column = np.int64(tables.spans.column[o])
                if column < 0:
                    count = positions.count_positions(scratch.mask, length, 1 << o)
                else:
                    count = scratch.span_counts[column]
                histogram[o, length, count] += np.int64(_SENTENCE * (priors[o] / total) + 0.5)


@entry_with(lm)
def sample_words(seed: int, ids: Longs, words: Longs) -> None:
    """Write to `words` the random bits by which each sentence is sampled, those of its copy 0."""
    for i in range(len(ids)):
        words[i] = draw(positions.make_key(seed, ids[i], 0), positions.SAMPLE, 0)
