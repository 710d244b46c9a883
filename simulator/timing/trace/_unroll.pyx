"""Records of all turns of a loop from those of its body. Loops only; series.py has the rules.

Two passes over the same code: the first counts, so that the second fills arrays made to measure.
"""

from libc.stdint cimport INT64_MAX, int8_t, int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc

import numpy as np


cdef enum Early:  # what a record of a load in parts is: see `parts`
    LAST, WHOLE, MIXED


cdef struct Lanes:  # numbers of the lanes: lane i of row r has at[r * by_row + i * by_lane]
    const double* at  # NULL for none
    int64_t by_row, by_lane


cdef struct Slots:
    const int32_t* at
    int64_t count


cdef struct Body:  # a record of the body
    double occupancy, latency, amount
    int32_t instructions, line
    int32_t first_line, rest_line  # of what memory gives, and of the rest
    int32_t shared  # column of what all active programs have (see series.py); -1 for none
    int8_t pipe, channel, first, rest
    Lanes amounts, least, share, partial, slow
    int64_t rows  # that those have
    Slots reads, writes, clobbers


cdef struct Loop:
    Body* bodies
    int64_t lanes, programs
    const int64_t* active  # the program of each lane; NULL where that is its number
    double* part  # one for each lane, to work with


cdef struct Found:  # what is written, once it is known how much that is
    bint fill
    int64_t records, columns, reads, writes, clobbers  # so far
    int8_t* pipe
    int8_t* channel
    int8_t* conditional
    double* occupancy
    double* latency
    double* amount
    int32_t* column
    int32_t* instructions
    int32_t* line
    int64_t* read_start
    int64_t* write_start
    int64_t* clobber_start
    int32_t* read
    int32_t* write
    int32_t* clobber
    double* table
    int32_t first_column


cdef inline double number(const Lanes* x, int64_t row, int64_t lane) noexcept nogil:
    return x.at[row * x.by_row + lane * x.by_lane]


cdef double pairwise(const double* x, int64_t n) noexcept nogil:
    """The sum, added in numpy's order: in halves down to 128 numbers, those in eight strands."""
    cdef double strand[8]
    cdef double out
    cdef int64_t i, k, half
    if n < 8:
        out = 0.0
        for i in range(n):
            out += x[i]
        return out
    if n > 128:
        half = n // 2
        half -= half % 8
        return pairwise(x, half) + pairwise(x + half, n - half)
    for k in range(8):
        strand[k] = x[k]
    i = 8
    while i < n - n % 8:
        for k in range(8):
            strand[k] += x[i + k]
        i += 8
    out = (strand[0] + strand[1]) + (strand[2] + strand[3])
    out += (strand[4] + strand[5]) + (strand[6] + strand[7])
    while i < n:
        out += x[i]
        i += 1
    return out


cdef double average(const double* x, int64_t n) noexcept nogil:
    """Exact where the numbers are alike."""
    cdef int64_t i
    for i in range(1, n):
        if x[i] != x[0]:
            return pairwise(x, n) / n
    return x[0]


cdef inline bint alike(const Lanes* x, int64_t row, int64_t lanes) noexcept nogil:
    cdef int64_t i
    if x.by_lane == 0:
        return True
    for i in range(1, lanes):
        if number(x, row, i) != number(x, row, 0):
            return False
    return True


cdef inline int64_t append(
    bint fill, int64_t size, int32_t* items, const Slots* slots
) noexcept nogil:
    cdef int64_t i
    if fill:
        for i in range(slots.count):
            items[size + i] = slots.at[i]
    return size + slots.count


cdef void record(
    Found* out, const Body* x, double occupancy, double amount, int8_t channel, int32_t line, int32_t column,
    bint conditional, Early early,
) noexcept nogil:
    """One more record. What is early does not write the tile, it only overwrites what was there."""
    cdef int64_t n = out.records
    if out.fill:
        out.pipe[n], out.channel[n], out.conditional[n] = x.pipe, channel, conditional
        out.occupancy[n], out.amount[n], out.column[n] = occupancy, amount, column
        out.latency[n] = 0.0 if early == MIXED else x.latency
        out.instructions[n], out.line[n] = x.instructions, line
    out.records = n + 1
    out.reads = append(out.fill, out.reads, out.read, &x.reads)
    if early == LAST:
        out.writes = append(out.fill, out.writes, out.write, &x.writes)
    else:
        out.clobbers = append(out.fill, out.clobbers, out.clobber, &x.writes)
    out.clobbers = append(out.fill, out.clobbers, out.clobber, &x.clobbers)
    if out.fill:
        out.read_start[n + 1], out.write_start[n + 1] = out.reads, out.writes
        out.clobber_start[n + 1] = out.clobbers


cdef inline double* new_column(const Loop* loop, Found* out, int32_t* number) noexcept nogil:
    """A row of the table that all programs skip; NULL while only counting."""
    cdef double* row = NULL
    cdef int64_t i
    number[0] = out.first_column + <int32_t>out.columns
    if out.fill:
        row = out.table + out.columns * loop.programs
        for i in range(loop.programs):
            row[i] = -1.0
    out.columns += 1
    return row


cdef inline int64_t program(const Loop* loop, int64_t lane) noexcept nogil:
    return loop.active[lane] if loop.active else lane


cdef inline double occupancy_of(const Loop* loop, const Body* x, int64_t row, bint memory) noexcept nogil:
    """The least cycles of a transfer, to or from memory or L2: on average over its programs."""
    cdef int64_t i
    cdef const Lanes* cycles = &x.slow if memory and x.slow.at else &x.least
    if not cycles.at:
        return x.occupancy
    for i in range(loop.lanes):
        loop.part[i] = number(cycles, row, i)
    return average(loop.part, loop.lanes)


cdef void whole(
    const Loop* loop, Found* out, const Body* x, int64_t row, int8_t channel, int32_t line, bint memory
) noexcept nogil:
    """A record that all lanes have."""
    cdef double occupancy = occupancy_of(loop, x, row, memory)
    cdef int32_t column = -1
    cdef double* values
    cdef double amount
    cdef int64_t i
    if not x.amounts.at:
        amount = 0.0 if x.shared >= 0 else x.amount
        record(out, x, occupancy, amount, channel, line, x.shared, x.shared >= 0, LAST)
    elif not loop.active and alike(&x.amounts, row, loop.lanes):
        record(out, x, occupancy, number(&x.amounts, row, 0), channel, line, -1, False, LAST)
    else:
        values = new_column(loop, out, &column)
        if values:
            for i in range(loop.lanes):
                values[program(loop, i)] = number(&x.amounts, row, i)
        record(out, x, occupancy, 0.0, channel, line, column, loop.active != NULL, LAST)


cdef void some(const Loop* loop, Found* out, const Body* x, int64_t row) noexcept nogil:
    """A record of a fixed cost that not all lanes have."""
    cdef int64_t i, count = 0
    cdef int32_t column = -1
    cdef double* values
    for i in range(loop.lanes):
        count += number(&x.partial, row, i) != 0.0
    if count == 0:
        return
    if count == loop.lanes and not loop.active:
        record(out, x, x.occupancy, 0.0, x.channel, x.line, -1, False, LAST)
        return
    values = new_column(loop, out, &column)
    if values:
        for i in range(loop.lanes):
            if number(&x.partial, row, i) != 0.0:
                values[program(loop, i)] = x.occupancy
    record(out, x, x.occupancy, 0.0, x.channel, x.line, column, True, LAST)


cdef inline bint has(double share, Early part) noexcept nogil:
    """Whether a program of which memory gives that share of a load has this part of it."""
    return share == 1.0 if part == WHOLE else share < 1.0 and (part == LAST or share > 0.0)


cdef void parts(const Loop* loop, Found* out, const Body* x, int64_t row) noexcept nogil:
    """A load, from memory or from L2; where programs differ: all new, the new part of others, the rest."""
    cdef double share = number(&x.share, row, 0)
    if alike(&x.share, row, loop.lanes) and (share == 0.0 or share == 1.0):
        if share > 0.0:
            whole(loop, out, x, row, x.first, x.first_line, True)
        else:
            whole(loop, out, x, row, x.rest, x.rest_line, False)
        return
    part(loop, out, x, row, WHOLE)
    part(loop, out, x, row, MIXED)
    part(loop, out, x, row, LAST)


cdef void part(const Loop* loop, Found* out, const Body* x, int64_t row, Early kind) noexcept nogil:
    cdef int64_t i, count = 0
    cdef int8_t channel = x.rest if kind == LAST else x.first
    cdef int32_t line = x.rest_line if kind == LAST else x.first_line
    cdef int32_t column = -1
    cdef double share, occupancy, weight, amount
    cdef double* values
    for i in range(loop.lanes):
        count += has(number(&x.share, row, i), kind)
    if count == 0 and kind != LAST:
        return
    occupancy, values = occupancy_of(loop, x, row, kind != LAST), new_column(loop, out, &column)
    count = 0
    for i in range(loop.lanes):
        share = number(&x.share, row, i)
        if has(share, kind):
            weight = 1.0 - share if kind == LAST else share
            if values:
                amount = number(&x.amounts, row, i) if x.amounts.at else x.amount
                values[program(loop, i)] = amount * weight
            loop.part[count] = weight
            count += 1
    record(out, x, occupancy * average(loop.part, count), 0.0, channel, line, column, True, kind)


cdef void every(
    const Loop* loop, Found* out, const int64_t[::1] order, const int64_t[::1] rows
) noexcept nogil:
    cdef int64_t k
    cdef const Body* x
    for k in range(order.shape[0]):
        x = &loop.bodies[order[k]]
        if x.share.at:
            parts(loop, out, x, rows[k])
        elif x.partial.at:
            some(loop, out, x, rows[k])
        else:
            whole(loop, out, x, rows[k], x.channel, x.line, False)


cdef Lanes lanes_of(object numbers, int64_t lanes, int64_t* rows) except *:
    """Of a float64 array of one number, or of one for each lane of each row."""
    cdef const double[::1] view
    if numbers is None:
        return Lanes(NULL, 0, 0)
    view = numbers
    if view.shape[0] == 1:
        return Lanes(&view[0], 0, 0)
    rows[0] = min(rows[0], view.shape[0] // lanes)
    return Lanes(&view[0], lanes, 1)


cdef Slots put(tuple slots, int32_t* at, int64_t* size) except *:
    cdef Slots out = Slots(at + size[0], len(slots))
    for s in slots:
        at[size[0]] = s
        size[0] += 1
    return out


def expand(
    list bodies, int64_t slots, const int64_t[::1] order, const int64_t[::1] rows, int64_t lanes,
    int64_t programs, active, int32_t first_column,
):
    """Records of a loop: record k is that of `bodies[order[k]]` with the numbers of row `rows[k]`.

    bodies: (pipe, line, occupancy, latency, channel, amount, instructions, reads, writes, clobbers,
    channel for what memory gives, channel for the rest, their lines, shared column or -1, amounts, least,
    share, partial, slow). The last five are None or float64 arrays (see `lanes_of`), slots tuples of `slots`
    numbers in all.
    active: the program of each lane, None for all programs.

    Returns (fields by name, conditional, (start, item) of reads, writes and clobbers, rows of the table);
    columns number the rows from `first_column` on.
    """
    cdef int64_t count = len(bodies), k, size = 0
    cdef const int64_t[::1] lane_programs
    cdef Loop loop = Loop(NULL, lanes, programs, NULL, NULL)
    cdef Body* x
    cdef int32_t* items = NULL
    if active is not None:
        lane_programs = active
        loop.active = &lane_programs[0]
    loop.bodies = <Body*>calloc(max(1, count), sizeof(Body))
    loop.part = <double*>malloc(max(1, lanes) * sizeof(double))
    items = <int32_t*>malloc(max(1, slots) * sizeof(int32_t))
    try:
        if not loop.bodies or not loop.part or not items:
            raise MemoryError("no memory for the records of a loop")
        for k in range(count):
            x = &loop.bodies[k]
            given = <tuple>bodies[k]
            x.pipe, x.line, x.occupancy, x.latency = given[0], given[1], given[2], given[3]
            x.channel, x.amount, x.instructions = given[4], given[5], given[6]
            x.reads, x.writes = put(given[7], items, &size), put(given[8], items, &size)
            x.clobbers = put(given[9], items, &size)
            x.first, x.rest, x.first_line, x.rest_line = given[10], given[11], given[12], given[13]
            x.shared = given[14]
            x.rows = INT64_MAX
            x.amounts, x.least = lanes_of(given[15], lanes, &x.rows), lanes_of(given[16], lanes, &x.rows)
            x.share, x.partial = lanes_of(given[17], lanes, &x.rows), lanes_of(given[18], lanes, &x.rows)
            x.slow = lanes_of(given[19], lanes, &x.rows)
        check(&loop, count, order, rows)
        return both_passes(&loop, order, rows, first_column)
    finally:
        free(loop.bodies)
        free(loop.part)
        free(items)


cdef void check(const Loop* loop, int64_t count, const int64_t[::1] order, const int64_t[::1] rows) except *:
    cdef int64_t k
    for k in range(order.shape[0]):
        if not 0 <= order[k] < count or not 0 <= rows[k] < loop.bodies[order[k]].rows:
            raise IndexError(f"record {k} of a loop is that of body {order[k]} of {count} in row {rows[k]}")


cdef object both_passes(
    const Loop* loop, const int64_t[::1] order, const int64_t[::1] rows, int32_t first_column
):
    cdef Found out
    with nogil:
        start(&out, False, first_column)
        every(loop, &out, order, rows)
    n = out.records
    cdef int8_t[::1] pipe = np.empty(n + 1, np.int8), channel = np.empty(n + 1, np.int8)
    cdef int8_t[::1] conditional = np.empty(n + 1, np.int8)
    cdef double[:, ::1] numbers = np.empty((3, n + 1))
    cdef int32_t[:, ::1] counts = np.empty((3, n + 1), np.int32)
    cdef int64_t[:, ::1] starts = np.empty((3, n + 1), np.int64)
    cdef int32_t[::1] read = np.empty(out.reads + 1, np.int32), write = np.empty(out.writes + 1, np.int32)
    cdef int32_t[::1] clobber = np.empty(out.clobbers + 1, np.int32)
    cdef double[:, ::1] table = np.empty((out.columns + 1, loop.programs))
    starts[0, 0] = starts[1, 0] = starts[2, 0] = 0
    with nogil:
        start(&out, True, first_column)
        out.pipe, out.channel, out.conditional = &pipe[0], &channel[0], &conditional[0]
        out.occupancy, out.latency, out.amount = &numbers[0, 0], &numbers[1, 0], &numbers[2, 0]
        out.column, out.instructions, out.line = &counts[0, 0], &counts[1, 0], &counts[2, 0]
        out.read_start, out.write_start, out.clobber_start = &starts[0, 0], &starts[1, 0], &starts[2, 0]
        out.read, out.write, out.clobber = &read[0], &write[0], &clobber[0]
        out.table = &table[0, 0]
        every(loop, &out, order, rows)
    fields = {
        "pipe": pipe.base[:n], "occupancy": numbers.base[0, :n], "latency": numbers.base[1, :n],
        "channel": channel.base[:n], "amount": numbers.base[2, :n], "column": counts.base[0, :n],
        "instructions": counts.base[1, :n], "line": counts.base[2, :n],
    }
    slots = (
        (starts.base[0], read.base[:out.reads]),
        (starts.base[1], write.base[:out.writes]),
        (starts.base[2], clobber.base[:out.clobbers]),
    )
    return fields, conditional.base[:n].view(np.bool_), slots, table.base[:out.columns]


cdef inline void start(Found* out, bint fill, int32_t first_column) noexcept nogil:
    out.fill, out.first_column = fill, first_column
    out.records = out.columns = out.reads = out.writes = out.clobbers = 0
