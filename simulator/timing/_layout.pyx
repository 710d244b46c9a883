"""Packs the columns of a trace into rows: the loop reads a whole record at once, and records out of order."""

from libc.stdint cimport int8_t, int32_t, int64_t

from ascendtile.simulator.timing._core cimport Record


def pack(
    const int8_t[::1] pipe, const double[::1] occupancy, const double[::1] latency, const int8_t[::1] channel,
    const double[::1] amount, const int32_t[::1] column, const int32_t[::1] instructions,
    const int32_t[::1] line, const int64_t[::1] dep_start, const int32_t[::1] dep, const int8_t[::1] dep_kind,
    Record[::1] records, int32_t[::1] deps, int64_t dep_first,
):
    """Fill `records` and, from `dep_first` on, `deps`: record << 2 | crosses pipes << 1 | kind."""
    cdef int64_t r, i
    cdef int32_t crosses
    with nogil:
        for r in range(records.shape[0]):
            records[r].occupancy = occupancy[r]
            records[r].latency = latency[r]
            records[r].amount = amount[r]
            records[r].dep_first = <int32_t>(dep_first + dep_start[r])
            records[r].dep_count = <int32_t>(dep_start[r + 1] - dep_start[r])
            records[r].column = column[r]
            records[r].instructions = instructions[r]
            records[r].line = line[r]
            records[r].pipe = pipe[r]
            records[r].channel = channel[r]
            for i in range(dep_start[r], dep_start[r + 1]):
                crosses = pipe[dep[i]] != pipe[r]
                deps[dep_first + i] = dep[i] << 2 | crosses << 1 | dep_kind[i]
