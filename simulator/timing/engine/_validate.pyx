"""Whether the numbers of a trace keep the rules of inputs.py, which says what is wrong. Loops only."""

from libc.math cimport isfinite
from libc.stdint cimport int8_t, int32_t, int64_t


cdef bint within(const double[::1] x) noexcept nogil:
    cdef int64_t i
    for i in range(x.shape[0]):
        if not (x[i] >= 0.0 and isfinite(x[i])):
            return False
    return True


cdef bint records_sound(
    const int8_t[::1] pipe, const int8_t[::1] channel, const int32_t[::1] column,
    const int32_t[::1] instructions, const int32_t[::1] line, int64_t rows,
) noexcept nogil:
    cdef int64_t r
    for r in range(pipe.shape[0]):
        if pipe[r] < 0 or channel[r] < -4 or column[r] < -1 or column[r] >= rows:
            return False
        if instructions[r] < 0 or line[r] < 0:
            return False
    return True


cdef bint finite(const double[:, ::1] table) noexcept nogil:
    cdef int64_t i, j
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            if not isfinite(table[i, j]):
                return False
    return True


cdef bint dependencies_sound(
    const int64_t[::1] start, const int32_t[::1] dep, const int8_t[::1] kind, int kinds
) noexcept nogil:
    cdef int64_t r, i, records = start.shape[0] - 1
    if start[0] != 0 or start[records] != dep.shape[0]:
        return False
    for r in range(records):
        if start[r + 1] < start[r] or start[r + 1] > dep.shape[0]:
            return False
        for i in range(start[r], start[r + 1]):
            if not 0 <= dep[i] < r or not 0 <= kind[i] < kinds:
                return False
    return True


def sound(
    const int8_t[::1] pipe, const double[::1] occupancy, const double[::1] latency, const int8_t[::1] channel,
    const double[::1] amount, const int32_t[::1] instructions, const int32_t[::1] line,
    const int64_t[::1] dep_start, const int32_t[::1] dep, const int8_t[::1] dep_kind,
    const int32_t[::1] column, const double[:, ::1] table, int kinds,
):
    """Arrays as a trace has them, whose lengths fit each other; kinds: kinds of a dependency, from 0."""
    cdef bint good
    with nogil:
        good = (
            within(occupancy) and within(latency) and within(amount)
            and records_sound(pipe, channel, column, instructions, line, table.shape[0])
            and finite(table) and dependencies_sound(dep_start, dep, dep_kind, kinds)
        )
    return good
