"""Accesses as rows of elements, and what they find in a map of memory. Loops only; touched.py, unwritten.py
and overwritten.py have the rules.

A row is (lane, first window index, step, count). A map has an entry for each unit of memory; `shift` is the
unit of window index 0, `scale` the units of an element.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t


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


def first_set(const uint8_t[::1] marks, const int64_t[:, ::1] rows, int64_t shift, int64_t scale):
    """Lane and window index of the first element with a mark; None if there is none."""
    cdef Py_ssize_t r
    cdef int64_t k, at, lane = -1, found = 0
    with nogil:
        for r in range(rows.shape[0]):
            for k in range(rows[r, 3]):
                at = rows[r, 1] + k * rows[r, 2]
                if marks[shift + at * scale]:
                    lane, found = rows[r, 0], at
                    break
            if lane >= 0:
                break
    return None if lane < 0 else (lane, found)


def clear(uint8_t[::1] marks, const int64_t[:, ::1] rows, int64_t shift, int64_t scale):
    """Take the marks of elements away."""
    cdef Py_ssize_t r
    cdef int64_t k, i, at
    with nogil:
        for r in range(rows.shape[0]):
            for k in range(rows[r, 3]):
                at = shift + (rows[r, 1] + k * rows[r, 2]) * scale
                for i in range(scale):
                    marks[at + i] = 0


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
    cdef int64_t k, i, at, wrote
    cdef uint32_t me, before
    with nogil:
        for r in range(rows.shape[0]):
            me = first + <uint32_t> rows[r, 0]
            wrote = 0
            for k in range(rows[r, 3]):
                at = shift + (rows[r, 1] + k * rows[r, 2]) * scale
                for i in range(scale):
                    before = last[at + i]
                    if before == me:
                        continue
                    last[at + i] = me
                    wrote += 1
                    if 0 < before < first and programs[before] == programs[me]:
                        counts[before, 1] += 1
                        counts[before, 2] = me
            counts[me, 0] += <uint32_t> wrote


def read(uint32_t[::1] last, const int64_t[:, ::1] rows, int64_t shift, int64_t scale):
    """What was stored last was of use."""
    cdef Py_ssize_t r
    cdef int64_t k, i, at
    with nogil:
        for r in range(rows.shape[0]):
            for k in range(rows[r, 3]):
                at = shift + (rows[r, 1] + k * rows[r, 2]) * scale
                for i in range(scale):
                    last[at + i] = 0
