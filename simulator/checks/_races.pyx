"""Elements of a tensor that are stored to twice: by any stores, or by one. Loops only."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp

from ascendtile.simulator.checks.memory._runs cimport Runs, Walk, next_run


cdef inline bint mark(uint64_t* bits, int64_t first, int64_t count) noexcept nogil:
    """Set `count` bits from `first`; tells whether one of them was set."""
    cdef int64_t n
    cdef uint64_t mask, met = 0
    if count == 1:  # without the loop
        mask = (<uint64_t> 1) << (first & 63)
        met = bits[first >> 6] & mask
        bits[first >> 6] |= mask
        return met != 0
    while count > 0:
        n = min(count, 64 - (first & 63))  # as many as lie in one word
        mask = (~<uint64_t> 0) >> (64 - n) << (first & 63)
        met |= bits[first >> 6] & mask
        bits[first >> 6] |= mask
        count -= n
        first += n
    return met != 0


def mark_all(uint64_t[::1] bits, Runs runs):
    """Mark the elements of an access; tells whether one was marked before."""
    cdef Py_ssize_t lane
    cdef Walk w
    cdef bint met = False
    with nogil:
        for lane in range(runs.lanes):
            runs.begin(lane, &w)
            while next_run(&w):
                met |= mark(&bits[0], w.at, w.count)
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
