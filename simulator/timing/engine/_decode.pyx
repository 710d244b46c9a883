"""From the tree of a trace to the records of a program and what each of them waits for; the contract is _decode.pxd.

A read waits for the slot's last writer (data). A write waits for all that have read the slot since, and for the last
writer (buffer). A clobber waits like a write, but leaves writer and readers as they were. What a program skips gets no
record; whoever waits for it waits for the record before it on its pipe, or for the program's start.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport realloc
from libc.string cimport memmove

from ascendtile.simulator.timing.engine._code cimport choice, next_instruction, row_of, single
from ascendtile.simulator.timing.engine._state cimport (
    BUFFER, CROSSES, DATA, FLAG, MAX_PIPES, NOBODY, UNKNOWN, Core, Decoder, Dep, Pipe, Record, Slot, Step,
    Use, World,
)

cdef int64_t STRIDE = 64  # records that become known to a core at once


# -- the scoreboard ----------------------------------------------------------------------------------------------------


cdef void begin_decoding(Core* core) noexcept nogil:
    """Nobody has touched any slot."""
    cdef int64_t s
    cdef int p
    core.count = core.left = core.low = core.dep_low = core.dep_count = 0
    core.step, core.dep = core.window, core.dep_window
    core.ended = False
    core.use_count, core.use_free = 0, NOBODY
    for s in range(core.slot_count):
        core.slots[s].record = core.slots[s].use = NOBODY
        core.slots[s].pipe = NOBODY
    for p in range(MAX_PIPES):
        core.passed[p].record = NOBODY


cdef bint grow_deps(Core* core) noexcept nogil:
    cdef int64_t room = 2 * core.dep_room + 4 * STRIDE
    cdef Dep* deps = <Dep*>realloc(core.dep_window, room * sizeof(Dep))
    if not deps:
        return False
    core.dep_window, core.dep_room, core.dep = deps, room, deps - core.dep_low
    return True


cdef inline void wait_for(
    World* world, Core* core, double time, int record, int pipe, int mine, int kind
) noexcept nogil:
    if time == UNKNOWN:
        time = core.step[record].done
    if core.dep_count - core.dep_low == core.dep_room and not grow_deps(core):
        world.full = True
        return
    core.dep[core.dep_count] = Dep(time, record, kind | (CROSSES if pipe != mine else 0))
    core.dep_count += 1


cdef inline void wait_for_users(
    World* world, Core* core, int32_t slot, int mine, int kind
) noexcept nogil:
    """For all readers of the old contents, and for their writer."""
    cdef const Slot* x = &core.slots[slot]
    cdef const Use* use
    cdef int u = x.use
    while u >= 0:
        use = &core.uses[u]
        wait_for(world, core, use.time, use.record, use.pipe, mine, kind)
        u = use.next
    if x.pipe >= 0:
        wait_for(world, core, x.time, x.record, x.pipe, mine, kind)


cdef inline void forget_readers(Core* core, Slot* x) noexcept nogil:
    cdef int u = x.use, after
    while u >= 0:
        after = core.uses[u].next
        core.uses[u].next = core.use_free
        core.use_free = u
        u = after
    x.use = NOBODY


cdef inline void note_reader(
    Core* core, Slot* x, int record, double time, int pipe, double latency
) noexcept nogil:
    """Of one pipe, a later record is done after an earlier one, but for a longer latency of that."""
    cdef Use* use
    cdef int u = x.use
    while u >= 0:
        use = &core.uses[u]
        if use.pipe == pipe:
            if use.latency >= latency and use.record >= record:
                return
            if use.latency <= latency and use.record <= record:
                use.record, use.time, use.latency = record, time, latency
                return
        u = use.next
    if core.use_free >= 0:
        u = core.use_free
        core.use_free = core.uses[u].next
    else:
        u = core.use_count
        core.use_count += 1
    core.uses[u] = Use(time, latency, record, pipe, x.use)
    x.use = u


cdef inline int kind_of(const Decoder* d, int32_t slot, int kind) noexcept nogil:
    return FLAG if d.flags[slot] else kind


cdef inline void note_waits(World* world, Core* core, const Record* x) noexcept nogil:
    """Whom a record waits for."""
    cdef const Decoder* d = &core.decoder
    cdef const int32_t* slots = d.slots + x.slot
    cdef const int32_t* found
    cdef const Slot* slot
    cdef int64_t size, k
    cdef int32_t s
    cdef int i, kind
    for i in range(x.reads):
        s = single(d, slots[i])
        slot = &core.slots[s]
        if slot.pipe >= 0:
            wait_for(world, core, slot.time, slot.record, slot.pipe, x.pipe, kind_of(d, s, DATA))
    slots += x.reads
    for i in range(x.writes + x.clobbers):
        found, size = &slots[i], 1
        if slots[i] < 0:
            found = choice(d, slots[i], &size)
        for k in range(size):
            kind = kind_of(d, found[k], BUFFER)
            if kind == FLAG or world.buffers:
                wait_for_users(world, core, found[k], x.pipe, kind)


cdef inline void note_uses(
    Core* core, const Record* x, int record, double time, double latency
) noexcept nogil:
    """What a record, or the one that stands for it, leaves behind."""
    cdef const Decoder* d = &core.decoder
    cdef const int32_t* slots = d.slots + x.slot
    cdef Slot* slot
    cdef int32_t s
    cdef int i, k
    cdef bint written
    for i in range(x.reads, x.reads + x.writes):
        slot = &core.slots[single(d, slots[i])]
        forget_readers(core, slot)
        slot.record, slot.time, slot.pipe = record, time, x.pipe
    for i in range(x.reads):
        s = single(d, slots[i])
        written = False
        for k in range(x.reads, x.reads + x.writes):
            written |= single(d, slots[k]) == s
        if not written:
            note_reader(core, &core.slots[s], record, time, x.pipe, latency)


# -- the window --------------------------------------------------------------------------------------------------------


cdef int64_t oldest(const World* world, const Core* core) noexcept nogil:
    """The first record that may not have started yet."""
    cdef int64_t low = core.count
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


cdef void remember(Core* core, int64_t low) noexcept nogil:
    """Records before `low` will be forgotten: note when those were done that somebody may ask for."""
    cdef int64_t i
    cdef Slot* slot
    cdef Use* use
    cdef Dep* dep
    for i in range(core.slot_count):
        slot = &core.slots[i]
        if slot.pipe >= 0 and slot.time == UNKNOWN and slot.record < low:
            slot.time = core.step[slot.record].done
    for i in range(core.use_count):
        use = &core.uses[i]
        if use.time == UNKNOWN and core.low <= use.record < low:
            use.time = core.step[use.record].done
    for i in range(core.step[low].dep if low < core.count else core.dep_count, core.dep_count):
        dep = &core.dep[i]
        if dep.time == UNKNOWN and dep.record < low:
            dep.time = core.step[dep.record].done


cdef bint make_room(World* world, Core* core) noexcept nogil:
    """Forget what nobody asks for any more; if that is not enough, keep more."""
    cdef int64_t low = oldest(world, core)
    cdef int64_t dep_low = core.step[low].dep if low < core.count else core.dep_count
    cdef int64_t steps = core.count - low, room
    cdef Step* more
    remember(core, low)
    if steps:
        memmove(core.window, core.window + (low - core.low), steps * sizeof(Step))
    if core.dep_count > dep_low:
        memmove(
            core.dep_window, core.dep_window + (dep_low - core.dep_low), (core.dep_count - dep_low) * sizeof(Dep)
        )
    if steps + STRIDE > core.room // 2:
        room = 2 * (core.room + STRIDE) + core.slot_count
        more = <Step*>realloc(core.window, room * sizeof(Step))
        if not more:
            return False
        core.window, core.room = more, room
    core.low, core.dep_low = low, dep_low
    core.step, core.dep = core.window - low, core.dep_window - dep_low
    return True


cdef bint has_room(Core* core, const Record* x) noexcept nogil:
    """Whether what one more record reads can be noted."""
    cdef int64_t room = 2 * core.use_room + x.reads + STRIDE
    cdef Use* uses
    if core.use_count + x.reads <= core.use_room:
        return True
    uses = <Use*>realloc(core.uses, room * sizeof(Use))
    if not uses:
        return False
    core.uses, core.use_room = uses, room
    return True


cdef inline void skip(Core* core, const Record* x) noexcept nogil:
    """It is done together with the record before it on its pipe."""
    cdef int before = core.passed[x.pipe].record
    cdef double time = core.begin
    if before >= core.low:
        time = core.step[before].done
    elif before >= 0:
        time = core.pipes[x.pipe].done
    note_uses(core, x, before, time, 0.0 if before < 0 else core.passed[x.pipe].latency)


cdef inline void put(World* world, Core* core, const Record* x, double value, double occupancy) noexcept nogil:
    cdef int record = <int>core.count
    cdef int64_t dep = core.dep_count
    note_waits(world, core, x)
    core.step[record] = Step(
        UNKNOWN, value, occupancy, x, dep, <int>(core.dep_count - dep), world.pipe[x.pipe].unit
    )
    core.count += 1
    core.left += 1
    note_uses(core, x, record, UNKNOWN, x.latency)
    core.passed[x.pipe].record, core.passed[x.pipe].latency = record, x.latency


cdef void look_ahead(World* world, Core* core) noexcept nogil:
    """Let the core know the next records."""
    cdef Decoder* d = &core.decoder
    cdef int64_t end = core.count + STRIDE, row, number
    cdef const Record* x
    cdef double value, occupancy
    while core.count < end and not core.ended:
        number = next_instruction(d)
        if number < 0:
            core.ended = True
            return
        x = &d.records[number]
        row = row_of(d, x) if x.depth else 0
        value = x.amount if x.column < 0 else d.row[x.column + row]
        if not has_room(core, x) or (core.count - core.low == core.room and not make_room(world, core)):
            world.full = core.ended = True
            return
        if value < 0:
            skip(core, x)
            continue
        occupancy = x.occupancy if x.cycles < 0 else d.cycles[x.cycles + row]
        if x.channel < 0 and x.column >= 0:
            occupancy = value
        put(world, core, x, value, occupancy)
