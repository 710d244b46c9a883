"""Elements of a tensor that are stored to twice: by any stores, or by one. Loops only."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp


cdef inline bint mark(uint64_t* bits, int64_t first, int64_t count) noexcept nogil:
    """Set `count` bits from `first`; tells whether one of them was set."""
    cdef int64_t word = first >> 6, room
    cdef int shift = first & 63
    cdef uint64_t mask
    cdef bint met = False
    while count > 0:
        room = 64 - shift
        if count >= room:
            mask = (~<uint64_t> 0) << shift
        else:
            mask = (((<uint64_t> 1) << count) - 1) << shift
        met |= (bits[word] & mask) != 0
        bits[word] |= mask
        count -= room
        word += 1
        shift = 0
    return met


def mark_boxes(
    uint64_t[::1] bits,
    const int64_t[::1] starts,
    const int64_t[:, ::1] strides,
    const int64_t[:, ::1] lows,
    const int64_t[:, ::1] highs,
):
    """Mark the box of every program; tells whether an element was marked before. Boxes lie inside."""
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
                                met |= mark(&bits[0], at, n)
                            else:
                                for i in range(n):
                                    met |= mark(&bits[0], at + i * strides[s, 4], 1)
    return met


def mark_elements(uint64_t[::1] bits, const int64_t[::1] at, const uint8_t[::1] chosen):
    """The same for single elements; an empty `chosen` chooses all."""
    cdef Py_ssize_t i
    cdef bint every = chosen.shape[0] == 0, met = False
    with nogil:
        for i in range(at.shape[0]):
            if every or chosen[i]:
                met |= mark(&bits[0], at[i], 1)
    return met


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
