"""Accesses as rows of elements, and what they find in a map of memory. Loops only; touched.py, unwritten.py
and overwritten.py have the rules.

A row is (lane, first window index, step, count). A map has an entry for each unit of memory; `shift` is the
unit of window index 0, `scale` the units of an element.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memchr, memset


def box_rows(
    const int64_t[::1] starts,
    const int64_t[:, ::1] strides,
    const int64_t[:, ::1] lows,
    const int64_t[:, ::1] highs,
    int64_t[:, ::1] out,
):
    """The rows along the last axis of the box of every lane; gives how many. `out` has room for them."""
    cdef Py_ssize_t p, s, lo, hi, n = 0
    cdef int64_t a, b, c, d, wide
    with nogil:
        for p in range(starts.shape[0]):
            s = p if strides.shape[0] > 1 else 0
            lo = p if lows.shape[0] > 1 else 0
            hi = p if highs.shape[0] > 1 else 0
            wide = highs[hi, 4] - lows[lo, 4]
            if wide <= 0:
                continue
            for a in range(lows[lo, 0], highs[hi, 0]):
                for b in range(lows[lo, 1], highs[hi, 1]):
                    for c in range(lows[lo, 2], highs[hi, 2]):
                        for d in range(lows[lo, 3], highs[hi, 3]):
                            out[n, 0] = p
                            out[n, 1] = (
                                starts[p] + a * strides[s, 0] + b * strides[s, 1] + c * strides[s, 2]
                                + d * strides[s, 3] + lows[lo, 4] * strides[s, 4]
                            )
                            out[n, 2] = strides[s, 4]
                            out[n, 3] = wide
                            n += 1
    return n


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


def first_set(const uint8_t[::1] marks, const int64_t[:, ::1] rows, int64_t shift, int64_t scale):
    """Lane and window index of the first element with a mark; None if there is none."""
    cdef Py_ssize_t r
    cdef int64_t k, at, lane = -1, found = 0
    with nogil:
        for r in range(rows.shape[0]):
            at = shift + rows[r, 1] * scale
            if rows[r, 2] == 1 and memchr(&marks[at], 1, rows[r, 3] * scale) == NULL:
                continue
            for k in range(rows[r, 3]):
                at = rows[r, 1] + k * rows[r, 2]
                if marks[shift + at * scale]:
                    lane, found = rows[r, 0], at
                    break
            if lane >= 0:
                break
    return None if lane < 0 else (lane, found)


ctypedef fused Mark:
    uint8_t
    uint32_t


def clear(Mark[::1] marks, const int64_t[:, ::1] rows, int64_t shift, int64_t scale):
    """Take the marks of elements away."""
    cdef Py_ssize_t r
    cdef int64_t k, i, at
    with nogil:
        for r in range(rows.shape[0]):
            at = shift + rows[r, 1] * scale
            if rows[r, 2] == 1:
                memset(&marks[at], 0, rows[r, 3] * scale * sizeof(Mark))
                continue
            for k in range(rows[r, 3]):
                for i in range(scale):
                    marks[at + k * rows[r, 2] * scale + i] = 0


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
    const int64_t[:, ::1] rows,
    int64_t shift,
    int64_t scale,
    uint32_t first,
    const int64_t[::1] programs,
    uint32_t[:, ::1] counts,
):
    """Store number `first` + lane becomes the last one of each unit. programs: of each store. counts: units
    it wrote, units that the same program stored to again with nobody reading between, and the store that did.
    """
    cdef Py_ssize_t r
    cdef int64_t k, at
    cdef Store s
    with nogil:
        for r in range(rows.shape[0]):
            s.me, s.first, s.written = first + <uint32_t> rows[r, 0], first, 0
            at = shift + rows[r, 1] * scale
            if rows[r, 2] == 1:
                store_units(&last[at], rows[r, 3] * scale, &s, &programs[0], counts)
            else:
                for k in range(rows[r, 3]):
                    store_units(&last[at + k * rows[r, 2] * scale], scale, &s, &programs[0], counts)
            counts[s.me, 0] += s.written
