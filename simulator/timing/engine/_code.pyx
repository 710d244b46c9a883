"""All traces of a launch, and what a program's records are without their times; the contract is _code.pxd."""

from libc.stdint cimport int8_t, int32_t, int64_t
from libc.stdlib cimport calloc, free

import numpy as np

from ascendtile.simulator.timing.engine._state cimport (
    Arrays, Decoder, Frame, GainRow, LoopRow, ProgramRow, Record, RotatingRow, TraceRow, Traces,
)


cdef int64_t max_used(const Record[::1] records):
    """The most slots that one of them reads and writes."""
    cdef int64_t r, most = 0
    for r in range(records.shape[0]):
        most = max(most, records[r].reads + records[r].writes)
    return most


cdef void find_pipes(const Record[::1] records, Traces* all) noexcept nogil:
    """Those between the first and the last one that records are on."""
    cdef int64_t r
    cdef int last = 0
    all.first_pipe = 127
    for r in range(records.shape[0]):
        all.first_pipe = min(all.first_pipe, records[r].pipe)
        last = max(last, records[r].pipe)
    all.pipes = last - all.first_pipe + 1


cdef class Code:
    """Traces one behind the other, as layout.py has them. No array may be empty.

    depth, counters, slots: the most of any trace.
    """

    def __init__(
        self, const TraceRow[::1] traces, const ProgramRow[::1] programs, const Record[::1] records,
        const int32_t[::1] code, const LoopRow[::1] loops, const GainRow[::1] gains,
        const int32_t[::1] slots, const int64_t[::1] strides, const RotatingRow[::1] rotating,
        const int64_t[::1] choices, const int32_t[::1] items, const double[::1] cycles,
        const int8_t[::1] flags, const double[::1] table, int64_t depth, int64_t counters, int64_t slot_count,
    ):
        self.arrays = (
            traces, programs, records, code, loops, gains, slots, strides, rotating, choices, items, cycles,
            flags, table,
        )
        self.all = Traces(
            Arrays(
                &records[0], &code[0], &loops[0], &gains[0], &slots[0], &strides[0], &rotating[0],
                &choices[0], &items[0], &cycles[0], &flags[0], &table[0],
            ),
            &traces[0], &programs[0], programs.shape[0], depth, counters, slot_count, max_used(records), 0, 0,
        )
        find_pipes(records, &self.all)


cdef bint make_decoder(const Traces* traces, Decoder* d) except False:
    """Room for its state; the caller frees it."""
    d.frames = <Frame*>calloc(traces.depth + 1, sizeof(Frame))
    d.counts = <int64_t*>calloc(traces.counters + 1, sizeof(int64_t))
    if not d.frames or not d.counts:
        raise MemoryError("no memory for the loops of a trace")
    return True


cdef void free_decoder(Decoder* d) noexcept nogil:
    free(d.frames)
    free(d.counts)


cdef void open_program(const Traces* traces, Decoder* d, int64_t program) noexcept nogil:
    """Begin with the program's trace. All counts are zero: leaving a loop takes back what it added."""
    cdef const ProgramRow* mine = traces.programs + program
    cdef const TraceRow* x = traces.traces + mine.trace
    cdef const Arrays* a = &traces.arrays
    d.trace = Arrays(
        a.records + x.records, a.code + x.code, a.loops + x.loops, a.gains + x.gains, a.slots + x.slots,
        a.strides + x.strides, a.rotating + x.rotating, a.choices + x.choices, a.items + x.items,
        a.cycles + x.cycles, a.flags + x.flags, a.table + mine.first,
    )
    d.step = mine.step
    d.place, d.end, d.depth = 0, x.length, 0


cdef struct Found:  # what is written, once it is known how much that is
    int32_t* instruction
    int8_t* skipped
    int64_t* start
    int32_t* slot
    int64_t records, lists, slots


cdef void note_slots(const Decoder* d, const int32_t* slots, int count, Found* out) noexcept nogil:
    cdef const int32_t* found
    cdef int64_t size, k
    cdef int i
    for i in range(count):
        found, size = &slots[i], 1
        if slots[i] < 0:
            found = choice(d, slots[i], &size)
        for k in range(size):
            if out.slot:
                out.slot[out.slots + k] = found[k]
        out.slots += size
    out.lists += 1
    if out.start:
        out.start[out.lists] = out.slots


cdef void note_record(const Decoder* d, int64_t number, Found* out) noexcept nogil:
    cdef const Record* x = executed(d, number)
    cdef const int32_t* slots = d.trace.slots + x.slot
    note_slots(d, slots, x.reads, out)
    note_slots(d, slots + x.reads, x.writes, out)
    note_slots(d, slots + x.reads + x.writes, x.clobbers, out)
    if out.instruction:
        out.instruction[out.records] = <int32_t>(x - d.trace.records)
        out.skipped[out.records] = is_skipped(d, x)
    out.records += 1


cdef void every_record(Decoder* d, int64_t limit, Found* out) noexcept nogil:
    cdef int64_t number
    while out.records < limit:
        number = next_instruction(d)
        if number < 0:
            return
        note_record(d, number, out)


def unroll(Code code, int64_t program, int64_t limit):
    """The first records of a program, those that it skips among them.

    Returns (instruction of each, whether it is skipped, start, slots): record r reads (k is 0), writes and
    clobbers slots[start[3 * r + k]:start[3 * r + k + 1]].
    """
    cdef Decoder d
    cdef Found out = Found(NULL, NULL, NULL, NULL, 0, 0, 0)
    if not 0 <= program < code.all.count:
        raise IndexError(f"program {program} of {code.all.count}")
    make_decoder(&code.all, &d)
    open_program(&code.all, &d, program)
    every_record(&d, limit, &out)
    free_decoder(&d)
    cdef int32_t[::1] instruction = np.zeros(out.records + 1, np.int32)
    cdef int32_t[::1] slot = np.zeros(out.slots + 1, np.int32)
    cdef int8_t[::1] skipped = np.zeros(out.records + 1, np.int8)
    cdef int64_t[::1] start = np.zeros(3 * out.records + 1, np.int64)
    limit = out.records
    out = Found(&instruction[0], &skipped[0], &start[0], &slot[0], 0, 0, 0)
    make_decoder(&code.all, &d)
    open_program(&code.all, &d, program)
    every_record(&d, limit, &out)
    free_decoder(&d)
    records, slots = out.records, out.slots
    return (
        instruction.base[:records], skipped.base[:records].view(np.bool_), start.base, slot.base[:slots],
    )
