"""What a core keeps of the times at which its records were done; the contract is _window.pxd."""

from libc.stdint cimport int8_t, int32_t, int64_t
from libc.stdlib cimport realloc
from libc.string cimport memmove

from ascendtile.simulator.timing.engine._state cimport UNKNOWN, Core, Pipe, Record, World, record_of

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


cdef void keep_times(Core* core, int64_t low) noexcept nogil:
    """Records before `low` will be forgotten: note when those were done that far ones ask for."""
    cdef double time
    while core.gone < core.keeps and core.keep[core.gone] < low:
        time = core.done[core.keep[core.gone]]
        core.kept[core.gone] = time if time >= 0 else core.done[-2 - <int64_t>time]
        core.gone += 1


cdef bint grow(World* world, Core* core) noexcept nogil:
    """Twice the room."""
    cdef int64_t room = 2 * (core.room + STRIDE)
    cdef double* window = <double*>realloc(core.window, room * sizeof(double))
    cdef int32_t* kinds = <int32_t*>realloc(core.kind_window, room * sizeof(int32_t))
    cdef int8_t* units = <int8_t*>realloc(core.unit_window, room)
    core.window = window if window else core.window
    core.kind_window = kinds if kinds else core.kind_window
    core.unit_window = units if units else core.unit_window
    if window and kinds and units:
        core.room = room
        return True
    world.full = True
    return False


cdef bint make_room(World* world, Core* core) noexcept nogil:
    """Forget what nobody asks for any more; if that is not enough, keep more."""
    cdef int64_t low = max(core.low, oldest(world, core) - core.reach), r
    for r in range(low, core.high):  # who shares the fate of a forgotten record knows it
        if core.done[r] < UNKNOWN and core.done[-2 - <int>core.done[r]] != UNKNOWN:
            core.done[r] = core.done[-2 - <int>core.done[r]]
    keep_times(core, low)
    if low < core.high:
        memmove(core.window, core.window + (low - core.low), (core.high - low) * sizeof(double))
        memmove(core.kind_window, core.kind_window + (low - core.low), (core.high - low) * sizeof(int32_t))
        memmove(core.unit_window, core.unit_window + (low - core.low), core.high - low)
    core.low = low
    if core.high - low + STRIDE > core.room // 2 and not grow(world, core):
        return False
    core.done, core.kind, core.unit = core.window - low, core.kind_window - low, core.unit_window - low
    return True


cdef void find_kinds(Core* core, int64_t end) noexcept nogil:
    """Kinds of the records from `high` on."""
    cdef int64_t r
    if core.last_run == NULL:
        for r in range(core.high, end):
            core.kind[r] = <int32_t>r
        return
    for r in range(core.high, end):
        if core.run < core.last_run and core.run[1].start == r:
            core.run += 1
            core.place = 0
        core.kind[r] = core.order[core.run.first + core.place]
        core.place = core.place + 1 if core.place + 1 < core.run.length else 0


cdef void look_ahead(World* world, Core* core) noexcept nogil:
    """Let the core know the next records; skipped ones are done with the one before on their pipe."""
    cdef int64_t end = min(<int64_t>core.count, core.high + STRIDE), r
    cdef const Record* record
    cdef int p
    if end - core.low > core.room and not make_room(world, core):
        return
    find_kinds(core, end)
    for r in range(core.high, end):
        record = record_of(core, r)
        p = record.pipe
        core.unit[r] = <int8_t>world.pipe[p].unit
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
