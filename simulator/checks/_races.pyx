"""Elements of a tensor that are stored to twice, with the same value or another one. Loops only."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp

from ascendtile.simulator.checks.memory._runs cimport Runs, Walk, next_run


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


cdef inline bint mark_lane(uint64_t* bits, How how, Runs runs, Py_ssize_t lane) noexcept nogil:
    cdef Walk w
    cdef bint met = False
    runs.begin(lane, &w)
    while next_run(&w):
        met |= mark(bits, w.at, w.count, how)
    return met


def mark_all(uint64_t[::1] bits, int how, Runs runs):
    """Look at the marks of the elements of an access, set or clear them; tells whether one was marked, by a
    lane before, too. Always on: so single elements, of which there are many, go without the walk.
    """
    cdef Py_ssize_t lane, k
    cdef bint met = False, every = runs.boxes or runs.chosen.shape[0] == 0
    with nogil:
        for k in range(0 if runs.boxes else runs.at.shape[0]):
            if every or runs.chosen[k]:
                met |= mark(&bits[0], runs.at[k], 1, <How> how)
        for lane in range(runs.lanes if runs.boxes else 0):
            met |= mark_lane(&bits[0], <How> how, runs, lane)
    return met


def mark_lanes(uint64_t[::1] bits, Runs runs, const int64_t[::1] lanes):
    """Mark the elements of some lanes of an access."""
    cdef Py_ssize_t k
    with nogil:
        for k in range(lanes.shape[0]):
            mark_lane(&bits[0], SET, runs, lanes[k])


def touches(Runs runs, Py_ssize_t lane, int64_t at):
    """Whether a lane of an access touches the element with that window index."""
    cdef Walk w
    cdef bint met = False
    with nogil:
        runs.begin(lane, &w)
        while not met and next_run(&w):
            met = w.at <= at < w.at + w.count
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


def put_all(
    uint64_t[::1] written, uint64_t[::1] differ, Bits[::1] last, const Bits[::1] values, Runs runs, Runs tiles
):
    """Compare what an access stores with what the elements were given first, and mark those that get another
    value. tiles: the same elements in `values`, in the same order; their rows are no shorter.
    """
    cdef Py_ssize_t lane
    cdef int64_t at, left
    cdef Walk w, v
    with nogil:
        for lane in range(runs.lanes):
            runs.begin(lane, &w)
            tiles.begin(lane, &v)
            at = left = 0
            while next_run(&w):
                if left == 0:
                    next_run(&v)
                    at, left = v.at, v.count
                put(&written[0], &differ[0], &last[0], w.at, w.count, &values[at])
                at += w.count
                left -= w.count


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
