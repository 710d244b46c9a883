"""What a core keeps of the times at which its records were done; the contract is _window.pxd."""

from libc.stdint cimport int64_t
from libc.stdlib cimport realloc
from libc.string cimport memmove

from ascendtile.simulator.timing._core cimport UNKNOWN, Core, Pipe, Record, World

cdef int64_t STRIDE = 64  # records that become known to a core at once


cdef int64_t oldest(const World* world, const Core* core) noexcept nogil:
    """The first record that may not have started yet."""
    cdef int64_t low = core.high
    cdef const Pipe* pipe
    cdef int u, p
    for u in range(world.units):
        low = min(low, core.stages[u].next)
    for p in range(world.pipes):
        pipe = &core.pipes[p]
        if pipe.streaming:
            low = min(low, pipe.record)
        if pipe.started < pipe.issued:
            low = min(low, pipe.records[pipe.head])
    return low


cdef bint make_room(World* world, Core* core) noexcept nogil:
    """Forget what nobody asks for any more; if that is not enough, keep more."""
    cdef int64_t low = max(core.low, oldest(world, core) - core.reach), r
    cdef double* window
    for r in range(low, core.high):  # who shares the fate of a forgotten record knows it
        if core.done[r] < UNKNOWN and core.done[-2 - <int>core.done[r]] != UNKNOWN:
            core.done[r] = core.done[-2 - <int>core.done[r]]
    memmove(core.window, core.window + (low - core.low), (core.high - low) * sizeof(double))
    core.low = low
    if core.high - low + STRIDE > core.room // 2:
        window = <double*>realloc(core.window, 2 * (core.room + STRIDE) * sizeof(double))
        if not window:
            world.full = True
            return False
        core.window, core.room = window, 2 * (core.room + STRIDE)
    core.done = core.window - low
    return True


cdef void look_ahead(World* world, Core* core) noexcept nogil:
    """Let the core know the next records; skipped ones are done with the one before on their pipe."""
    cdef int64_t end = min(<int64_t>core.count, core.high + STRIDE), r
    cdef const Record* record
    cdef int p
    if end - core.low > core.room and not make_room(world, core):
        return
    for r in range(core.high, end):
        record = &core.records[r]
        p = record.pipe
        core.done[r] = UNKNOWN
        if record.column < 0 or core.row[record.column] >= 0:
            core.passed[p] = <int>r
        elif core.passed[p] < 0:
            core.done[r] = core.begin
        elif core.passed[p] >= core.low and core.done[core.passed[p]] == UNKNOWN:
            core.done[r] = -2.0 - core.passed[p]
        else:
            core.done[r] = core.pipes[p].done
    core.high = end
