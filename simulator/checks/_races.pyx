"""Elements of a tensor that are stored to twice, with the same value or another one. Loops only."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp


ctypedef fused Bits:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef enum How:
    LOOK
    SET
    CLEAR


cdef inline uint64_t piece(int64_t at, int64_t* count) noexcept nogil:
    """The bits of the first of so many elements, as far as they share a word; count: how many those are."""
    cdef int64_t shift = at & 63
    if count[0] >= 64 - shift:
        count[0] = 64 - shift
        return (~<uint64_t> 0) << shift
    return (((<uint64_t> 1) << count[0]) - 1) << shift


cdef inline bint mark(uint64_t* bits, int64_t at, int64_t count, How how) noexcept nogil:
    """Look at `count` bits from `at`, set or clear them; tells whether one of them was set."""
    cdef int64_t n, end = at + count
    cdef uint64_t mask
    cdef bint met = False
    while at < end:
        n = end - at
        mask = piece(at, &n)
        met |= (bits[at >> 6] & mask) != 0
        if how == SET:
            bits[at >> 6] |= mask
        elif how == CLEAR:
            bits[at >> 6] &= ~mask
        at += n
    return met


def mark_boxes(
    uint64_t[::1] bits,
    int how,
    const int64_t[::1] starts,
    const int64_t[:, ::1] strides,
    const int64_t[:, ::1] lows,
    const int64_t[:, ::1] highs,
):
    """Look at the marks of the box of every program, set or clear them; tells whether an element was marked,
    by a program before, too. Boxes lie inside.
    """
    cdef Py_ssize_t p, s, lo, hi
    cdef int64_t a, b, c, d, at, n, i
    cdef bint met = False
    with nogil:
        for p in range(starts.shape[0]):
            s = p if strides.shape[0] > 1 else 0
            lo = p if lows.shape[0] > 1 else 0
            hi = p if highs.shape[0] > 1 else 0
            n = highs[hi, 4] - lows[lo, 4]
            if n <= 0:
                continue
            for a in range(lows[lo, 0], highs[hi, 0]):
                for b in range(lows[lo, 1], highs[hi, 1]):
                    for c in range(lows[lo, 2], highs[hi, 2]):
                        for d in range(lows[lo, 3], highs[hi, 3]):
                            at = starts[p] + a * strides[s, 0] + b * strides[s, 1] + c * strides[s, 2]
                            at += d * strides[s, 3] + lows[lo, 4] * strides[s, 4]
                            if strides[s, 4] == 1:
                                met |= mark(&bits[0], at, n, <How> how)
                            else:
                                for i in range(n):
                                    met |= mark(&bits[0], at + i * strides[s, 4], 1, <How> how)
    return met


def mark_elements(uint64_t[::1] bits, int how, const int64_t[::1] at, const uint8_t[::1] chosen):
    """The same for single elements; an empty `chosen` chooses all."""
    cdef Py_ssize_t i
    cdef bint every = chosen.shape[0] == 0, met = False
    with nogil:
        for i in range(at.shape[0]):
            if every or chosen[i]:
                met |= mark(&bits[0], at[i], 1, <How> how)
    return met


cdef inline uint64_t others(const Bits* last, const Bits* values, int64_t count) noexcept nogil:
    """Bits of the elements that are not the same, of 64 at most."""
    cdef uint64_t found = 0
    cdef int64_t i
    if memcmp(last, values, count * sizeof(Bits)) == 0:
        return 0
    for i in range(count):
        found |= (<uint64_t> (last[i] != values[i])) << i
    return found


cdef void put(
    uint64_t* written, uint64_t* differ, Bits* last, int64_t at, int64_t count, const Bits* values
) noexcept nogil:
    """Store so many elements, one behind the other."""
    cdef int64_t i, n, word, end = at + count
    cdef uint64_t mask, new
    while at < end:
        n, word = end - at, at >> 6
        mask = piece(at, &n)
        if mask & ~differ[word]:
            new = (mask & ~written[word]) >> (at & 63)
            for i in range(n if new else 0):
                if new >> i & 1:
                    last[at + i] = values[i]
            written[word] |= mask
            differ[word] |= others(&last[at], values, n) << (at & 63)
        values += n
        at += n


def put_boxes(
    uint64_t[::1] written,
    uint64_t[::1] differ,
    Bits[::1] last,
    const Bits[::1] values,
    const int64_t[::1] shape,
    const int64_t[::1] starts,
    const int64_t[:, ::1] strides,
    const int64_t[:, ::1] lows,
    const int64_t[:, ::1] highs,
):
    """Compare what the box of every program is given with what the elements were given first, and mark those
    that get another value. values: whole tiles, of all programs or one for all.
    """
    cdef Py_ssize_t p, s, lo, hi
    cdef int64_t a, b, c, d, e, at, n, tile = shape[0] * shape[1] * shape[2] * shape[3] * shape[4]
    cdef const Bits* value
    if values.shape[0] == 0:
        return
    with nogil:
        for p in range(starts.shape[0]):
            s = p if strides.shape[0] > 1 else 0
            lo = p if lows.shape[0] > 1 else 0
            hi = p if highs.shape[0] > 1 else 0
            for a in range(lows[lo, 0], highs[hi, 0]):
                for b in range(lows[lo, 1], highs[hi, 1]):
                    for c in range(lows[lo, 2], highs[hi, 2]):
                        for d in range(lows[lo, 3], highs[hi, 3]):
                            at = starts[p] + a * strides[s, 0] + b * strides[s, 1] + c * strides[s, 2]
                            at += d * strides[s, 3]
                            n = (((a * shape[1] + b) * shape[2] + c) * shape[3] + d) * shape[4]
                            value = &values[0] + n + (p * tile if values.shape[0] > tile else 0)
                            e = lows[lo, 4]
                            n = highs[hi, 4] - e
                            if strides[s, 4] == 1:
                                put(&written[0], &differ[0], &last[0], at + e, n, value + e)
                                continue
                            for e in range(lows[lo, 4], highs[hi, 4]):
                                put(&written[0], &differ[0], &last[0], at + e * strides[s, 4], 1, value + e)


def put_elements(
    uint64_t[::1] written,
    uint64_t[::1] differ,
    Bits[::1] last,
    const Bits[::1] values,
    const int64_t[::1] at,
    const uint8_t[::1] chosen,
):
    """The same for single elements, each with a value; an empty `chosen` chooses all."""
    cdef Py_ssize_t i
    cdef bint every = chosen.shape[0] == 0
    with nogil:
        for i in range(at.shape[0]):
            if every or chosen[i]:
                put(&written[0], &differ[0], &last[0], at[i], 1, &values[i])


def find_unequal(
    int64_t[::1] last,
    int64_t first,
    const int64_t[::1] at,
    const uint8_t[::1] chosen,
    const uint8_t[::1] values,
    Py_ssize_t rows,
):
    """Two positions of one program that store different bytes to one element, or None.

    last: by element, the position that stored to it last, counted from `first`; less for earlier calls.
    """
    cdef Py_ssize_t i, j, found = -1, count = at.shape[0] // rows
    cdef Py_ssize_t size = values.shape[0] // max(1, at.shape[0])
    cdef bint every = chosen.shape[0] == 0
    with nogil:
        for i in range(at.shape[0]):
            if not every and not chosen[i]:
                continue
            j = last[at[i]] - first
            last[at[i]] = first + i
            if j >= 0 and j // count == i // count:
                if memcmp(&values[j * size], &values[i * size], size) != 0:
                    found = i
                    break
    return None if found < 0 else (j, found)
