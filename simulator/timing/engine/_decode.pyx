"""From the tree of a trace to the records of a program and what each waits for; the contract is _decode.pxd.

A read waits for the slot's last writer (data). A write waits for all that have read the slot since, and for
the last writer (buffer). A clobber waits like a write, but leaves writer and readers as they were. A
record that a program skips is left out; what depends on it waits for the record before it on its pipe, or
for the program's start.
"""

from libc.stdint cimport int8_t, int32_t, int64_t
from libc.stdlib cimport realloc
from libc.string cimport memmove

from ascendtile.simulator.timing.engine._code cimport (
    choice, executed, next_instruction, row_of, single, value_of,
)
from ascendtile.simulator.timing.engine._state cimport (
    BUFFER, CROSSES, DATA, FLAG, MAX_PIPES, NONE, UNKNOWN, Core, Decoder, Dep, Pipe, Record, Slot, Step,
    Use, World,
)

cdef int64_t STRIDE = 64  # records that become known to a core at once


# -- the scoreboard ------------------------------------------------------------------------------------------


cdef void begin_decoding(Core* core) noexcept nogil:
    """No record has used any slot so far."""
    cdef int64_t s
    cdef int p
    core.count = core.left = core.low = core.dep_low = core.dep_count = 0
    core.step, core.dep = core.window, core.dep_window
    core.ended = False
    core.use_count, core.use_free, core.listed_count = 0, NONE, 0
    for s in range(core.slot_count):
        core.slots[s] = Slot(0.0, NONE, NONE, NONE, False)
    for p in range(MAX_PIPES):
        core.passed[p].record = NONE


cdef bint grow_deps(Core* core) noexcept nogil:
    cdef int64_t room = 2 * core.dep_room + 4 * STRIDE
    cdef Dep* deps = <Dep*>realloc(core.dep_window, room * sizeof(Dep))
    if not deps:
        return False
    core.dep_window, core.dep_room, core.dep = deps, room, deps - core.dep_low
    return True


cdef struct Waiter:  # the next record
    double since  # it starts no earlier than that, whatever it waits for
    int pipe
    int64_t first  # of its dependencies


cdef inline void wait_for(
    World* world, Core* core, const Waiter* x, double time, int record, int pipe, int kind
) noexcept nogil:
    """Note a dependency, unless it is over or among the last few noted."""
    cdef int crosses = CROSSES if pipe != x.pipe else 0
    cdef int64_t i
    if time < 0:
        time = core.step[record].done
    if time >= 0 and (time + world.cross if crosses else time) <= x.since:
        return
    for i in range(max(x.first, core.dep_count - 4), core.dep_count):
        if core.dep[i].record == record and core.dep[i].code & CROSSES == crosses:
            return
    if core.dep_count - core.dep_low == core.dep_room and not grow_deps(core):
        world.full = True
        return
    core.dep[core.dep_count] = Dep(time, record, kind | crosses)
    core.dep_count += 1


cdef inline void wait_for_users(
    World* world, Core* core, const Waiter* x, int32_t number, int kind
) noexcept nogil:
    """Wait for all readers of the old contents, and for their writer if no reader has waited for it."""
    cdef const Slot* slot = &core.slots[number]
    cdef const Use* use
    cdef int u = slot.use
    cdef bint real = False
    while u >= 0:
        use = &core.uses[u]
        wait_for(world, core, x, use.time, use.record, use.pipe, kind)
        real |= use.real
        u = use.next
    if slot.pipe >= 0 and not real:
        wait_for(world, core, x, slot.time, slot.record, slot.pipe, kind)


cdef inline void forget_readers(Core* core, Slot* x) noexcept nogil:
    cdef int u = x.use, after
    while u >= 0:
        after = core.uses[u].next
        core.uses[u].next = core.use_free
        core.use_free = u
        u = after
    x.use = NONE


cdef inline void enlist(Core* core, int8_t* listed, int32_t name) noexcept nogil:
    """List it, so that its time is noted before the window drops the record."""
    if not listed[0]:
        core.listed[core.listed_count] = name
        core.listed_count += 1
        listed[0] = True


cdef inline void note_reader(
    Core* core, Slot* x, int record, double time, int pipe, double latency, bint real
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
                use.real |= real
                enlist(core, &use.listed, -1 - u)
                return
        u = use.next
    if core.use_free >= 0:
        u = core.use_free
        core.use_free = core.uses[u].next
    else:
        u = core.use_count
        core.use_count += 1
        core.uses[u].listed = False
    use = &core.uses[u]
    use.time, use.latency, use.record, use.pipe, use.next, use.real = time, latency, record, pipe, x.use, real
    enlist(core, &use.listed, -1 - u)
    x.use = u


cdef inline int kind_of(const Decoder* d, int32_t slot, int kind) noexcept nogil:
    return FLAG if d.trace.flags[slot] else kind


cdef inline void find_slots(Core* core, const Record* x) noexcept nogil:
    """Those that it reads and writes, in these iterations."""
    cdef const Decoder* d = &core.decoder
    cdef const int32_t* slots = d.trace.slots + x.slot
    cdef int i
    for i in range(x.reads + x.writes):
        core.used[i] = single(d, slots[i])


cdef inline void note_waits(World* world, Core* core, const Record* x) noexcept nogil:
    """Note all dependencies of a record."""
    cdef const Decoder* d = &core.decoder
    cdef const int32_t* slots = d.trace.slots + x.slot + x.reads + x.writes
    cdef const int32_t* found
    cdef const Slot* slot
    cdef Waiter mine = Waiter(
        max(core.stages[world.pipe[x.pipe].unit].time, core.pipes[x.pipe].free), x.pipe, core.dep_count
    )
    cdef int64_t size, k
    cdef int32_t s
    cdef int i, kind
    for i in range(x.reads):
        s = core.used[i]
        slot = &core.slots[s]
        if slot.pipe >= 0:
            wait_for(world, core, &mine, slot.time, slot.record, slot.pipe, kind_of(d, s, DATA))
    for i in range(-x.writes, x.clobbers):
        if i < 0:
            found, size = &core.used[x.reads + x.writes + i], 1
        elif slots[i] < 0:
            found = choice(d, slots[i], &size)
        else:
            found, size = &slots[i], 1
        for k in range(size):
            kind = kind_of(d, found[k], BUFFER)
            if kind == FLAG or world.buffers:
                wait_for_users(world, core, &mine, found[k], kind)


cdef inline void note_uses(
    Core* core, const Record* x, int record, double time, double latency, bint real
) noexcept nogil:
    """Enter the slots that a record reads and writes into the scoreboard."""
    cdef const int32_t* used = core.used
    cdef Slot* slots = core.slots
    cdef Slot* slot
    cdef int i, k, pipe = x.pipe, reads = x.reads, end = x.reads + x.writes
    for i in range(reads, end):
        slot = &slots[used[i]]
        if slot.use >= 0:
            forget_readers(core, slot)
        slot.time, slot.record, slot.pipe = time, record, pipe
        enlist(core, &slot.listed, used[i])
    for i in range(reads):
        k = reads
        while k < end and used[k] != used[i]:  # what it writes, too, it does not only read
            k += 1
        if k == end:
            note_reader(core, &slots[used[i]], record, time, pipe, latency, real)


# -- the window ----------------------------------------------------------------------------------------------


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


cdef inline bint settle(const Core* core, double* time, int record) noexcept nogil:
    """Whether it is known when the record was done."""
    if time[0] < 0:
        time[0] = core.step[record].done
    return time[0] >= 0


cdef void remember(Core* core, int64_t dep_low) noexcept nogil:
    """Note when the records were done that later ones may wait for: the window will drop them."""
    cdef Slot* slot
    cdef Use* use
    cdef bint listed
    cdef int64_t i, kept = 0
    cdef int32_t name
    for i in range(core.listed_count):
        name = core.listed[i]
        if name >= 0:
            slot = &core.slots[name]
            slot.listed = not settle(core, &slot.time, slot.record)
            listed = slot.listed
        else:
            use = &core.uses[-1 - name]
            use.listed = not settle(core, &use.time, use.record)
            listed = use.listed
        core.listed[kept] = name
        kept += listed
    core.listed_count = kept
    for i in range(dep_low, core.dep_count):
        settle(core, &core.dep[i].time, core.dep[i].record)


cdef bint make_room(World* world, Core* core) noexcept nogil:
    """Drop records that are no longer needed; if that is not enough, enlarge the window."""
    cdef int64_t low = oldest(world, core)
    cdef int64_t dep_low = core.step[low].dep if low < core.count else core.dep_count
    cdef int64_t steps = core.count - low, room
    cdef Step* more
    remember(core, dep_low)
    if steps:
        memmove(core.window, core.window + (low - core.low), steps * sizeof(Step))
    if core.dep_count > dep_low:
        memmove(
            core.dep_window, core.dep_window + (dep_low - core.dep_low),
            (core.dep_count - dep_low) * sizeof(Dep),
        )
    if steps + STRIDE > core.room // 2:
        room = 2 * (core.room + STRIDE)
        more = <Step*>realloc(core.window, room * sizeof(Step))
        if not more:
            return False
        core.window, core.room = more, room
    core.low, core.dep_low = low, dep_low
    core.step, core.dep = core.window - low, core.dep_window - dep_low
    return True


cdef bint make_use_room(Core* core, const Record* x) noexcept nogil:
    """So that what one more record reads can be noted."""
    cdef int64_t room = 2 * core.use_room + x.reads + (core.slot_count if core.use_room == 0 else 0) + STRIDE
    cdef Use* uses = <Use*>realloc(core.uses, room * sizeof(Use))
    cdef int32_t* names
    if not uses:
        return False
    core.uses = uses
    names = <int32_t*>realloc(core.listed, (core.slot_count + room) * sizeof(int32_t))
    if not names:
        return False
    core.listed, core.use_room = names, room
    return True


cdef inline bint has_room(World* world, Core* core, const Record* x) noexcept nogil:
    """Whether one more record can be noted."""
    if core.use_count + x.reads >= core.use_room and not make_use_room(core, x):
        return False
    return core.count - core.low < core.room or make_room(world, core)


cdef inline void skip(Core* core, const Record* x) noexcept nogil:
    """It is done together with the record before it on its pipe."""
    cdef int before = core.passed[x.pipe].record
    cdef double time = core.begin
    if before >= core.low:
        time = core.step[before].done
    elif before >= 0:
        time = core.pipes[x.pipe].done
    note_uses(core, x, before, time, 0.0 if before < 0 else core.passed[x.pipe].latency, False)


cdef inline void put(
    World* world, Core* core, const Record* x, double value, double occupancy
) noexcept nogil:
    cdef int record = <int>core.count
    cdef int64_t dep = core.dep_count
    note_waits(world, core, x)
    core.step[record] = Step(
        UNKNOWN, value, occupancy, x, dep, <int>(core.dep_count - dep), world.pipe[x.pipe].unit
    )
    core.count += 1
    core.left += 1
    note_uses(core, x, record, UNKNOWN, x.latency, True)
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
        x = executed(d, number)
        row = row_of(d, x) if x.depth else 0
        value = x.amount if x.column < 0 else value_of(d, x, row)
        if not has_room(world, core, x):
            world.full = core.ended = True
            return
        find_slots(core, x)
        if value < 0:
            skip(core, x)
            continue
        occupancy = x.occupancy if x.cycles < 0 else d.trace.cycles[x.cycles + row]
        if x.channel < 0 and x.column >= 0:
            occupancy = value
        put(world, core, x, value, occupancy)
