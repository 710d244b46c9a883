"""How long each value of a program is in its slot, by the records of the timeline.

Loops only; occupancy.py has the rules.
"""

from libc.stdint cimport int8_t, int32_t, int64_t
from libc.stdlib cimport calloc, free

cdef int64_t PARTS = 2  # records before the one that writes a tile that may bring parts of it


cdef struct Value:  # what is in a slot now
    bint filled, read
    double since, until
    int64_t read_at  # row that read it last
    int64_t part, part_pipe  # transfer that may have brought a part of the next one, -1 for none, ...
    double part_since


cdef struct Out:
    int32_t* slot
    double* start
    double* end
    int64_t count


cdef inline bint among(const int32_t[::1] items, int64_t first, int64_t last, int32_t wanted) noexcept nogil:
    cdef int64_t i
    for i in range(first, last):
        if items[i] == wanted:
            return True
    return False


cdef inline void emit(Out* out, int32_t slot, const Value* value) noexcept nogil:
    out.slot[out.count], out.start[out.count], out.end[out.count] = slot, value.since, value.until
    out.count += 1


cdef inline void write(
    Out* out, Value* values, const int8_t[::1] sized, int32_t slot, int64_t row, int64_t record, int64_t pipe,
    double start, double end,
) noexcept nogil:
    """A record fills a slot; a value that nobody has read since it was written, or that it reads, goes on."""
    cdef Value* value = &values[slot]
    cdef bint goes_on
    if not sized[slot]:
        return
    if value.filled and (value.read_at == row or not value.read):
        value.until, value.read = max(value.until, end), False
        return
    if value.filled:
        emit(out, slot, value)
    goes_on = value.part >= record - PARTS and value.part >= 0 and value.part_pipe == pipe
    value.since = value.part_since if goes_on else start
    value.until, value.read, value.filled, value.read_at = end, False, True, -1


cdef void every_row(
    Out* out, Value* values, const int8_t[::1] sized, const int32_t[::1] records, const int32_t[::1] pipes,
    const double[::1] starts, const double[::1] ends, const int8_t[::1] moves, const int8_t[::1] pipe_of,
    const int64_t[::1] first, const int32_t[::1] slots,
) noexcept nogil:
    cdef int64_t row, i, k, r, after
    cdef int64_t rows = records.shape[0], known = pipe_of.shape[0]
    cdef Value* value
    for row in range(rows):
        r = records[row]
        for i in range(first[3 * r], first[3 * r + 1]):
            value = &values[slots[i]]
            if value.filled:
                value.until, value.read, value.read_at = max(value.until, ends[row]), True, row
        for i in range(first[3 * r + 1], first[3 * r + 2]):
            write(out, values, sized, slots[i], row, r, pipes[row], starts[row], ends[row])
        if not moves[row]:
            continue
        after = row + 1
        for k in range(r + 1, min(r + 1 + PARTS, known)):  # that would write the tile, and are skipped
            while after < rows and records[after] < k:
                after += 1
            if (after < rows and records[after] == k) or pipe_of[k] != pipes[row]:
                continue
            for i in range(first[3 * k + 1], first[3 * k + 2]):
                if among(slots, first[3 * r + 2], first[3 * r + 3], slots[i]):
                    write(out, values, sized, slots[i], row, r, pipes[row], starts[row], ends[row])
        for i in range(first[3 * r + 2], first[3 * r + 3]):
            value = &values[slots[i]]
            value.part, value.part_pipe, value.part_since = r, pipes[row], starts[row]


def lives(
    const int8_t[::1] sized, const int32_t[::1] records, const int32_t[::1] pipes, const double[::1] starts,
    const double[::1] ends, const int8_t[::1] moves, const int8_t[::1] pipe_of,
    const int64_t[::1] first, const int32_t[::1] slots, int32_t[::1] slot, double[::1] start, double[::1] end,
):
    """Fill slot, start and end of each value of one program; gives their number.

    sized: per slot whether it has bytes. records: the program's rows of the timeline, ascending, all known to
    the lists; moves: whether they are transfers. pipe_of: pipe of each record that the lists know. first, slots: as of
    `unroll` in engine/_code.pyx. The last three arrays need three places for each entry of `slots` and one for each slot.
    """
    cdef int64_t count = sized.shape[0], s
    cdef Value* values = <Value*>calloc(max(1, count), sizeof(Value))
    cdef Out out = Out(&slot[0], &start[0], &end[0], 0)
    if not values:
        raise MemoryError("no memory for the values in the buffers")
    with nogil:
        for s in range(count):
            values[s].part = values[s].read_at = -1
        every_row(&out, values, sized, records, pipes, starts, ends, moves, pipe_of, first, slots)
        for s in range(count):
            if values[s].filled:
                emit(&out, <int32_t>s, &values[s])
    free(values)
    return out.count
