"""The clock: ends of transfers, starts of transfers and cores that become free, in order of time.

At one time, ends come before starts and starts before free cores, so that every core that is free at that
time is known when the next program is handed out; then the lowest core takes it.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from ascendtile.simulator.timing.engine._attribution cimport charge_rest
from ascendtile.simulator.timing.engine._bandwidth cimport MAX_CHANNELS as CHANNELS
from ascendtile.simulator.timing.engine._bandwidth cimport MAX_RESOURCES as RESOURCES
from ascendtile.simulator.timing.engine._bandwidth cimport SHARE_BITS as BITS
from ascendtile.simulator.timing.engine._bandwidth cimport SHARES as MOST
from ascendtile.simulator.timing.engine._bandwidth cimport join, leave, settle
from ascendtile.simulator.timing.engine._code cimport Code, free_decoder, make_decoder, open_program
from ascendtile.simulator.timing.engine._core cimport advance, begin_program, end_barrier, end_transfer
from ascendtile.simulator.timing.engine._heap cimport Entry, pop, push
from ascendtile.simulator.timing.engine._state cimport (
    MAX_PIPES as PIPES, MAX_UNITS as UNITS, BARRIER, BARRIERS as KINDS, REASONS, TAIL, ChannelRow, Core,
    Pipe, PipeRow, Slot, SpanRow, TimelineRow, Traces, World, is_known, record_of,
)

MAX_PIPES = PIPES
MAX_UNITS = UNITS
MAX_CHANNELS = CHANNELS
MAX_RESOURCES = RESOURCES
SHARE_BITS = BITS
MAX_SHARES = MOST
BARRIERS = KINDS

cdef int64_t SLICE = 1 << 18  # events between two looks at the keyboard


cdef struct Launch:  # the programs and what is kept about them
    const Traces* traces
    int64_t next
    int cores
    double dispatch
    SpanRow* spans
    double* cycles  # per core
    double* dispatched
    int64_t* taken


cdef void close_program(World* world, Launch* launch, Core* core) noexcept nogil:
    """Charge the program's time to source lines; free the core when all is done."""
    cdef double horizon = charge_rest(world, core)
    cdef int p
    for p in range(world.pipes):
        core.stalls[p * REASONS + TAIL] += horizon - core.pipes[p].free
    launch.spans[core.program].end = horizon
    push(&world.frees, horizon, core.index)


cdef void go_on(World* world, Launch* launch, Core* core) noexcept nogil:
    advance(world, core)
    if core.left == 0 and core.ended:
        close_program(world, launch, core)


cdef void hand_out(World* world, Launch* launch, Core* core, double dispatch) noexcept nogil:
    """Give the next program to a core that is free now."""
    launch.cycles[core.index] = world.now
    if launch.next == launch.traces.count:
        return
    core.program = <int>launch.next
    open_program(launch.traces, &core.decoder, launch.next)
    launch.next += 1
    launch.taken[core.index] += 1
    launch.dispatched[core.index] += dispatch
    launch.spans[core.program] = SpanRow(world.now + dispatch, 0.0, core.index)
    begin_program(world, core, world.now + dispatch)
    go_on(world, launch, core)


cdef void arrive(World* world, Launch* launch, Core* cores, int kind) noexcept nogil:
    """One more pipe has arrived at a barrier of that kind; with the last one all go on."""
    cdef int c, p
    cdef bint waited
    cdef Pipe* pipe
    world.met[kind] += 1
    if world.met[kind] < world.expected[kind]:
        return
    world.met[kind] = 0
    for c in range(launch.cores):
        waited = False
        for p in range(world.pipes):
            pipe = &cores[c].pipes[p]
            if pipe.streaming and record_of(&cores[c], pipe.record).channel == BARRIER - kind:
                end_barrier(world, &cores[c], p)
                waited = True
        if waited:
            go_on(world, launch, &cores[c])


cdef bint step(World* world, Launch* launch, Core* cores) noexcept nogil:
    """Handle the next event; False when there is none."""
    cdef int channel = world.sharing.first
    cdef double end = world.sharing.channel[channel].end
    cdef double start = world.starts.entries[0].key if world.starts.size else INFINITY
    cdef double idle = world.frees.entries[0].key if world.frees.size else INFINITY
    cdef double time = min(end, min(start, idle))
    cdef Core* core
    cdef Pipe* pipe
    cdef int item
    if time > world.now:  # all events of this time are handled: rates hold until the next one
        settle(&world.sharing, world.now)
        channel = world.sharing.first
        end = world.sharing.channel[channel].end
        time = min(end, min(start, idle))
        if time == INFINITY:
            return False
        world.now = max(time, world.now)
    if end <= time:
        item = leave(&world.sharing, channel)
        core = &cores[item // PIPES]
        end_transfer(world, core, item % PIPES)
        go_on(world, launch, core)
    elif start <= time:
        item = pop(&world.starts)
        core = &cores[item // PIPES]
        pipe = &core.pipes[item % PIPES]
        channel = record_of(core, pipe.record).channel
        if channel <= BARRIER:
            arrive(world, launch, cores, BARRIER - channel)
        else:
            join(&world.sharing, channel, world.now, pipe.amount, item)
    else:
        hand_out(world, launch, &cores[pop(&world.frees)], launch.dispatch)
    return True


cdef bint run_slice(World* world, Launch* launch, Core* cores, int64_t events) noexcept nogil:
    cdef int64_t _
    for _ in range(events):
        if not step(world, launch, cores):
            return False
    return True


cdef int64_t first_unknown(const Core* core) noexcept nogil:
    """The first record of a stuck core that is not done."""
    cdef int64_t r
    for r in range(core.low, core.count):
        if not is_known(core, r):
            return r
    return core.count


def run(
    const PipeRow[::1] pipes, int units, const ChannelRow[::1] channels, const double[::1] capacity,
    double dispatch, double core_start, double cross, double issue, const int64_t[::1] expected,
    Code code, double[:, ::1] queue_times, int[:, :, ::1] queue_records,
    double[::1] core_cycles, double[::1] core_dispatch, int64_t[::1] core_programs, int64_t[::1] core_records,
    double[:, ::1] busy, double[:, :, ::1] stalls, double[:, ::1] line_busy, double[:, :, ::1] line_stalls,
    double[::1] line_exposed, double[::1] channel_bytes, SpanRow[::1] spans,
    const uint8_t[::1] told, TimelineRow[::1] timeline, double[::1] timeline_until, int64_t[::1] counters,
    bint by_line, bint buffers,
):
    """Fill the output arrays (zeroed by the caller); return core, program, record that are stuck, or None.

    No array may be empty. `counters` becomes instructions run, late starts, rows of the timeline in use; the
    length of `timeline` less one is the limit. told: by core, whether its records go into the timeline;
    `timeline_until` becomes the least start of one of theirs that is not in it. by_line: fill `line_exposed`.
    buffers: whether records wait for them.
    """
    cdef int n_cores = <int>queue_times.shape[0], n_pipes = <int>pipes.shape[0], c, p
    cdef World world
    cdef Launch launch
    cdef Core* cores = <Core*>calloc(n_cores, sizeof(Core))
    cdef int flows = n_cores * n_pipes
    cdef Entry* entries = <Entry*>calloc(flows * (channels.shape[0] + 1) + n_cores, sizeof(Entry))
    if not cores or not entries:
        free(cores)
        free(entries)
        raise MemoryError("no memory for the state of the cores")
    memset(&world, 0, sizeof(World))
    world.pipes, world.units, world.pipe = n_pipes, units, &pipes[0]
    world.cross, world.issue, world.buffers = cross, issue, buffers
    for c in range(KINDS):
        world.expected[c] = expected[c]
    world.sharing.channels, world.sharing.resources = <int>channels.shape[0], <int>capacity.shape[0]
    for c in range(world.sharing.channels):
        world.sharing.channel[c].port = channels[c].port
        world.sharing.channel[c].uses = <unsigned int>channels[c].uses
        world.sharing.channel[c].end = INFINITY
        world.sharing.channel[c].flows.entries = entries + n_cores + flows * (c + 1)
    for c in range(world.sharing.resources):
        world.sharing.capacity[c] = capacity[c]
    world.frees.entries, world.starts.entries = entries, entries + n_cores
    world.line_exposed, world.line_stalls = &line_exposed[0], &line_stalls[0, 0, 0]
    world.line_busy, world.channel_bytes = &line_busy[0, 0], &channel_bytes[0]
    world.timeline, world.timeline_limit = &timeline[0], timeline.shape[0] - 1
    world.timeline_until, world.by_line = INFINITY, by_line
    world.first_lane, world.lanes = code.all.first_pipe, code.all.pipes
    launch = Launch(
        &code.all, 0, n_cores, dispatch, &spans[0], &core_cycles[0], &core_dispatch[0], &core_programs[0],
    )
    try:
        for c in range(n_cores):
            cores[c].index, cores[c].told = c, told[c]
            cores[c].busy, cores[c].stalls = &busy[c, 0], &stalls[c, 0, 0]
            make_decoder(&code.all, &cores[c].decoder)
            cores[c].slot_count = code.all.slot_count
            cores[c].slots = <Slot*>calloc(code.all.slot_count + 1, sizeof(Slot))
            cores[c].used = <int32_t*>calloc(code.all.used + 1, sizeof(int32_t))
            if not cores[c].slots or not cores[c].used:
                raise MemoryError("no memory for the slots of the cores")
            for p in range(n_pipes):
                cores[c].lanes[p].count = pipes[p].count
                cores[c].pipes[p].times = &queue_times[c, pipes[p].first]
                cores[c].pipes[p].records = &queue_records[c, 0, pipes[p].first]
                cores[c].pipes[p].causes = &queue_records[c, 1, pipes[p].first]
        with nogil:
            for c in range(n_cores):
                hand_out(&world, &launch, &cores[c], c * core_start)
        while True:
            with nogil:
                more = run_slice(&world, &launch, cores, SLICE)
            if world.full:
                raise MemoryError("no memory for what the cores do at one time")
            if not more:
                break
            PyErr_CheckSignals()
        counters[0], counters[1], counters[2] = world.instructions_run, world.late, world.timeline_size
        timeline_until[0] = world.timeline_until
        for c in range(n_cores):
            core_records[c] = cores[c].run
        for c in range(n_cores):
            if cores[c].left:
                return c, cores[c].program, first_unknown(&cores[c])
        return None
    finally:
        for c in range(n_cores):
            free_decoder(&cores[c].decoder)
            free(cores[c].window)
            free(cores[c].dep_window)
            free(cores[c].slots)
            free(cores[c].uses)
            free(cores[c].listed)
            free(cores[c].used)
            for p in range(n_pipes):
                free(cores[c].lanes[p].edges)
        free(cores)
        free(entries)
