"""Elements of a tensor that are stored to twice: by any stores, or by one. Loops only."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp

from ascendtile.simulator.checks.memory._runs cimport Runs, Walk, next_run


cdef inline uint64_t mark(uint64_t* bits, int64_t first, int64_t count) noexcept nogil:
    """Set `count` bits from `first`; gives 0 if none of them was set."""
    cdef int64_t n
    cdef uint64_t mask, met = 0
    while count > 0:
        n = min(count, 64 - (first & 63))  # as many as lie in one word
        mask = (~<uint64_t> 0) >> (64 - n) << (first & 63)
        met |= bits[first >> 6] & mask
        bits[first >> 6] |= mask
        count -= n
        first += n
    return met


def mark_all(uint64_t[::1] bits, Runs runs):
    """Mark the elements of an access; tells whether one was marked before. Always on: so single elements, of
    which there are many, go without the walk.
    """
    cdef Py_ssize_t lane, k
    cdef Walk w
    cdef uint64_t met = 0
    cdef bint every = runs.boxes or runs.chosen.shape[0] == 0
    with nogil:
        for k in range(0 if runs.boxes else runs.at.shape[0]):
            if every or runs.chosen[k]:
                met |= mark(&bits[0], runs.at[k], 1)
        for lane in range(runs.lanes if runs.boxes else 0):
            runs.begin(lane, &w)
            while next_run(&w):
                met |= mark(&bits[0], w.at, w.count)
    return met != 0


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
