/* The algorithm of cecdata/perturbation/kernel in plain C, to compare the compilers: the same draws,
 * the same bytes. bench_kernel.py compiles it with `cc -O3 -march=native` and checks the outputs.
 * Names follow the Python file; what its comments say is not said again here. Little-endian. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PLAIN, CLINGS_BEFORE, CLINGS_AFTER, REGIONAL, CLINGS_BOTH, FIRST_SLOT = 8 };
enum { UNCHANGED, OPERATOR, COUNT, PLACE, REPLACEMENT, MIXED, MIXED_OPERATOR };
enum { TEXT_BITS = 16, KIND_BITS = 5, KEEP_BITS = 22, SPARSE = 24, LONGEST_PLACEHOLDER = 32, BLOCK = 32 };

typedef struct {
    const uint16_t *code_points, *eligible;
    const int32_t *rows;        /* [operators, slots, 2] */
    const uint64_t *candidates;
    const uint8_t *inserts;
    const int32_t *cost;
    const uint64_t *texts;      /* [T, 2] */
    int64_t slots, operators;
} tables;

typedef struct {
    int32_t *offsets;
    uint8_t *bytes;
    int8_t *operator_;
    int16_t *distance;
    int32_t *edit_offsets, *start, *end, *target, *source;
    int8_t *edit_operator, *kind;
} output;

static inline uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline uint64_t draw(uint64_t key, uint64_t purpose, uint64_t index) {
    return mix(key + ((purpose << 32) + index + 1) * 0x9E3779B97F4A7C15u);
}

static inline int64_t below(uint64_t word, uint64_t n) { return ((word >> 32) * n) >> 32; }

static inline double unit(uint64_t word) { return (word >> 11) * (1.0 / 9007199254740992.0); }

static inline uint64_t key_of(uint64_t seed, uint64_t identity, uint64_t copy) {
    uint64_t first = mix(identity ^ mix(seed + 0x9E3779B97F4A7C15u));
    return mix(first + (copy + 1) * 0xD1B54A32D192ED03u);
}

static void mend_clusters(const uint32_t *points, int64_t n, const tables *t, uint16_t inserts,
                          uint16_t *mask) {
    int before = PLAIN;
    for (int64_t i = 0; i <= n; i++) {
        int kind = PLAIN;
        if (i < n && t->code_points[points[i]] < FIRST_SLOT) kind = t->code_points[points[i]];
        if (before == CLINGS_AFTER || before == CLINGS_BOTH) mask[i] = 0;
        if (kind == CLINGS_BEFORE || kind == CLINGS_BOTH) {
            mask[i] &= ~inserts;
            if (i > 0) mask[i - 1] &= inserts;
        }
        if (before == REGIONAL && kind == REGIONAL) mask[i] &= ~inserts;
        if (0 < i && i < n && points[i - 1] == '\r' && points[i] == '\n') mask[i] &= ~inserts;
        before = kind;
    }
}

static int64_t placeholder_end(const uint32_t *points, int64_t i, int64_t n) {
    int64_t j = i + 1, limit = j + LONGEST_PLACEHOLDER < n ? j + LONGEST_PLACEHOLDER : n;
    while (j < limit && ((points[j] >= 'A' && points[j] <= 'Z') || points[j] == '_' ||
                         (j > i + 1 && points[j] >= '0' && points[j] <= '9')))
        j++;
    return j > i + 1 && j < n && points[j] == '>' ? j + 1 : i;
}

static void mend_placeholders(const uint32_t *points, int64_t n, uint16_t inserts, uint16_t *mask) {
    for (int64_t i = 0; i < n;) {
        int64_t end = points[i] == '<' ? placeholder_end(points, i, n) : i;
        if (end > i) {
            mask[i] &= inserts;
            for (int64_t j = i + 1; j < end; j++) mask[j] = 0;
        }
        i = end > i ? end : i + 1;
    }
}

static inline int64_t scan(const uint8_t *data, int64_t at, int64_t end, const tables *t,
                           uint16_t inserts, uint32_t *points, int32_t *bounds, uint16_t *mask,
                           uint32_t *slots) {
    int64_t n = 0;
    int special = 0;
    while (at < end) {
        uint32_t b = data[at], point;
        bounds[n] = at;
        if (b >= 0xE0) {
            point = (data[at + 1] & 0x3F) << 6 | (data[at + 2] & 0x3F);
            if (b < 0xF0) {
                point |= (b & 0x0F) << 12;
                at += 3;
            } else {
                point = point << 6 | (data[at + 3] & 0x3F) | (b & 0x07) << 18;
                at += 4;
            }
        } else if (b < 0x80) {
            point = b;
            at += 1;
        } else {
            point = (b & 0x1F) << 6 | (data[at + 1] & 0x3F);
            at += 2;
        }
        uint32_t value = t->code_points[point], slot = 0;
        if (value >= FIRST_SLOT)
            slot = value - (FIRST_SLOT - 1);
        else if (value != PLAIN || point == '<' || point == '\r')
            special = 1;
        points[n] = point;
        slots[n] = slot;
        mask[n] = t->eligible[slot] | inserts;
        n++;
    }
    bounds[n] = end;
    mask[n] = inserts;
    slots[n] = 0;
    if (special) {
        mend_clusters(points, n, t, inserts, mask);
        mend_placeholders(points, n, inserts, mask);
    }
    return n;
}

static inline int64_t count_places(const uint16_t *mask, int64_t n, uint16_t wanted) {
    uint16_t found = 0;
    for (int64_t i = 0; i <= n; i++) found += (mask[i] & wanted) != 0;
    return found;
}

static inline void accumulate(const double *priors, int64_t operators, int64_t able, double *sums) {
    double total = 0, sum = 0;
    for (int64_t o = 0; o < operators; o++)
        if (able >> o & 1) total += priors[o];
    for (int64_t o = 0; o < operators; o++) {
        if (able >> o & 1) sum += priors[o];
        sums[o] = total > 0 ? sum / total : 0;
    }
    int64_t last = operators - 1;
    while (last > 0 && !(able >> last & 1)) last--;
    for (int64_t o = last; o < operators; o++) sums[o] = 2.0;
}

static inline int choose(double u, const double *sums, int64_t operators) {
    int chosen = 0;
    for (int64_t o = 0; o < operators; o++) chosen += u >= sums[o];
    return chosen;
}

static int64_t count_out(const uint16_t *mask, int64_t n, uint16_t wanted, const int64_t *chosen,
                         int64_t k, uint64_t word) {
    int64_t rank = below(word, count_places(mask, n, wanted) - k);
    for (int64_t place = 0; place <= n; place++) {
        int fresh = (mask[place] & wanted) != 0;
        for (int64_t j = 0; j < k; j++) fresh &= chosen[j] != place;
        if (fresh && rank-- == 0) return place;
    }
    return 0;
}

static inline void take_places(const uint16_t *mask, int64_t n, uint16_t wanted, int64_t count,
                               uint64_t key, int64_t *chosen) {
    uint64_t tries = 0;
    for (int64_t k = 0; k < count; k++) {
        int fresh = 0;
        int64_t place = 0;
        while (!fresh) {
            place = below(draw(key, PLACE, tries++), n + 1);
            fresh = (mask[place] & wanted) != 0;
            for (int64_t j = 0; j < k; j++) fresh &= chosen[j] != place;
            if (tries >= SPARSE && !fresh) {
                place = count_out(mask, n, wanted, chosen, k, draw(key, PLACE, tries++));
                fresh = 1;
            }
        }
        int64_t at = k;
        for (; at > 0 && chosen[at - 1] > place; at--) chosen[at] = chosen[at - 1];
        chosen[at] = place;
    }
}

static inline uint64_t candidate_of(const tables *t, int64_t o, uint32_t slot, uint64_t word) {
    const int32_t *row = t->rows + 2 * (o * t->slots + slot);
    uint64_t scaled = (word >> 32) * (uint64_t)row[1];
    uint64_t packed = t->candidates[row[0] + (scaled >> 32)];
    uint32_t fraction = (uint32_t)word >> (32 - KEEP_BITS);
    if (fraction >= (uint32_t)(packed >> (2 * (TEXT_BITS + KIND_BITS))))
        packed >>= TEXT_BITS + KIND_BITS;
    return packed;
}

static inline int occurs(const uint32_t *points, int64_t n, uint32_t wanted) {
    uint32_t found = 0;
    for (int64_t i = 0; i < n; i++) found |= points[i] == wanted;
    return found != 0;
}

static inline void copy_bytes(uint8_t *out, const uint8_t *data, int64_t size, const uint8_t *end) {
    if (data + size + BLOCK <= end)
        for (int64_t done = 0; done < size; done += BLOCK) memcpy(out + done, data + done, BLOCK);
    else
        memcpy(out, data, size);
}

static int64_t rebuild(const uint32_t *points, int64_t n, const output *out, int64_t first,
                       int64_t last, const uint64_t *texts, uint32_t *written) {
    int64_t length = 0, done = 0;
    for (int64_t e = first; e < last; e++) {
        while (done < out->start[e]) written[length++] = points[done++];
        uint64_t facts = texts[2 * out->source[e] + 1];
        written[length] = facts >> 8 & 0xFFFFFF;
        written[length + 1] = facts >> 32;
        length += (written[length] != 0) + (written[length + 1] != 0);
        done = out->end[e];
    }
    while (done < n) written[length++] = points[done++];
    return length;
}

static int64_t banded(const uint32_t *left, int64_t n, const uint32_t *right, int64_t m,
                      int64_t bound, int64_t *previous, int64_t *current) {
    int64_t far = bound + 1;
    for (int64_t j = 0; j <= m; j++) previous[j] = j <= bound ? j : far;
    for (int64_t i = 1; i <= n; i++) {
        int64_t low = i - bound > 1 ? i - bound : 1, high = i + bound < m ? i + bound : m;
        current[low - 1] = low == 1 && i <= bound ? i : far;
        for (int64_t j = low; j <= high; j++) {
            int64_t best = previous[j - 1] + (left[i - 1] != right[j - 1]);
            if (j < i + bound && previous[j] + 1 < best) best = previous[j] + 1;
            if (current[j - 1] + 1 < best) best = current[j - 1] + 1;
            current[j] = best;
        }
        for (int64_t j = low - 1; j <= high; j++) previous[j] = current[j];
        if (high < m) previous[high + 1] = far;
    }
    return previous[m];
}

static inline int64_t take(const uint16_t *mask, int64_t n, int64_t o, uint16_t wanted,
                           const double *count_cdf, int64_t places_axis, int64_t most,
                           uint64_t key, int64_t *chosen) {
    const double *cdf = count_cdf + (o * places_axis + count_places(mask, n, wanted)) * most;
    double u = unit(draw(key, COUNT, 0));
    int64_t count = 1;
    while (count < most && u >= cdf[count - 1]) count++;
    take_places(mask, n, wanted, count, key, chosen);
    return count;
}

/* An operator for each chosen place, two different ones at least; 0 if the places forbid that. */
static int mixture(const uint16_t *mask, int64_t able, const double *priors, int64_t operators,
                   uint64_t key, const int64_t *chosen, int64_t count, int64_t *strikes) {
    double sums[16];
    int64_t reach = 0, seen = 0, k;
    for (k = 0; k < count; k++) reach |= mask[chosen[k]] & able;
    if (count < 2 || (reach & (reach - 1)) == 0) return 0;
    for (k = 0; k < count; k++) {
        accumulate(priors, operators, mask[chosen[k]] & able, sums);
        strikes[k] = choose(unit(draw(key, MIXED_OPERATOR, k)), sums, operators);
        seen |= (int64_t)1 << strikes[k];
    }
    if ((seen & (seen - 1)) == 0) {
        for (k = count - 1; (mask[chosen[k]] & able & ~seen) == 0;) k--;
        accumulate(priors, operators, mask[chosen[k]] & able & ~seen, sums);
        strikes[k] = choose(unit(draw(key, MIXED_OPERATOR, count)), sums, operators);
    }
    return 1;
}

int64_t perturb(const int32_t *offsets, int64_t sentences, const uint8_t *data, int64_t data_bytes,
                const uint64_t *ids, uint64_t seed, int64_t copies, const tables *t,
                const double *priors, const double *count_cdf, int64_t places_axis, int64_t most,
                double mixed, double unchanged, int64_t length_limit, output *out) {
    int64_t operators = t->operators;
    uint32_t *points = malloc(4 * (length_limit + 1)), *slots = malloc(4 * (length_limit + 2));
    int32_t *bounds = malloc(4 * (length_limit + 2));
    uint16_t *mask = malloc(2 * (length_limit + 2));
    double sums[16];
    int64_t *chosen = malloc(8 * most), *strikes = malloc(8 * most);
    uint32_t *written = malloc(4 * (length_limit + 2 + 2 * most));
    int64_t *previous = malloc(8 * (length_limit + 3 + 2 * most));
    int64_t *current = malloc(8 * (length_limit + 3 + 2 * most));
    uint16_t inserts = 0;
    int64_t with_prior = 0, at = 0, edits = 0, pair = 0, last_able = -1;
    for (int64_t o = 0; o < operators; o++) {
        inserts |= (t->inserts[o] != 0) << o;
        with_prior |= (int64_t)(priors[o] > 0) << o;
    }
    out->offsets[0] = out->edit_offsets[0] = 0;
    for (int64_t row = 0; row < sentences; row++) {
        int64_t n = scan(data, offsets[row], offsets[row + 1], t, inserts, points, bounds, mask,
                         slots);
        uint16_t found = 0;
        for (int64_t i = 0; i <= n; i++) found |= mask[i];
        int64_t able = found & with_prior;
        if (able != last_able) accumulate(priors, operators, able, sums);
        last_able = able;
        for (int64_t copy = 0; copy < copies; copy++) {
            uint64_t key = key_of(seed, ids[row], copy);
            int64_t o = -1, count = 0;
            if (unchanged > 0 && unit(draw(key, UNCHANGED, 0)) < unchanged) {
                o = operators + 1;
            } else if (able) {
                if (mixed > 0 && unit(draw(key, MIXED, 0)) < mixed) {
                    count = take(mask, n, operators, able, count_cdf, places_axis, most, key,
                                 chosen);
                    if (mixture(mask, able, priors, operators, key, chosen, count, strikes))
                        o = operators;
                }
                if (o < 0) {
                    o = choose(unit(draw(key, OPERATOR, 0)), sums, operators);
                    count = take(mask, n, o, 1 << o, count_cdf, places_axis, most, key, chosen);
                }
            }
            int64_t base = at, done = 0, spent = 0;
            int sure = 1;
            if (o >= 0)
                copy_bytes(out->bytes + base, data + bounds[0], bounds[n] - bounds[0],
                           data + data_bytes);
            else
                done = n;
            base -= bounds[done];
            for (int64_t k = 0; k < count; k++) {
                int64_t place = chosen[k], struck = o == operators ? strikes[k] : o;
                int64_t insert = t->inserts[struck];
                uint32_t slot = insert ? 0 : slots[place];
                uint64_t candidate = candidate_of(t, struck, slot, draw(key, REPLACEMENT, k));
                int64_t text = candidate & ((1 << TEXT_BITS) - 1);
                uint64_t word = t->texts[2 * text], facts = t->texts[2 * text + 1];
                int64_t to = base + bounds[place], size = facts & 0xFF;
                done = place + 1 - insert;
                base += size - (bounds[done] - bounds[place]);
                memcpy(out->bytes + to, &word, 8);
                copy_bytes(out->bytes + to + size, data + bounds[done], bounds[n] - bounds[done],
                           data + data_bytes);
                if (count > 1) {
                    uint32_t first = facts >> 8 & 0xFFFFFF, second = facts >> 32;
                    sure &= !occurs(points, n, first);
                    if (second) sure &= !occurs(points, n, second);
                }
                spent += t->cost[struck];
                out->start[edits] = place;
                out->end[edits] = done;
                out->target[edits] = slot;
                out->source[edits] = text;
                out->edit_operator[edits] = struck;
                out->kind[edits] = candidate >> TEXT_BITS & ((1 << KIND_BITS) - 1);
                edits++;
            }
            at = base + bounds[n];
            if (!sure) {
                int64_t length = rebuild(points, n, out, edits - count, edits, t->texts, written);
                spent = banded(points, n, written, length, spent, previous, current);
            }
            out->operator_[pair] = o;
            out->distance[pair] = spent;
            pair++;
            out->offsets[pair] = at;
            out->edit_offsets[pair] = edits;
        }
    }
    free(points), free(slots), free(bounds), free(mask), free(chosen), free(strikes);
    free(written), free(previous), free(current);
    return edits;
}
