"""Random draws, and those of the operator, of the number of edits and of their positions.

Draws are pure functions of (seed, id, copy, purpose, index): each is the finaliser of SplitMix64
over a counter, so that order, sharding, workers and restarts change no row. Sets of operators are
masks of bits, and so is the set of those that may edit at each of the positions 0..length, `mask`.
"""

import numpy as np

from cecdata.common.kernels import called, inlined, mix

# What a draw is for. A new purpose takes a new number; a used one is never taken again.
UNCHANGED, OPERATOR, COUNT, POSITION, REPLACEMENT, MIXED, MIXED_OPERATOR, SAMPLE = range(8)
PROPOSAL, CHOICE = 8, 9
# Odd numbers by which the counters of draws and of copies are spread over 64 bits.
_STEP, _COPY_STEP = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)


@inlined
def make_key(seed, identity, copy):
    """Return the key of a pair's draws."""
    first = mix(np.uint64(identity) ^ mix(np.uint64(seed) + _STEP))
    return mix(first + (np.uint64(copy) + np.uint64(1)) * _COPY_STEP)


@inlined
def draw(key, purpose, index):
    """Return the 64 uniform random bits of a pair's key, a purpose and an index."""
    counter = (np.uint64(purpose) << np.uint64(32)) + np.uint64(index) + np.uint64(1)
    return mix(key + counter * _STEP)


@inlined
def draw_below(random, bound):
    """Return a number 0..bound - 1 from 64 uniform random bits."""
    # Lemire's multiply-shift on the upper 32 bits; its bias of bound / 2**32 is too low to be seen
    return np.int64(((random >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@inlined
def draw_fraction(key, purpose, index):
    """Return a uniform fraction in [0, 1) of a pair's key, a purpose and an index."""
    return np.float64(draw(key, purpose, index) >> np.uint64(11)) * 2.0**-53


_SPARSE = 24  # tries after which the eligible positions are counted


@inlined
def make_mask(values):
    """Return the operators whose value is above 0, as a set of bits."""
    bits = np.int64(0)
    for o in range(len(values)):
        bits |= np.int64(values[o] > 0) << o
    return bits


@inlined
def count_positions(mask, length, wanted):
    """Return the number of positions 0..length that have a bit of `wanted`."""
    count, bits = np.uint16(0), np.uint16(wanted)
    # 16-bit and without branches: the compiler vectorises it
    for i in range(np.uint64(length + 1)):
        count = np.uint16(count + np.uint16((mask[i] & bits) != 0))
    return np.int64(count)


@inlined
def find_able_mask(mask, length, with_prior):
    """Return the operators with a prior that can edit some position, as a set of bits."""
    bits = np.uint16(0)
    for i in range(np.uint64(length + 1)):
        bits = np.uint16(bits | mask[i])
    return np.int64(bits) & with_prior


@inlined
def sum_priors(priors, able):
    """Return the sum of the priors of the operators in the set `able`."""
    total = 0.0
    for o in range(len(priors)):
        if (able >> o) & 1:
            total += priors[o]
    return total


@inlined
def accumulate_priors(priors, able, cumulative):
    """Write into cumulative[o] the probability of drawing an operator ≤ o of the set `able`."""
    total, sum_up_to = sum_priors(priors, able), 0.0
    for o in range(len(priors)):
        if (able >> o) & 1:
            sum_up_to += priors[o]
        cumulative[o] = sum_up_to / total if total > 0 else 0.0
    last = len(priors) - 1
    while last > 0 and not (able >> last) & 1:
        last -= 1
    for o in range(last, len(priors)):
        cumulative[o] = 2.0  # the last of the set takes what rounding leaves over


@inlined
def choose_operator(fraction, cumulative):
    """Return the operator that a fraction selects, by what `accumulate_priors` wrote."""
    chosen = 0
    for o in range(len(cumulative)):
        chosen += fraction >= cumulative[o]  # no branch: it could not be predicted
    return chosen


@inlined
def draw_positions(length, operator, wanted, draws, key, scratch):
    """Draw how many positions with a bit of `wanted` are edited, and which; return the number.

    They are written to `scratch.chosen`. `operator` is the row of `Draws.count_cdf`.
    """
    positions, count = count_positions(scratch.mask, length, wanted), 1
    fraction = draw_fraction(key, COUNT, 0)
    count_cdf = draws.count_cdf
    while count < count_cdf.shape[2] and fraction >= count_cdf[operator, positions, count - 1]:
        count += 1
    _draw_distinct(scratch.mask, length, wanted, count, key, scratch.chosen)
    return count


@inlined
def _draw_distinct(mask, length, wanted, count, key, chosen):
    """Draw `count` distinct positions with a bit of `wanted`, ascending, each set equally likely.

    A position is drawn from all length + 1 until an eligible one is found. Where these are rare
    (`_SPARSE`), it is cheaper to count them.
    """
    bits, tries = np.uint16(wanted), 0
    for k in range(count):
        fresh, position = False, 0
        while not fresh:
            position = draw_below(draw(key, POSITION, tries), length + 1)
            tries += 1
            fresh = (mask[position] & bits) != 0
            for j in range(k):
                fresh &= chosen[j] != position
            if tries >= _SPARSE and not fresh:
                position = _draw_by_rank(mask, length, bits, chosen, k, draw(key, POSITION, tries))
                tries += 1  # no draw decides twice
                fresh = True
        at = k
        while at > 0 and chosen[at - 1] > position:
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = position


@called
def _draw_by_rank(mask, length, bits, chosen, taken, random):
    """Return a position with one of `bits` that is not in chosen[:taken], each equally likely."""
    rank = draw_below(random, count_positions(mask, length, bits) - taken)
    for position in range(length + 1):
        fresh = (mask[position] & bits) != 0
        for j in range(taken):
            fresh &= chosen[j] != position
        if fresh:
            if rank == 0:
                return position
            rank -= 1
    return 0  # cannot happen: there are more positions than edits


@called
def draw_mixed_positions(length, able, draws, key, scratch):
    """Draw the positions and the operators of a mixed pair; return the number of positions, or 0.

    They are written to `scratch.chosen` and `operators`. At least two operators differ; 0 stands
    for positions that do not allow that.
    """
    mask, chosen, operators = scratch.mask, scratch.chosen, scratch.operators
    priors, cumulative = draws.priors, scratch.cumulative_here
    count = draw_positions(length, len(priors), able, draws, key, scratch)
    possible, drawn = np.int64(0), np.int64(0)
    for k in range(count):
        possible |= np.int64(mask[chosen[k]]) & able
    if count < 2 or not _has_two_bits(possible):
        return 0
    for k in range(count):
        accumulate_priors(priors, np.int64(mask[chosen[k]]) & able, cumulative)
        operators[k] = choose_operator(draw_fraction(key, MIXED_OPERATOR, k), cumulative)
        drawn |= np.int64(1) << operators[k]
    if not _has_two_bits(drawn):  # all drew one operator: the last edit that can takes another
        k = count - 1
        while np.int64(mask[chosen[k]]) & able & ~drawn == 0:
            k -= 1
        accumulate_priors(priors, np.int64(mask[chosen[k]]) & able & ~drawn, cumulative)
        operators[k] = choose_operator(draw_fraction(key, MIXED_OPERATOR, count), cumulative)
    return count


@inlined
def _has_two_bits(mask):
    """Return whether at least two bits are set."""
    return mask & (mask - 1) != 0
