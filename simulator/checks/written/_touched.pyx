"""What accesses find in a map of memory. Loops only; unwritten.py and overwritten.py have the rules.

A map has an entry for each unit of memory; `shift` is the unit of window index 0, `scale` the units of an
element.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memchr, memset

from ascendtile.simulator.checks.memory._runs cimport Runs, Walk, next_run


cdef inline bint all_zero(const uint32_t* at, int64_t n) noexcept nogil:
    cdef uint32_t seen = 0
    cdef int64_t k
    for k in range(n):
        seen |= at[k]
    return seen == 0


def holds(const uint32_t[::1] memory, uint32_t pattern):
    """Whether some word of the memory is the pattern."""
    cdef int64_t k, first, end, n = memory.shape[0]
    cdef int found = 0
    with nogil:
        for first in range(0, n, 4096):  # a block without a way out of it is compared many words at once
            end = min(first + 4096, n)
            for k in range(first, end):
                found |= memory[k] == pattern
            if found:
                break
    return bool(found)


def first_set(const uint8_t[::1] marks, int64_t shift, int64_t scale, Runs runs):
    """Lane and window index of the first element with a mark; None if there is none."""
    cdef Py_ssize_t lane
    cdef const uint8_t* found = NULL
    cdef Walk w
    with nogil:
        for lane in range(runs.lanes):
            runs.begin(lane, &w)
            while found == NULL and next_run(&w):
                found = <const uint8_t*> memchr(&marks[shift + w.at * scale], 1, w.count * scale)
            if found != NULL:
                break
    return None if found == NULL else (lane, (found - &marks[0] - shift) // scale)


ctypedef fused Mark:
    uint8_t
    uint32_t


def clear(Mark[::1] marks, int64_t shift, int64_t scale, Runs runs):
    """Take the marks of elements away."""
    cdef Py_ssize_t lane
    cdef Walk w
    with nogil:
        for lane in range(runs.lanes):
            runs.begin(lane, &w)
            while next_run(&w):
                memset(&marks[shift + w.at * scale], 0, w.count * scale * sizeof(Mark))


cdef struct Store:
    uint32_t me  # its number
    uint32_t first  # of the stores that are carried out together
    uint32_t written


cdef inline void store_units(
    uint32_t* last, int64_t n, Store* s, const int64_t* programs, uint32_t[:, ::1] counts
) noexcept nogil:
    """Units that lie behind each other."""
    cdef int64_t k
    cdef uint32_t before
    if n > 1 and all_zero(last, n):
        for k in range(n):
            last[k] = s.me
        s.written += <uint32_t> n
        return
    for k in range(n):
        before = last[k]
        if before == s.me:
            continue
        if 0 < before < s.first and programs[before] == programs[s.me]:
            counts[before, 1] += 1
            counts[before, 2] = s.me
        last[k] = s.me
        s.written += 1


def store(
    uint32_t[::1] last,
    int64_t shift,
    int64_t scale,
    Runs runs,
    uint32_t first,
    const int64_t[::1] programs,
    uint32_t[:, ::1] counts,
):
    """Store number `first` + lane becomes the last one of each unit. programs: of each store. counts: units
    it wrote, units that the same program stored to again with nobody reading between, and the store that did.
    """
    cdef Py_ssize_t lane
    cdef Store s
    cdef Walk w
    with nogil:
        for lane in range(runs.lanes):
            s.me, s.first, s.written = first + <uint32_t> lane, first, 0
            runs.begin(lane, &w)
            while next_run(&w):
                store_units(&last[shift + w.at * scale], w.count * scale, &s, &programs[0], counts)
            counts[s.me, 0] += s.written
