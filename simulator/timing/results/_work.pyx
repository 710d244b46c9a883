"""What programs ask for, added up over all records of their trace.

Loops only; bounds.py and rooflines.py have the rules.
"""

from libc.stdint cimport int64_t

from ascendtile.simulator.timing.engine._state cimport Record


cdef void add_instruction(
    const Record* x, double times, int64_t rows, const double* table, const double* cycles, double rate,
    bint floor, double* out, int64_t programs,
) noexcept nogil:
    cdef int64_t row, p
    cdef double least = 0.0, alike = 0.0, each
    for row in range(rows):
        if floor:
            least = x.occupancy if x.cycles < 0 else cycles[x.cycles + row]
        if x.column < 0:
            alike += max(least, x.amount / rate) if x.channel >= 0 else least
            continue
        if x.channel < 0:
            least = 0.0
        for p in range(programs):
            each = table[(x.column + row) * programs + p]
            if each >= 0.0:  # else the program skips the record
                out[p] += times * max(least, each / rate)
    for p in range(programs):
        out[p] += times * alike


def add_work(
    const Record[::1] instructions, const int64_t[::1] counts, const int64_t[::1] rows,
    const double[:, ::1] table, const double[::1] cycles, const int64_t[::1] place,
    const double[::1] rate, bint floor, double[:, ::1] out,
):
    """Add to row place[i] of `out`, [places, programs], what each program asks of instruction i.

    place: below 0 leaves an instruction out. rate: 1 where it is no transfer.

    It is a transfer's bytes over its rate, or its occupancy if that is more and `floor` is set, and the
    occupancy of all others. Each of the rows of an instruction is met equally often.
    """
    cdef int64_t i, n, programs = out.shape[1]
    cdef const double* values = &table[0, 0] if table.shape[0] else NULL
    cdef const double* occupancies = &cycles[0] if cycles.shape[0] else NULL
    with nogil:
        for i in range(instructions.shape[0]):
            if place[i] < 0 or not counts[i]:
                continue
            n = rows[i] if instructions[i].column >= 0 or instructions[i].cycles >= 0 else 1
            add_instruction(
                &instructions[i], <double>counts[i] / n, n, values, occupancies, rate[i], floor,
                &out[place[i], 0], programs,
            )
