"""The tree of a trace as code: which instruction comes next, in which rows its numbers are, and its slots.

A number of the code is an instruction, or -1 - k: loop k, whose body is code elsewhere.
"""

from libc.stdint cimport int32_t, int64_t

from ascendtile.simulator.timing.engine._state cimport (
    Decoder, Frame, GainRow, LoopRow, Record, RotatingRow, Traces,
)


cdef class Code:
    cdef Traces all
    cdef object arrays


cdef bint make_decoder(const Traces* traces, Decoder* d) except False
cdef void free_decoder(Decoder* d) noexcept nogil
cdef void open_program(const Traces* traces, Decoder* d, int64_t program) noexcept nogil


cdef inline void count(Decoder* d, const LoopRow* loop, int64_t times) noexcept nogil:
    """Counts go on by so many iterations."""
    cdef const GainRow* gain = d.trace.gains + loop.gain
    cdef int32_t i
    for i in range(loop.gains):
        d.counts[gain[i].counter] += times * gain[i].by


cdef inline void enter(Decoder* d, const LoopRow* loop) noexcept nogil:
    d.frames[d.depth] = Frame(loop, 0, d.place, d.end)
    d.depth += 1
    d.place, d.end = loop.first, loop.end


cdef inline void iterate(Decoder* d) noexcept nogil:
    """At the end of a body: the next iteration, or what comes after the loop."""
    cdef Frame* frame = &d.frames[d.depth - 1]
    frame.iteration += 1
    if frame.iteration < frame.loop.trip_count:
        count(d, frame.loop, 1)
        d.place = frame.loop.first
        return
    count(d, frame.loop, 1 - frame.loop.trip_count)
    d.place, d.end = frame.after, frame.end
    d.depth -= 1


cdef inline int64_t next_instruction(Decoder* d) noexcept nogil:
    """The number of the next one; -1 at the end."""
    cdef int32_t code
    while True:
        if d.place == d.end:
            if d.depth == 0:
                return -1
            iterate(d)
            continue
        code = d.trace.code[d.place]
        d.place += 1
        if code >= 0:
            return code
        enter(d, &d.trace.loops[-1 - code])


cdef inline int64_t row_of(const Decoder* d, const Record* x) noexcept nogil:
    """How many rows after the first one its numbers are in these iterations."""
    cdef const int64_t* stride = d.trace.strides + x.stride
    cdef int64_t row = 0
    cdef int k
    for k in range(x.depth):
        row += stride[k] * d.frames[d.depth - 1 - k].iteration
    return row


cdef extern from *:
    """
    #define fetch_early(x) __builtin_prefetch(x)
    """
    void fetch_early(const double* x) nogil


cdef inline double value_of(const Decoder* d, const Record* x, int64_t row) noexcept nogil:
    """The number in that row for the program. The next row is prefetched: all cores need it soon."""
    cdef const double* value = d.trace.table + (x.column + row) * d.step
    if x.depth:
        fetch_early(value + d.trace.strides[x.stride] * d.step)
    return value[0]


cdef inline bint is_skipped(const Decoder* d, const Record* x) noexcept nogil:
    return x.column >= 0 and value_of(d, x, row_of(d, x)) < 0


cdef inline const Record* executed(const Decoder* d, int64_t number) noexcept nogil:
    """The instruction, or the one that the program executes in its place. No branch: it is unpredictable."""
    cdef const Record* x = &d.trace.records[number]
    return x + x.other * is_skipped(d, x) if x.other else x


cdef inline const int32_t* choice(const Decoder* d, int32_t slot, int64_t* size) noexcept nogil:
    """The slots that a rotating one stands for now."""
    cdef const RotatingRow* x = &d.trace.rotating[-1 - slot]
    cdef int64_t count = x.base + d.counts[x.counter], k
    if x.copies & (x.copies - 1):
        count %= x.copies
    else:  # a division takes longer than all else
        count &= x.copies - 1
    k = x.choice + count
    size[0] = d.trace.choices[k + 1] - d.trace.choices[k]
    return d.trace.items + d.trace.choices[k]


cdef inline int32_t single(const Decoder* d, int32_t slot) noexcept nogil:
    """A slot that is read or written is one, also where it rotates."""
    cdef int64_t size
    return slot if slot >= 0 else choice(d, slot, &size)[0]
