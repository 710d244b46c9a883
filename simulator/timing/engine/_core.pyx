"""One core of the machine; the contract is _core.pxd."""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t

from ascendtile.simulator.timing.engine._attribution cimport begin_charging, lane_is_full
from ascendtile.simulator.timing.engine._bandwidth cimport join, lowest_bit
from ascendtile.simulator.timing.engine._heap cimport push
from ascendtile.simulator.timing.engine._state cimport (
    BANDWIDTH, BARRIER, BEGINS, CROSSES, ENDS, FLAG, GOES_ON, ISSUE, MAX_PIPES, REASONS, Core, Dep, Edge,
    Lane, Pipe, Record, Stage, Step, TimelineRow, World, is_known, record_of,
)
from ascendtile.simulator.timing.engine._decode cimport begin_decoding, look_ahead


cdef void begin_program(World* world, Core* core, double start) noexcept nogil:
    """Empty queues, all pipes free at `start`, nothing done yet."""
    cdef int u, p
    core.begin = start
    core.queued = core.streaming = 0
    begin_decoding(core)
    core.horizon, core.final = start, -1
    for u in range(world.units):
        core.stages[u] = Stage(start, 0, False, -1, -1, -1)
    for p in range(world.pipes):
        core.pipes[p].free = start
        core.pipes[p].waits = -1
        core.pipes[p].issued = core.pipes[p].started = core.pipes[p].head = core.pipes[p].tail = 0
    begin_charging(world, core)


cdef struct Wait:  # how long a record waits, what for, and for which record (-1 if none)
    double until
    int reason, record


cdef inline int find_start(const World* world, const Core* core, int r, Wait* wait) noexcept nogil:
    """Raise `wait` (the issue time) to what the dependencies ask; return one that is not known, or -1."""
    cdef const Step* step = &core.step[r]
    cdef const Dep* dep = &core.dep[step.dep]
    cdef double time
    cdef int i
    for i in range(step.deps):
        time = dep[i].time
        if time < 0:
            time = core.step[dep[i].record].done
            if time < 0:
                return dep[i].record
        if dep[i].code & CROSSES:
            time += world.cross
        if time > wait.until:
            wait[0] = Wait(time, dep[i].code & 3, dep[i].record)
    return -1


cdef inline void note_interval(
    World* world, Core* core, int p, double begin, double end, int32_t line
) noexcept nogil:
    """A pipe was busy for a record of that line. There is no branch on whether it goes on at once."""
    cdef Lane* lane = &core.lanes[p]
    cdef Edge* edge
    cdef int number = p - world.first_lane
    cdef bint on
    if lane.tail + 2 >= lane.room and not lane_is_full(world, core, p):
        return
    edge = lane.edges + lane.tail
    on = (edge - 1).time == begin
    (edge - 1).kind += GOES_ON * on
    edge[0] = Edge(begin, BEGINS + number, line)
    edge -= on
    edge[1] = Edge(end, ENDS + number, line)
    edge[2] = Edge(INFINITY, 0, 0)
    lane.tail += 2 - on


cdef inline void finish(World* world, Core* core, int p, int r, double start, double free) noexcept nogil:
    """The pipe is free and the result on its way: both times are now known."""
    cdef const Record* record = record_of(core, r)
    cdef double done = free + record.latency
    cdef TimelineRow* row
    core.step[r].done = done
    core.pipes[p].free, core.pipes[p].done = free, done
    if done > core.horizon or (done == core.horizon and r < core.final):
        core.horizon, core.final, core.final_line = done, r, record.line
    if world.by_line and free != start:
        note_interval(world, core, p, start, free, record.line)
    core.left -= 1
    core.busy[p] += free - start
    world.line_busy[<int64_t>record.line * world.pipes + p] += free - start
    core.run += 1
    world.instructions_run += record.instructions * world.pipe[p].count
    if not core.told:
        return
    if world.timeline_size < world.timeline_limit:
        row = &world.timeline[world.timeline_size]
        row[0] = TimelineRow(
            start, free, done, core.pipes[p].gap, core.pipes[p].beyond, core.pipes[p].amount,
            core.index, core.program, r, <int>(record - core.decoder.trace.records), core.pipes[p].waited, p,
            core.pipes[p].reason,
        )
        world.timeline_size += 1
    elif start < world.timeline_until:
        world.timeline_until = start


cdef inline void note_stall(
    World* world, Core* core, const Record* record, int p, int reason, double cycles
) noexcept nogil:
    core.stalls[p * REASONS + reason] += cycles
    world.line_stalls[(<int64_t>record.line * world.pipes + p) * REASONS + reason] += cycles


cdef inline void arrive_at_barrier(World* world, Core* core, int p, int r, Wait wait) noexcept nogil:
    """The pipe waits until all have come; they are counted when the clock gets there."""
    cdef Pipe* pipe = &core.pipes[p]
    pipe.start = max(pipe.free, wait.until)
    if wait.until > pipe.free:
        pipe.reason, pipe.waited = wait.reason, wait.record
    pipe.streaming = True
    core.streaming |= 1u << p
    pipe.record = r
    push(&world.starts, max(pipe.start, world.now), core.index * MAX_PIPES + p)


cdef inline void start_record(
    World* world, Core* core, int p, int r, Wait wait
) noexcept nogil:
    """Take the pipe once the wait is over. A transfer joins the flows when the clock gets there."""
    cdef const Step* step = &core.step[r]
    cdef const Record* record = step.what
    cdef Pipe* pipe = &core.pipes[p]
    cdef double start = pipe.free
    cdef double value
    pipe.gap = pipe.beyond = pipe.amount = 0.0
    pipe.reason = pipe.waited = -1
    if record.channel <= BARRIER:
        arrive_at_barrier(world, core, p, r, wait)
        return
    if wait.until > start:
        pipe.gap, pipe.reason, pipe.waited = wait.until - start, wait.reason, wait.record
        note_stall(world, core, record, p, wait.reason, pipe.gap)
        start = wait.until
    value = step.amount
    if record.channel < 0 or value == 0:
        finish(world, core, p, r, start, start + step.occupancy)
        return
    pipe.streaming = True
    core.streaming |= 1u << p
    pipe.record = r
    pipe.start = start
    pipe.amount = value
    world.channel_bytes[record.channel] += value
    if start > world.now:
        push(&world.starts, start, core.index * MAX_PIPES + p)
        return
    world.late += start < world.now
    join(&world.sharing, record.channel, world.now, value, core.index * MAX_PIPES + p)


cdef inline void stage_goes_on(World* world, Core* core, int p) noexcept nogil:
    """After a record of a scalar pipe that the stage was taken for."""
    if world.pipe[p].scalar:
        core.stages[world.pipe[p].unit].time = core.pipes[p].free
        core.stages[world.pipe[p].unit].busy = False


cdef void end_transfer(World* world, Core* core, int p) noexcept nogil:
    """The last byte of the pipe's transfer has passed now."""
    cdef Pipe* pipe = &core.pipes[p]
    cdef const Record* record = record_of(core, pipe.record)
    cdef double taken = pipe.start + core.step[pipe.record].occupancy
    cdef double beyond = world.now - pipe.start - pipe.amount / world.sharing.channel[record.channel].port
    if beyond > 0:
        pipe.beyond = beyond
        note_stall(world, core, record, p, BANDWIDTH, beyond)
    pipe.streaming = False
    core.streaming &= ~(1u << p)
    finish(world, core, p, pipe.record, pipe.start, taken if taken > world.now else world.now)
    stage_goes_on(world, core, p)


cdef void end_barrier(World* world, Core* core, int p) noexcept nogil:
    """The last one has come now: a gap of the pipe up to here, by the flag if others came later."""
    cdef Pipe* pipe = &core.pipes[p]
    pipe.gap = world.now - pipe.free
    if world.now > pipe.start:
        pipe.reason = FLAG
    if pipe.gap > 0:
        note_stall(world, core, record_of(core, pipe.record), p, pipe.reason, pipe.gap)
    pipe.streaming = False
    core.streaming &= ~(1u << p)
    finish(world, core, p, pipe.record, world.now, world.now)
    stage_goes_on(world, core, p)


cdef inline bint issue_scalar(World* world, Core* core, Stage* stage, int p, int r) noexcept nogil:
    """A record in line with issue: the stage itself waits and works. False if it cannot start yet."""
    cdef const Record* record = record_of(core, r)
    cdef Wait wait = Wait(stage.time + world.issue * record.instructions, ISSUE, stage.cause)
    stage.waits = find_start(world, core, r, &wait)
    if stage.waits >= 0:
        return False
    start_record(world, core, p, r, wait)
    stage.busy = core.pipes[p].streaming
    stage.time = core.pipes[p].free
    stage.cause = r
    return True


cdef inline bint issue_queued(World* world, Core* core, Stage* stage, int p, int r) noexcept nogil:
    """Put a record into its pipe's queue once there is room; False if it is not known when that is."""
    cdef Pipe* pipe = &core.pipes[p]
    cdef int depth = world.pipe[p].depth
    cdef int place = pipe.tail
    if pipe.issued - pipe.started >= depth:
        stage.full = p
        return False
    stage.time += world.issue * record_of(core, r).instructions
    if pipe.issued >= depth and pipe.times[place] > stage.time:
        stage.time, stage.cause = pipe.times[place], pipe.records[place]
    pipe.times[place], pipe.causes[place] = stage.time, stage.cause
    pipe.records[place] = r
    pipe.issued += 1
    core.queued |= 1u << p
    pipe.tail = place + 1 if place + 1 < depth else 0
    return True


cdef inline bint issue(World* world, Core* core, int unit) noexcept nogil:
    """Let the unit's stage go on in program order as far as is known; True if it did anything."""
    cdef Stage* stage = &core.stages[unit]
    cdef int first = stage.next, r = stage.next, p
    cdef bint issued
    if stage.full >= 0:
        if core.pipes[stage.full].issued - core.pipes[stage.full].started >= world.pipe[stage.full].depth:
            return False
        stage.full = -1
    if stage.waits >= 0 and not is_known(core, stage.waits):
        return False
    while not stage.busy:
        if r == core.count:
            stage.next = r
            if not core.ended:
                look_ahead(world, core)
            if r == core.count:
                break
        if core.step[r].unit == unit:
            p = record_of(core, r).pipe
            if world.pipe[p].scalar:
                issued = issue_scalar(world, core, stage, p, r)
            else:
                issued = issue_queued(world, core, stage, p, r)
            if not issued:
                break
        r += 1
    stage.next = r
    return r != first


cdef inline bint execute(World* world, Core* core, int p) noexcept nogil:
    """Start the records in the pipe's queue as far as is known; True if any started."""
    cdef Pipe* pipe = &core.pipes[p]
    cdef int first = pipe.started, place, r
    cdef Wait wait
    while pipe.started < pipe.issued and not pipe.streaming:
        place = pipe.head
        r = pipe.records[place]
        wait = Wait(pipe.times[place], ISSUE, pipe.causes[place])
        pipe.waits = find_start(world, core, r, &wait)
        if pipe.waits >= 0:
            break
        pipe.times[place] = wait.until if wait.until > pipe.free else pipe.free
        pipe.started += 1
        pipe.head = place + 1 if place + 1 < world.pipe[p].depth else 0
        start_record(world, core, p, r, wait)
    if pipe.started == pipe.issued:
        core.queued &= ~(1u << p)
    return pipe.started != first


cdef void advance(World* world, Core* core) noexcept nogil:
    """Compute everything about this core that follows from what is known now."""
    cdef bint moved = True
    cdef unsigned int waiting
    cdef Pipe* pipe
    cdef int u, p
    while moved and (core.left or not core.ended):
        moved = False
        for u in range(world.units):
            moved |= issue(world, core, u)
        waiting = core.queued & ~core.streaming
        while waiting:
            p = lowest_bit(waiting)
            waiting &= waiting - 1
            pipe = &core.pipes[p]
            if pipe.waits < 0 or is_known(core, pipe.waits):
                moved |= execute(world, core, p)
