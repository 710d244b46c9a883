"""Whether a trace keeps the rules of trace.py, so that the engine's loop needs no look at them."""

from libc.math cimport isfinite
from libc.stdint cimport int8_t, int32_t, int64_t

from ascendtile.simulator.timing.engine._state cimport (
    GainRow, LoopRow, BARRIER, BARRIERS, Record, RotatingRow,
)


cdef str RANGE = "both must be 0 to 2147483647"


cdef struct Sizes:
    int64_t instructions, code, loops, gains, slots, rotating, choices, items, strides, cycles, rows, flags


cdef bint good(double x) noexcept nogil:
    return x >= 0.0 and isfinite(x)


cdef str fault_of_instruction(
    const Record* x, int64_t place, Sizes n, const int32_t* slots, const int64_t* strides
):
    cdef int64_t i
    for name, value in (("occupancy", x.occupancy), ("latency", x.latency), ("amount", x.amount)):
        if not good(value):
            return f"{name} is {value}: it must be finite and at least 0"
    for name, number, least, end in (
        ("pipe", x.pipe, 0, 128), ("channel", x.channel, BARRIER + 1 - BARRIERS, 128),
        ("column", x.column, -1, n.rows), ("cycles", x.cycles, -1, n.cycles),
        ("instructions", x.instructions, 0, 1 << 31), ("line", x.line, 0, 1 << 31),
        ("depth", x.depth, 0, n.strides - x.stride + 1), ("stride", x.stride, 0, n.strides + 1),
        ("slot", x.slot, 0, n.slots - (x.reads + x.writes + x.clobbers) + 1), ("other", x.other, -place, 1),
    ):
        if not least <= number < end:
            return f"{name} is {number}: {least} to {end - 1} is allowed"
    if min(x.reads, x.writes, x.clobbers) < 0:
        return "it has less than 0 slots"
    for i in range(x.depth):
        if strides[x.stride + i] < 0:
            return f"stride {strides[x.stride + i]}: it must be at least 0"
    for i in range(x.slot, x.slot + x.reads + x.writes + x.clobbers):
        if slots[i] >= n.flags or slots[i] < -n.rotating:
            return f"slot {slots[i]}, there are {n.flags} slots and {n.rotating} that rotate"
    return ""


cdef bint sound_instruction(
    const Record* x, int64_t place, const Sizes* n, const int32_t* slots, const int64_t* strides
) noexcept nogil:
    """As `fault_of_instruction`, which says what is wrong."""
    cdef int64_t i, end = x.slot + x.reads + x.writes + x.clobbers
    if not (good(x.occupancy) and good(x.latency) and good(x.amount)):
        return False
    if x.pipe < 0 or x.channel < BARRIER + 1 - BARRIERS or not -1 <= x.column < n.rows:
        return False
    if not -1 <= x.cycles < n.cycles or x.instructions < 0 or x.line < 0 or x.depth < 0 or x.stride < 0:
        return False
    if x.stride + x.depth > n.strides or x.slot < 0 or end > n.slots or not -place <= x.other <= 0:
        return False
    if min(x.reads, x.writes, x.clobbers) < 0:
        return False
    for i in range(x.depth):
        if strides[x.stride + i] < 0:
            return False
    for i in range(x.slot, end):
        if slots[i] >= n.flags or slots[i] < -n.rotating:
            return False
    return True


cdef str fault_of_loops(const LoopRow[::1] loops, const GainRow[::1] gains, const int32_t[::1] code):
    cdef int64_t k, i
    for k in range(loops.shape[0]):
        x = loops[k]
        if not 0 <= x.first <= x.end <= code.shape[0]:
            return f"loop {k} is code {x.first} to {x.end} of {code.shape[0]}"
        if x.trip_count < 1:
            return f"loop {k} has trip count {x.trip_count}, it must be at least 1"
        if x.gain < 0 or x.gains < 0 or x.gain + x.gains > gains.shape[0]:
            return f"loop {k} has gains {x.gain} to {x.gain + x.gains} of {gains.shape[0]}"
        for i in range(x.gain, x.gain + x.gains):
            if gains[i].counter < 0 or not 0 <= gains[i].by < 1 << 31:
                return f"gain {i} adds {gains[i].by} to counter {gains[i].counter}: {RANGE}"
        for i in range(x.first, x.end):
            if code[i] < -k:
                return f"loop {k} has loop {-1 - code[i]} inside: only one before it is allowed"
    return ""


cdef str fault_of_rotating(
    const RotatingRow[::1] rotating, const int64_t[::1] choices, const int32_t[::1] items, int64_t slots
):
    cdef int64_t k
    for k in range(rotating.shape[0]):
        x = rotating[k]
        if x.copies < 1 or not 0 <= x.choice <= choices.shape[0] - 1 - x.copies:
            return f"rotating slot {k} has {x.copies} copies from choice {x.choice} of {choices.shape[0] - 1}"
        if x.counter < 0 or not 0 <= x.base < 1 << 31:
            return f"rotating slot {k} has base {x.base} and counter {x.counter}: {RANGE}"
    for k in range(choices.shape[0] - 1):
        if not 0 <= choices[k] <= choices[k + 1] <= items.shape[0]:
            return f"choice {k} is items {choices[k]} to {choices[k + 1]} of {items.shape[0]}"
    for k in range(items.shape[0]):
        if not 0 <= items[k] < slots:
            return f"choices have slot {items[k]}, there are {slots} slots"
    return ""


cdef str fault_of_single(
    const Record[::1] instructions, const int32_t[::1] slots, const RotatingRow[::1] rotating,
    const int64_t[::1] choices,
):
    """What is read or written is one slot, whatever the counts."""
    cdef int64_t i, k, c, size
    for i in range(instructions.shape[0]):
        x = instructions[i]
        for k in range(x.slot, x.slot + x.reads + x.writes):
            if slots[k] >= 0:
                continue
            y = rotating[-1 - slots[k]]
            for c in range(y.choice, y.choice + y.copies):
                size = choices[c + 1] - choices[c]
                if size != 1:
                    return f"instruction {i} reads or writes choice {c}, which has {size} slots, not 1"
    return ""


cdef struct Nest:
    const Record* instructions
    const LoopRow* loops
    const int32_t* code
    const int64_t* strides
    int64_t rows, cycles
    int64_t trip_count[64]


cdef bint is_beyond(const Nest* nest, const Record* x, int depth) noexcept nogil:
    """Whether its numbers, or those of one that is executed in its place, go beyond their table."""
    cdef int64_t row = 0
    cdef int k
    if x.depth > depth:
        return True
    for k in range(x.depth):
        row += nest.strides[x.stride + k] * (nest.trip_count[depth - 1 - k] - 1)
    if x.column >= 0 and x.column + row >= nest.rows or x.cycles >= 0 and x.cycles + row >= nest.cycles:
        return True
    return x.other < 0 and is_beyond(nest, x + x.other, depth)


cdef int64_t beyond(Nest* nest, int64_t first, int64_t end, int depth) noexcept nogil:
    """The first place whose numbers go beyond their table, or with too many loops; -1 if there is none."""
    cdef int64_t i, found
    for i in range(first, end):
        if nest.code[i] < 0:
            if depth == 64:
                return i
            nest.trip_count[depth] = nest.loops[-1 - nest.code[i]].trip_count
            found = beyond(
                nest, nest.loops[-1 - nest.code[i]].first, nest.loops[-1 - nest.code[i]].end, depth + 1
            )
            if found >= 0:
                return found
            continue
        if is_beyond(nest, &nest.instructions[nest.code[i]], depth):
            return i
    return -1


cdef bint finite(const double[:, ::1] table) noexcept nogil:
    cdef int64_t i, j
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            if not isfinite(table[i, j]):
                return False
    return True


def fault(
    const Record[::1] instructions, const int32_t[::1] code, int64_t length, const LoopRow[::1] loops,
    const GainRow[::1] gains, const int32_t[::1] slots, const RotatingRow[::1] rotating,
    const int64_t[::1] choices, const int32_t[::1] items, const int64_t[::1] strides,
    const double[::1] cycles, const double[:, ::1] table, const int8_t[::1] flags,
):
    """What is wrong with the arrays of a trace; nothing if it is sound."""
    cdef Sizes n = Sizes(
        instructions.shape[0], code.shape[0], loops.shape[0], gains.shape[0], slots.shape[0],
        rotating.shape[0], choices.shape[0], items.shape[0], strides.shape[0], cycles.shape[0],
        table.shape[0], flags.shape[0],
    )
    cdef const int32_t* all_slots = &slots[0] if n.slots else NULL
    cdef const int64_t* all_strides = &strides[0] if n.strides else NULL
    cdef int64_t i
    cdef Nest nest
    for i in range(n.instructions):
        if instructions[i].other < 0 and instructions[max(0, i + instructions[i].other)].other < 0:
            return f"instruction {i} has one in its place that has one in its place: only one is allowed"
        if not sound_instruction(&instructions[i], i, &n, all_slots, all_strides):
            return f"instruction {i}: {fault_of_instruction(&instructions[i], i, n, all_slots, all_strides)}"
    if not 0 <= length <= n.code:
        return f"length is {length}, the code has {n.code}"
    for i in range(n.code):
        if not -n.loops <= code[i] < n.instructions:
            return f"code[{i}] is {code[i]}, there are {n.instructions} instructions and {n.loops} loops"
    found = fault_of_loops(loops, gains, code) or fault_of_rotating(rotating, choices, items, n.flags)
    found = found or fault_of_single(instructions, slots, rotating, choices)
    if found:
        return found
    if not finite(table):
        return "table has an entry that is not finite; a negative one skips the record"
    for i in range(n.cycles):
        if not good(cycles[i]):
            return f"cycles[{i}] is {cycles[i]}: it must be finite and at least 0"
    if n.code:
        nest.instructions = &instructions[0] if n.instructions else NULL
        nest.loops = &loops[0] if n.loops else NULL
        nest.code, nest.strides, nest.rows, nest.cycles = &code[0], all_strides, n.rows, n.cycles
        i = beyond(&nest, 0, length, 0)
        if i >= 0:
            return f"code[{i}]: its numbers go beyond their table, or its loops are more than 64"
    return ""
