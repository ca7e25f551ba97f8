"""The numba kernels: one file, because numba's cache does not see a change in another one.

Every draw is a pure function of (seed, id, copy, purpose, index): splitmix64's finaliser over a
counter. Nothing else enters, so order, sharding, workers and restarts change no row.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from cecdata.operators.spans import LONGEST, SHORTEST
from cecdata.perturb.span_tables import (
    ALIAS_BITS,
    COST_BITS,
    KEY_FACTOR,
    KNOWN_BITS,
    SPAN_TEXT_BITS,
)
from cecdata.perturb.tables import (
    CLINGS_AFTER,
    CLINGS_BEFORE,
    CLINGS_BOTH,
    FIRST_SLOT,
    KEEP_BITS,
    KIND_BITS,
    PLAIN,
    REGIONAL,
    TEXT_BITS,
    Tables,
)

_CR, _LF, _LESS, _MORE = 0x0D, 0x0A, 0x3C, 0x3E
# What a draw is for. A new purpose takes a new number; a used one is never taken again.
_UNCHANGED, _OPERATOR, _COUNT, _PLACE, _REPLACEMENT, _MIXED, _MIXED_OPERATOR, _SAMPLE = range(8)
_TEXT, _KIND = (1 << TEXT_BITS) - 1, (1 << KIND_BITS) - 1
_SENTENCE = float(1 << 20)  # one sentence in a histogram: integers add up the same in any order
_SPAN_TEXT = (1 << SPAN_TEXT_BITS) - 1
_COST = SPAN_TEXT_BITS + KIND_BITS
_ALIAS = _COST + COST_BITS
_SPARSE = 24  # tries after which places are counted out
_BLOCK = 32  # bytes copied at a time
SLACK = 64  # bytes that blocks and words may scribble past the end
_LONGEST_PLACEHOLDER = 32  # code points between < and >


@njit(cache=True, inline="always")
def _mix(z):
    # splitmix64's finaliser (Steele, Lea, Flood 2014)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, inline="always")
def _draw(key, purpose, index):
    counter = (np.uint64(purpose) << np.uint64(32)) + np.uint64(index) + np.uint64(1)
    return _mix(key + counter * np.uint64(0x9E3779B97F4A7C15))


@njit(cache=True, inline="always")
def _below(word, n):
    # Lemire's multiply-shift on the upper 32 bits; its bias of n / 2**32 is far below anything seen
    return np.int64(((word >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(cache=True, inline="always")
def _unit(word):
    return np.float64(word >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True, inline="always")
def _key(seed, identity, copy):
    first = _mix(np.uint64(identity) ^ _mix(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15)))
    return _mix(first + (np.uint64(copy) + np.uint64(1)) * np.uint64(0xD1B54A32D192ED03))


@njit(cache=True, nogil=True)
def sample_words(seed, ids):
    """A uniform 64-bit word for each id, to sample sentences by: [N] uint64."""
    words = np.empty(len(ids), np.uint64)
    for i in range(len(ids)):
        words[i] = _draw(_key(seed, ids[i], 0), _SAMPLE, 0)
    return words


@njit(cache=True, inline="always")
def _scan(data, start, stop, code_points, eligible, insert_mask, points, bounds, mask, slots):
    """Reads one sentence of valid UTF-8; gives its number of code points n.

    points[i] and bounds[i]: code point i and the byte where it starts; slots[i] its slot; mask[i]:
    the operators that may strike at place i (0..n; an insertion falls before code point i).
    """
    # unsigned indices throughout: signed ones are tested for wrapping round at every access
    n, at, end = np.uint64(0), np.uint64(start), np.uint64(stop)
    low, bits, special = np.uint32(0x3F), np.uint16(insert_mask), False
    while at < end:
        b = np.uint32(data[at])
        bounds[n] = at
        if b >= 0xE0:
            point = (np.uint32(data[at + np.uint64(1)]) & low) << np.uint32(6)
            point |= np.uint32(data[at + np.uint64(2)]) & low
            if b < 0xF0:
                point |= (b & np.uint32(0x0F)) << np.uint32(12)
                at += np.uint64(3)
            else:
                point = (point << np.uint32(6)) | (np.uint32(data[at + np.uint64(3)]) & low)
                point |= (b & np.uint32(0x07)) << np.uint32(18)
                at += np.uint64(4)
        elif b < 0x80:
            point = b
            at += np.uint64(1)
        else:
            point = (b & np.uint32(0x1F)) << np.uint32(6)
            point |= np.uint32(data[at + np.uint64(1)]) & low
            at += np.uint64(2)
        value = np.uint32(code_points[point])
        slot = np.uint32(0)
        if value >= FIRST_SLOT:
            slot = value - np.uint32(FIRST_SLOT - 1)
        elif value != PLAIN or point == _LESS or point == _CR:
            special = True
        points[n] = point
        slots[n] = slot
        mask[n] = eligible[slot] | bits
        n += np.uint64(1)
    bounds[n] = stop
    mask[n], slots[n] = bits, 0
    if special:
        _mend_clusters(points, np.int64(n), code_points, insert_mask, mask)
        _mend_placeholders(points, np.int64(n), insert_mask, mask)
    return np.int64(n)


@njit(cache=True, inline="always")
def _span_at(slots, at, size, known, keys, found):
    """The span of `size` characters at a place, -1 if there is none. No slot there may be 0."""
    key = np.uint64(0)
    for j in range(size):
        key |= np.uint64(slots[at + np.uint64(j)]) << np.uint64(16 * j)
    spread = key * np.uint64(KEY_FACTOR)
    # a bitmap of 64 KiB for each size answers most questions without leaving the cache
    bit = spread >> np.uint64(64 - KNOWN_BITS)
    if not (known[size - SHORTEST, bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1):
        return np.int64(-1)
    wrap = np.uint64(len(keys) - 1)
    h = (spread >> np.uint64(32)) & wrap
    while keys[h] != 0:
        if keys[h] == key:
            return np.int64(found[h])
        h = (h + np.uint64(1)) & wrap
    return np.int64(-1)


@njit(cache=True)
def _find_spans(points, n, slots, tables, mask, spans, free, whole):
    """Marks in mask[i] the rewriting operators that may strike a span from i on: the longest.

    spans[s, i]: that span for the s-th of them; its spans do not overlap, free[s] is where the
    next may begin. Unless `whole`, one span of each is enough: it says that the operator is able.
    """
    # taken out of the tuple once: each reaching into it counts references
    known, keys, found = tables.spans.known, tables.spans.keys, tables.spans.found
    starts, rows, of = tables.spans.starts, tables.spans.rows, tables.spans.operator
    code_points = tables.code_points
    free[:] = 0
    soonest = 0  # no operator may strike before
    for at in range(n - 1):
        i = np.uint64(at)
        if at < soonest or slots[i] == 0 or slots[i + np.uint64(1)] == 0:
            continue
        pair = np.uint64(slots[i]) | np.uint64(slots[i + np.uint64(1)]) << np.uint64(16)
        bit = (pair * np.uint64(KEY_FACTOR)) >> np.uint64(64 - KNOWN_BITS)
        if not (starts[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1):
            continue
        if at > 0 and _clings(code_points[points[at - 1]], CLINGS_AFTER):
            continue  # the first character is part of a larger visible one
        longest = 2
        while longest < LONGEST and at + longest < n and slots[at + longest] != 0:
            longest += 1
        if soonest > 0 and not whole:
            return
        for size in range(longest, 1, -1):
            span = _span_at(slots, i, size, known, keys, found)
            if span < 0:
                continue
            if at + size < n and _clings(code_points[points[at + size]], CLINGS_BEFORE):
                continue
            soonest = n
            for s in range(len(free)):
                if at >= free[s] and rows[s, span, 1] > 0:
                    mask[i] |= np.uint16(1) << of[s]
                    spans[s, i], free[s] = span, at + size
                soonest = min(soonest, free[s])


@njit(cache=True, inline="always")
def _clings(value, how):
    return value == how or value == CLINGS_BOTH


@njit(cache=True, inline="always")
def _placeholder_end(points, i, n):
    """One past the `>` of a typed placeholder such as <ADDR> that starts at i, else i."""
    j = i + 1
    limit = min(n, j + _LONGEST_PLACEHOLDER)
    while j < limit and (
        0x41 <= points[j] <= 0x5A or points[j] == 0x5F or (j > i + 1 and 0x30 <= points[j] <= 0x39)
    ):
        j += 1
    if j > i + 1 and j < n and points[j] == _MORE:
        return j + 1
    return i


@njit(cache=True)
def _mend_clusters(points, n, code_points, insert_mask, mask):
    """Nothing inside a visible character: no insertion there, no base replaced under its marks."""
    before = PLAIN
    for i in range(n + 1):
        kind = PLAIN
        if i < n and code_points[points[i]] < FIRST_SLOT:
            kind = np.int64(code_points[points[i]])
        after_joiner = before == CLINGS_AFTER or before == CLINGS_BOTH
        if after_joiner:
            mask[i] = 0
        if kind == CLINGS_BEFORE or kind == CLINGS_BOTH:
            mask[i] &= ~np.uint16(insert_mask)
            if i > 0:
                mask[i - 1] &= np.uint16(insert_mask)
        if before == REGIONAL and kind == REGIONAL:
            mask[i] &= ~np.uint16(insert_mask)
        if 0 < i < n and points[i - 1] == _CR and points[i] == _LF:
            mask[i] &= ~np.uint16(insert_mask)
        before = kind


@njit(cache=True)
def _mend_placeholders(points, n, insert_mask, mask):
    """A typed placeholder such as <ADDR> is left whole; an insertion may stand before it."""
    i = 0
    while i < n:
        end = _placeholder_end(points, i, n) if points[i] == _LESS else i
        if end > i:
            mask[i] &= np.uint16(insert_mask)
            for j in range(i + 1, end):
                mask[j] = 0
        i = max(end, i + 1)


@njit(cache=True, nogil=True)
def place_histogram(offsets, data, tables: Tables, priors, length_limit, histogram):
    """Adds sentences to histogram[o, length, places]; calibration's input.

    histogram: [O, length_limit + 1, length_limit + 2] int64, in 2**-20 sentences: each counts by
    the chance that o is drawn for it, which grows where other operators have no place.
    """
    operators = len(priors)
    points = np.empty(length_limit + 1, np.uint32)
    bounds = np.empty(length_limit + 2, np.int64)
    mask = np.empty(length_limit + 2, np.uint16)
    slots = np.empty(length_limit + 2, np.int32)
    insert_mask, with_prior = _insert_mask(tables.inserts), _with_prior(priors)
    rewriting = len(tables.spans.rows)
    spans, free = np.empty((rewriting, length_limit + 1), np.int32), np.empty(rewriting, np.int64)
    for row in range(len(offsets) - 1):
        n = _scan(
            data, offsets[row], offsets[row + 1], tables.code_points, tables.eligible,
            insert_mask, points, bounds, mask, slots,
        )  # fmt: skip
        if rewriting:
            _find_spans(points, n, slots, tables, mask, spans, free, True)
        able, total = _able(mask, n, with_prior), 0.0
        for o in range(operators):
            if (able >> o) & 1:
                total += priors[o]
        for o in range(operators):
            if (able >> o) & 1:
                places = _count(mask, n, 1 << o)
                histogram[o, n, places] += np.int64(_SENTENCE * (priors[o] / total) + 0.5)


@njit(cache=True, inline="always")
def _insert_mask(inserts):
    found = 0
    for o in range(len(inserts)):
        if inserts[o]:
            found |= 1 << o
    return found


@njit(cache=True, inline="always")
def _with_prior(priors):
    found = np.int64(0)
    for o in range(len(priors)):
        found |= np.int64(priors[o] > 0) << o
    return found


@njit(cache=True, inline="always")
def _count(mask, n, wanted):
    """How many of the places 0..n meet `wanted`."""
    found, bits = np.uint16(0), np.uint16(wanted)
    for i in range(np.uint64(n + 1)):  # 16-bit and without branches: the compiler vectorises it
        found = np.uint16(found + np.uint16((mask[i] & bits) != 0))
    return np.int64(found)


@njit(cache=True, inline="always")
def _able(mask, n, with_prior):
    """The operators with a prior that can strike somewhere, as a set of bits."""
    found = np.uint16(0)
    for i in range(np.uint64(n + 1)):
        found = np.uint16(found | mask[i])
    return np.int64(found) & with_prior


@njit(cache=True, inline="always")
def _accumulate(priors, able, cumulative):
    """cumulative[o]: the chance of an operator up to o, the priors renormalised to the set."""
    total, sum_ = 0.0, 0.0
    for o in range(len(priors)):
        if (able >> o) & 1:
            total += priors[o]
    for o in range(len(priors)):
        if (able >> o) & 1:
            sum_ += priors[o]
            cumulative[o] = sum_ / total
        else:
            cumulative[o] = sum_ / total if total > 0 else 0.0
    last = len(priors) - 1
    while last > 0 and not (able >> last) & 1:
        last -= 1
    for o in range(last, len(priors)):
        cumulative[o] = 2.0  # whatever rounding left over falls to the last of the set


@njit(cache=True, inline="always")
def _choose(u, cumulative):
    chosen = 0
    for o in range(len(cumulative)):
        chosen += u >= cumulative[o]  # no branch: which operator it is cannot be predicted
    return chosen


@njit(cache=True, inline="always")
def _take_places(mask, n, wanted, count, key, chosen):
    """`count` distinct places whose mask meets `wanted`, each set equally likely, ascending.

    Places are drawn from all n + 1 until one fits: eligible ones are the rule, and where they are
    rare `_SPARSE` decides that counting them out is cheaper.
    """
    bits, tries = np.uint16(wanted), 0
    for k in range(count):
        fresh, place = False, 0
        while not fresh:
            place = _below(_draw(key, _PLACE, tries), n + 1)
            tries += 1
            fresh = (mask[place] & bits) != 0
            for j in range(k):
                fresh &= chosen[j] != place
            if tries >= _SPARSE and not fresh:
                place = _count_out(mask, n, bits, chosen, k, _draw(key, _PLACE, tries))
                tries += 1  # no draw decides twice
                fresh = True
        at = k
        while at > 0 and chosen[at - 1] > place:
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = place


@njit(cache=True, inline="always")
def _take(mask, n, o, wanted, count_cdf, key, chosen):
    """Draws how many places are struck, and which; gives their number."""
    places, u, count = _count(mask, n, wanted), _unit(_draw(key, _COUNT, 0)), 1
    while count < count_cdf.shape[2] and u >= count_cdf[o, places, count - 1]:
        count += 1
    _take_places(mask, n, wanted, count, key, chosen)
    return count


@njit(cache=True)
def _take_mixed(mask, n, able, priors, count_cdf, key, chosen, cumulative, strikes):
    """Draws places and strikes[k], an operator for each, at least two different ones among them.

    Gives their number; 0 if these places do not allow that.
    """
    count = _take(mask, n, len(priors), able, count_cdf, key, chosen)
    reach, seen = np.int64(0), np.int64(0)
    for k in range(count):
        reach |= np.int64(mask[chosen[k]]) & able
    if count < 2 or reach & (reach - 1) == 0:
        return 0
    for k in range(count):
        _accumulate(priors, np.int64(mask[chosen[k]]) & able, cumulative)
        strikes[k] = _choose(_unit(_draw(key, _MIXED_OPERATOR, k)), cumulative)
        seen |= np.int64(1) << strikes[k]
    if seen & (seen - 1) == 0:
        k = count - 1
        while np.int64(mask[chosen[k]]) & able & ~seen == 0:
            k -= 1
        _accumulate(priors, np.int64(mask[chosen[k]]) & able & ~seen, cumulative)
        strikes[k] = _choose(_unit(_draw(key, _MIXED_OPERATOR, count)), cumulative)
    return count


@njit(cache=True)
def _count_out(mask, n, bits, chosen, k, word):
    """One of the places that fit and are not yet chosen, each equally likely."""
    rank = _below(word, _count(mask, n, bits) - k)
    for place in range(n + 1):
        fresh = (mask[place] & bits) != 0
        for j in range(k):
            fresh &= chosen[j] != place
        if fresh:
            if rank == 0:
                return place
            rank -= 1
    return 0  # cannot happen: there are more places than edits


@njit(cache=True, inline="always")
def _candidate(tables, o, slot, word):
    """The text and the kind (packed) of a replacement, by Walker's alias method."""
    scaled = (word >> np.uint64(32)) * np.uint64(tables.rows[o, slot, 1])
    packed = tables.candidates[np.uint64(tables.rows[o, slot, 0]) + (scaled >> np.uint64(32))]
    fraction = np.uint32(word) >> np.uint32(32 - KEEP_BITS)
    keep = np.uint32(packed >> np.uint64(2 * (TEXT_BITS + KIND_BITS)))
    if fraction >= keep:
        packed >>= np.uint64(TEXT_BITS + KIND_BITS)
    return packed


@njit(cache=True, inline="always")
def _span_candidate(row, candidates, word):
    """A replacement of a span, packed as in the tables, by Walker's alias method."""
    scaled = (word >> np.uint64(32)) * np.uint64(row[1])
    first = np.uint64(row[0])
    packed = candidates[first + (scaled >> np.uint64(32))]
    fraction = np.uint32(word) >> np.uint32(32 - KEEP_BITS)
    if fraction >= np.uint32(packed >> np.uint64(64 - KEEP_BITS)):
        alias = (packed >> np.uint64(_ALIAS)) & np.uint64((1 << ALIAS_BITS) - 1)
        packed = candidates[first + alias]
    return packed


@njit(cache=True, inline="always")
def _occurs(points, n, wanted):
    found = np.uint32(0)
    for i in range(np.uint64(n)):  # to the end: without a way out the compiler vectorises it
        found |= np.uint32(points[i] == wanted)
    return found != 0


@intrinsic
def _copy_block(typing_context, out, to, data, source):
    """out[to:to + 32] = data[source:source + 32] as one unaligned load and store, unchecked."""

    def generate(context, builder, signature, arguments):
        out_type, _, data_type, _ = signature.args
        to_array = context.make_array(out_type)(context, builder, arguments[0])
        from_array = context.make_array(data_type)(context, builder, arguments[2])
        block = ir.VectorType(ir.IntType(8), _BLOCK).as_pointer()
        target = builder.bitcast(builder.gep(to_array.data, [arguments[1]]), block)
        origin = builder.bitcast(builder.gep(from_array.data, [arguments[3]]), block)
        builder.store(builder.load(origin, align=1), target, align=1)
        return context.get_dummy_value()

    return types.void(out, to, data, source), generate


@intrinsic
def _store_word(typing_context, out, to, word):
    """out[to:to + 8] = the bytes of a 64-bit word, lowest first; unaligned, unchecked."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        builder.store(
            arguments[2], builder.bitcast(place, ir.IntType(64).as_pointer()), align=1
        )
        return context.get_dummy_value()

    return types.void(out, to, word), generate


@njit(cache=True, inline="always")
def _copy(out, at, data, start, stop):
    """out[at:] = data[start:stop], in blocks: may scribble 31 bytes further."""
    size, to, source = np.uint64(stop - start), np.uint64(at), np.uint64(start)
    done = np.uint64(0)
    if np.uint64(stop) + np.uint64(_BLOCK) <= np.uint64(len(data)):
        while done < size:
            _copy_block(out, to + done, data, source + done)
            done += np.uint64(_BLOCK)
    else:
        while done < size:
            out[to + done] = data[source + done]
            done += np.uint64(1)


@njit(cache=True)
def _banded(left, n, right, m, bound, previous, current):
    """Levenshtein distance of two code point arrays, known to be at most `bound`."""
    far = bound + 1
    for j in range(m + 1):
        previous[j] = j if j <= bound else far
    for i in range(1, n + 1):
        low, high = max(1, i - bound), min(m, i + bound)
        current[low - 1] = i if low == 1 and i <= bound else far
        for j in range(low, high + 1):
            best = previous[j - 1] + (left[i - 1] != right[j - 1])
            if j < i + bound and previous[j] + 1 < best:
                best = previous[j] + 1
            if current[j - 1] + 1 < best:
                best = current[j - 1] + 1
            current[j] = best
        for j in range(low - 1, high + 1):
            previous[j] = current[j]
        if high < m:
            previous[high + 1] = far
    return previous[m]


@njit(cache=True, nogil=True)
def perturb(
    offsets, data, ids, seed, copies, tables: Tables, priors, count_cdf, mixed, unchanged,
    length_limit, out_offsets, out_bytes, out_operator, out_distance,
    edit_offsets, edit_start, edit_end, edit_target, edit_source, edit_operator, edit_kind,
):  # fmt: skip
    """Copies 0..copies-1 of every sentence, one after the other.

    count_cdf: [O + 1, places, K] float64, the chance that at most k + 1 edits are made where there
    are so many places; its last plane belongs to mixed pairs. out_operator: index of the operator,
    O for mixed, O + 1 for unchanged, -1 where no operator can strike (the source is then empty).
    edit_target and edit_source are rows of the tables' texts. The arrays out_* and edit_* must be
    large enough, out_bytes with `SLACK` to spare; gives the number of edits written.
    """
    operators = len(priors)
    points = np.empty(length_limit + 1, np.uint32)
    bounds = np.empty(length_limit + 2, np.int32)
    mask = np.empty(length_limit + 2, np.uint16)
    slots = np.empty(length_limit + 2, np.uint32)
    cumulative, cumulative_here = np.empty(operators), np.empty(operators)
    most = count_cdf.shape[2]
    chosen, strikes = np.empty(most, np.int64), np.empty(most, np.int64)
    written = np.empty(length_limit + 2 + 2 * most, np.uint32)
    previous = np.empty(length_limit + 3 + 2 * most, np.int64)
    current = np.empty(length_limit + 3 + 2 * most, np.int64)
    insert_mask, with_prior = _insert_mask(tables.inserts), _with_prior(priors)
    rewriting, single = len(tables.spans.rows), with_prior
    spans, free = np.empty((rewriting, length_limit + 1), np.int32), np.empty(rewriting, np.int64)
    for o in range(operators):
        if tables.spans.row[o] >= 0:
            single &= ~(np.int64(1) << o)
    # taken out of the tuple once: each reaching into it counts references
    span_row, span_rows, span_facts = tables.spans.row, tables.spans.rows, tables.spans.facts
    span_texts, span_candidates = tables.spans.texts, tables.spans.candidates
    at, edits, pair, last_able = 0, 0, 0, -1
    out_offsets[0] = 0
    edit_offsets[0] = 0
    for row in range(len(offsets) - 1):
        n = _scan(
            data, offsets[row], offsets[row + 1], tables.code_points, tables.eligible,
            insert_mask, points, bounds, mask, slots,
        )  # fmt: skip
        if rewriting:
            _find_spans(points, n, slots, tables, mask, spans, free, False)
        whole = False
        able = _able(mask, n, with_prior)
        if able != last_able:
            _accumulate(priors, able, cumulative)
            last_able = able
        for copy in range(copies):
            key = _key(seed, ids[row], copy)
            o, count = -1, 0
            if unchanged > 0 and _unit(_draw(key, _UNCHANGED, 0)) < unchanged:
                o = operators + 1
            elif able:
                if mixed > 0 and _unit(_draw(key, _MIXED, 0)) < mixed:
                    # spans of one operator never overlap, but other edits might fall inside
                    count = _take_mixed(
                        mask, n, able & single, priors, count_cdf, key, chosen, cumulative_here,
                        strikes,
                    )  # fmt: skip
                if count:
                    o = operators
                else:
                    o = _choose(_unit(_draw(key, _OPERATOR, 0)), cumulative)
                    if span_row[o] >= 0 and not whole:
                        _find_spans(points, n, slots, tables, mask, spans, free, True)
                        whole = True
                    count = _take(mask, n, o, 1 << o, count_cdf, key, chosen)
            # The tail is copied whole after each edit and the next edit written over it: runs
            # between edits, or sparing the copy where no byte moves, cost a mispredicted branch.
            base, done, spent, sure = at, 0, 0, True
            if o >= 0:
                _copy(out_bytes, base, data, bounds[0], bounds[n])
            else:
                done = n
            base -= bounds[done]
            for k in range(count):
                place = chosen[k]
                struck = strikes[k] if o == operators else o
                if span_row[struck] >= 0:
                    s = np.int64(span_row[struck])
                    span = np.int64(spans[s, place])
                    candidate = _span_candidate(
                        span_rows[s, span], span_candidates, _draw(key, _REPLACEMENT, k)
                    )
                    text = np.int64(candidate & np.uint64(_SPAN_TEXT))
                    done = place + np.int64(span_facts[span, 1])
                    to = base + bounds[place]
                    size = np.int64(span_texts[text, 2])
                    base += size - (bounds[done] - bounds[place])
                    _store_word(out_bytes, np.uint64(to), span_texts[text, 0])
                    _store_word(out_bytes, np.uint64(to + 8), span_texts[text, 1])
                    _copy(out_bytes, to + size, data, bounds[done], bounds[n])
                    sure &= count == 1
                    spent += np.int64(candidate >> np.uint64(_COST)) & 7
                    edit_start[edits] = place
                    edit_end[edits] = done
                    edit_target[edits] = len(tables.texts) + span_facts[span, 0]
                    edit_source[edits] = len(tables.texts) + text
                    edit_operator[edits] = struck
                    kind = (candidate >> np.uint64(SPAN_TEXT_BITS)) & np.uint64(_KIND)
                    edit_kind[edits] = np.int8(kind)
                    edits += 1
                    continue
                inserts = np.int64(tables.inserts[struck])
                slot = np.uint32(0) if inserts else slots[place]
                candidate = _candidate(tables, struck, slot, _draw(key, _REPLACEMENT, k))
                text = np.int64(candidate & np.uint64(_TEXT))
                facts = tables.texts[text, 1]
                to = base + bounds[place]
                done = place + 1 - inserts
                size = np.int64(facts & np.uint64(0xFF))
                base += size - (bounds[done] - bounds[place])
                _store_word(out_bytes, np.uint64(to), tables.texts[text, 0])
                _copy(out_bytes, to + size, data, bounds[done], bounds[n])
                if count > 1:
                    first = np.uint32((facts >> np.uint64(8)) & np.uint64(0xFFFFFF))
                    second = np.uint32(facts >> np.uint64(32))
                    sure &= not _occurs(points, n, first)
                    if second:
                        sure &= not _occurs(points, n, second)
                    # a loss and a gain of several operators may be one substitution
                    sure &= size > 0 or o < operators
                spent += tables.cost[struck]
                edit_start[edits] = place
                edit_end[edits] = done
                edit_target[edits] = slot
                edit_source[edits] = text
                edit_operator[edits] = struck
                edit_kind[edits] = np.int8((candidate >> np.uint64(TEXT_BITS)) & np.uint64(_KIND))
                edits += 1
            at = base + bounds[n]
            if not sure:
                # of several edits, one introduces a character that the target has: the sum is
                # only a bound. One edit alone costs what it costs: a replacement never holds the
                # character replaced, so what is left between what both share cannot match.
                length = _rebuild(
                    points, n, edit_start, edit_end, edit_source, edits - count, edits,
                    tables, written,
                )  # fmt: skip
                spent = _banded(points, n, written, length, spent, previous, current)
            out_operator[pair] = o
            out_distance[pair] = spent
            pair += 1
            out_offsets[pair] = at
            edit_offsets[pair] = edits
    return edits


@njit(cache=True)
def _rebuild(points, n, starts, ends, sources, first, last, tables, written):
    """The source's code points from the target's and the edits; gives their number."""
    length, done = 0, 0
    for e in range(first, last):
        for i in range(done, starts[e]):
            written[length] = points[i]
            length += 1
        own = sources[e] - len(tables.texts)
        if own >= 0:
            for j in range(LONGEST):
                if tables.spans.points[own, j]:
                    written[length] = tables.spans.points[own, j]
                    length += 1
        else:
            facts = tables.texts[sources[e], 1]
            written[length] = np.uint32((facts >> np.uint64(8)) & np.uint64(0xFFFFFF))
            written[length + 1] = np.uint32(facts >> np.uint64(32))
            length += np.int64(written[length] != 0) + np.int64(written[length + 1] != 0)
        done = ends[e]
    for i in range(done, n):
        written[length] = points[i]
        length += 1
    return length
