"""Packs the columns of a trace into rows: the loop reads a whole record at once, and records out of order."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint16_t

from ascendtile.simulator.timing.engine._state cimport Record


def pack(
    const int8_t[::1] pipe, const double[::1] occupancy, const double[::1] latency, const int8_t[::1] channel,
    const double[::1] amount, const int32_t[::1] column, const int32_t[::1] instructions,
    const int32_t[::1] line, const int64_t[::1] dep_start, const int32_t[::1] dep, const int8_t[::1] dep_kind,
    const int8_t[::1] skippable, uint16_t[::1] waited, Record[::1] records, int32_t[::1] deps,
    int64_t dep_first,
):
    """Fill `records` and, from `dep_first` on, `deps`: records back << 3 | crosses pipes << 2 | kind.

    A dependency is left out if a record before on the same pipe, which no program skips, has waited for the
    same: the pipe is not free earlier. skippable: by row of the table, whether a program skips its records.
    waited: zeros, one for each record. Returns how far back the remaining dependencies go.
    """
    cdef int64_t r, i, next = dep_first, reach = 0
    cdef int32_t q, mine
    with nogil:
        for r in range(records.shape[0]):
            records[r].occupancy = occupancy[r]
            records[r].latency = latency[r]
            records[r].amount = amount[r]
            records[r].dep_first = <int32_t>next
            records[r].column = column[r]
            records[r].instructions = instructions[r]
            records[r].line = line[r]
            records[r].pipe = pipe[r]
            records[r].channel = channel[r]
            mine = 1 << pipe[r]
            for i in range(dep_start[r], dep_start[r + 1]):
                q = dep[i]
                if waited[q] & mine:
                    continue
                if column[r] < 0 or not skippable[column[r]]:
                    waited[q] |= mine
                deps[next] = <int32_t>(r - q) << 3 | (pipe[q] != pipe[r]) << 2 | dep_kind[i]
                next += 1
                reach = max(reach, r - q)
            records[r].dep_count = <int32_t>(next - records[r].dep_first)
    return reach
