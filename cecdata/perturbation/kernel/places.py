"""Draws of the operator, of the number of edits and of their places."""

from __future__ import annotations

import numpy as np

from cecdata.common.kernels.jit import called, inlined
from cecdata.perturbation.kernel.draws import COUNT, MIXED_OPERATOR, PLACE, below, draw, unit

_SPARSE = 24  # tries after which the eligible places are counted


@inlined
def insert_mask_of(inserts):
    """Return the operators that insert, as a set of bits."""
    bits = 0
    for o in range(len(inserts)):
        if inserts[o]:
            bits |= 1 << o
    return bits


@inlined
def with_prior_of(priors):
    """Return the operators with a prior, as a set of bits."""
    bits = np.int64(0)
    for o in range(len(priors)):
        bits |= np.int64(priors[o] > 0) << o
    return bits


@inlined
def count_places(mask, n, wanted):
    """Return the number of places 0..n that have a bit of `wanted`."""
    count, bits = np.uint16(0), np.uint16(wanted)
    for i in range(np.uint64(n + 1)):  # 16-bit and without branches: the compiler vectorises it
        count = np.uint16(count + np.uint16((mask[i] & bits) != 0))
    return np.int64(count)


@inlined
def able_of(mask, n, with_prior):
    """Return the operators with a prior that can strike somewhere, as a set of bits."""
    bits = np.uint16(0)
    for i in range(np.uint64(n + 1)):
        bits = np.uint16(bits | mask[i])
    return np.int64(bits) & with_prior


@inlined
def accumulate(priors, able, cumulative):
    """Write into cumulative[o] the probability of drawing an operator ≤ o of the set `able`."""
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
        cumulative[o] = 2.0  # the last of the set takes what rounding leaves over


@inlined
def choose(u, cumulative):
    """Return the operator that a draw selects."""
    chosen = 0
    for o in range(len(cumulative)):
        chosen += u >= cumulative[o]  # no branch: it could not be predicted
    return chosen


@inlined
def take(n, o, wanted, draws, key, room):
    """Draw how many places with a bit of `wanted` are struck, and which; return the number."""
    places, u, count = count_places(room.mask, n, wanted), unit(draw(key, COUNT, 0)), 1
    count_cdf = draws.count_cdf
    while count < count_cdf.shape[2] and u >= count_cdf[o, places, count - 1]:
        count += 1
    _take_places(room.mask, n, wanted, count, key, room.chosen)
    return count


@inlined
def _take_places(mask, n, wanted, count, key, chosen):
    """Draw `count` distinct places with a bit of `wanted`, ascending, each set equally likely.

    A place is drawn from all n + 1 until an eligible one is found. Where eligible places are rare
    (`_SPARSE`), it is cheaper to count them.
    """
    bits, tries = np.uint16(wanted), 0
    for k in range(count):
        fresh, place = False, 0
        while not fresh:
            place = below(draw(key, PLACE, tries), n + 1)
            tries += 1
            fresh = (mask[place] & bits) != 0
            for j in range(k):
                fresh &= chosen[j] != place
            if tries >= _SPARSE and not fresh:
                place = _count_out(mask, n, bits, chosen, k, draw(key, PLACE, tries))
                tries += 1  # no draw decides twice
                fresh = True
        at = k
        while at > 0 and chosen[at - 1] > place:
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = place


@called
def _count_out(mask, n, bits, chosen, k, word):
    """Return one of the places that fit and are not yet chosen, each equally likely."""
    rank = below(word, count_places(mask, n, bits) - k)
    for place in range(n + 1):
        fresh = (mask[place] & bits) != 0
        for j in range(k):
            fresh &= chosen[j] != place
        if fresh:
            if rank == 0:
                return place
            rank -= 1
    return 0  # cannot happen: there are more places than edits


@called
def take_mixed(n, able, draws, key, room):
    """Draw places, and for each an operator, strikes[k]; at least two operators differ.

    Return the number of places, or 0 if these places do not allow two operators.
    """
    mask, chosen, strikes, cumulative = room.mask, room.chosen, room.strikes, room.cumulative_here
    priors = draws.priors
    count = take(n, len(priors), able, draws, key, room)
    reach, seen = np.int64(0), np.int64(0)
    for k in range(count):
        reach |= np.int64(mask[chosen[k]]) & able
    if count < 2 or reach & (reach - 1) == 0:
        return 0
    for k in range(count):
        accumulate(priors, np.int64(mask[chosen[k]]) & able, cumulative)
        strikes[k] = choose(unit(draw(key, MIXED_OPERATOR, k)), cumulative)
        seen |= np.int64(1) << strikes[k]
    if seen & (seen - 1) == 0:
        k = count - 1
        while np.int64(mask[chosen[k]]) & able & ~seen == 0:
            k -= 1
        accumulate(priors, np.int64(mask[chosen[k]]) & able & ~seen, cumulative)
        strikes[k] = choose(unit(draw(key, MIXED_OPERATOR, count)), cumulative)
    return count
