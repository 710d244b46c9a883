"""Charges every cycle of a program on its core to source lines; the contract is _attribution.pxd.

While pipes are busy, their lines share the time evenly: of two transfers and an addition that overlap, each
is charged a third. A pipe that has a twin counts as two. While none is busy, the core waits for a latency,
and the line of the record that was the last to be busy is charged (before the first one: the line of the
first one).

What pipes do is kept until it is known what all of them do at that time, and charged in order of time.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport realloc
from libc.string cimport memmove

from ascendtile.simulator.timing.engine._state cimport (
    BEGINS, EDGES, MAX_PIPES, Core, Edge, Lane, Pipe, Stage, World,
)

cdef extern from *:
    """
    #include <string.h>
    static inline int64_t bits_of(double x) { int64_t bits; memcpy(&bits, &x, sizeof x); return bits; }
    /* The compiler makes no branches of it: a processor could not predict them. */
    static inline int64_t least(const int64_t* keys, int count) {
        int64_t found = INT64_MAX, a, b;
        int i;
        for (i = 0; i < count; i += 4) {
            a = keys[i] < keys[i + 1] ? keys[i] : keys[i + 1];
            b = keys[i + 2] < keys[i + 3] ? keys[i + 2] : keys[i + 3];
            a = a < b ? a : b;
            found = a < found ? a : found;
        }
        return found;
    }
    """
    int64_t bits_of(double time) nogil
    int64_t least(const int64_t* keys, int count) nogil

cdef double[2 * MAX_PIPES + 1] PART  # of the time, that each of so many busy pipes is charged
PART[0] = 0.0
for _busy in range(1, 2 * MAX_PIPES + 1):
    PART[_busy] = 1.0 / _busy

cdef int64_t MOST = 1 << 6  # edges of a pipe that are kept before some are charged


cdef inline void clear(Lane* lane) noexcept nogil:
    if lane.room:
        lane.edges[0], lane.edges[1] = Edge(-1.0, 0, 0), Edge(INFINITY, 0, 0)
    lane.head = lane.tail = 1


cdef void begin_charging(const World* world, Core* core) noexcept nogil:
    """Nothing is charged yet of a program that begins at `core.begin`."""
    cdef int p
    core.charged, core.shared = core.begin, 0.0
    core.charging, core.last_line, core.due = 0, -1, MOST
    for p in range(world.pipes):
        clear(&core.lanes[p])


cdef bint make_room(World* world, Lane* lane) noexcept nogil:
    """Move what is left, and its ends, to the front; twice the room if that is more than half of it."""
    cdef int64_t left = lane.tail - lane.head
    cdef Edge* more
    if lane.room:
        memmove(lane.edges, lane.edges + lane.head - 1, (left + 2) * sizeof(Edge))
        lane.head, lane.tail = 1, left + 1
        if left <= lane.room // 2:
            return True
    more = <Edge*>realloc(lane.edges, (2 * lane.room + 2 * MOST) * sizeof(Edge))
    if not more:
        world.full = True
        return False
    lane.edges = more
    if not lane.room:
        lane.room = 1
        clear(lane)
    lane.room = 2 * lane.room + 2 * MOST - 2
    return True


cdef bint lane_is_full(World* world, Core* core, int p) noexcept nogil:
    """Room for one more; if many are kept, some are charged."""
    cdef Lane* lane = &core.lanes[p]
    if lane.tail - lane.head >= core.due:
        charge(world, core, min(known_until(world, core), lane.edges[lane.tail - 1].time))
        core.due = max(MOST, 2 * (lane.tail - lane.head))
    return make_room(world, lane)


cdef double known_until(const World* world, const Core* core) noexcept nogil:
    """No pipe will begin a record before that time which it has not begun yet."""
    cdef double until = INFINITY, time
    cdef const Pipe* pipe
    cdef const Stage* stage
    cdef int p
    for p in range(world.pipes):
        pipe = &core.pipes[p]
        stage = &core.stages[world.pipe[p].unit]
        if pipe.streaming:
            time = pipe.start
        elif pipe.started < pipe.issued:
            time = max(pipe.free, pipe.times[pipe.head])
        elif stage.next < core.count or not core.ended:
            time = max(pipe.free, stage.time)
        else:
            continue
        until = min(until, time)
    return until


cdef inline int64_t key_of(const Edge* edge) noexcept nogil:
    """In order of time, at one time ends before begins, then of lanes. Its last bits say kind and lane; times
    that differ in these bits only are one time."""
    return bits_of(edge.time) & -EDGES | edge.kind


cdef void charge(World* world, Core* core, double until) noexcept nogil:
    """Charge the time before `until`."""
    cdef double* lines = world.line_exposed
    cdef double now = core.charged, shared = core.shared, time
    cdef int64_t last = core.last_line, key, stop = bits_of(until) & -EDGES
    cdef int64_t keys[MAX_PIPES]
    cdef const Edge* at[MAX_PIPES]
    cdef int busy = core.charging, p
    cdef Lane* lanes = &core.lanes[world.first_lane]
    cdef const Edge* edge
    cdef bint begins
    for p in range(MAX_PIPES):
        at[p], keys[p] = NULL, stop
        if p < world.lanes and lanes[p].room:
            at[p] = lanes[p].edges + lanes[p].head
            keys[p] = key_of(at[p])
    while True:
        key = least(keys, world.lanes)
        if key >= stop:
            break
        p = key & MAX_PIPES - 1
        edge = at[p]
        at[p] += 1
        keys[p] = key_of(at[p])
        time = max(now, edge.time)
        if not busy:
            lines[last if last >= 0 else edge.line] += time - now
        shared += (time - now) * PART[busy]
        now = time
        # No branches: a processor cannot predict whether it begins or ends.
        begins = edge.kind >= BEGINS
        lines[edge.line] += (shared - lanes[p].since) * (1 - begins) * lanes[p].count
        lanes[p].since = shared
        last = last if begins else edge.line
        busy += (edge.kind // MAX_PIPES - 1) * lanes[p].count
    for p in range(world.lanes):
        if at[p]:
            lanes[p].head = at[p] - lanes[p].edges
    core.charged, core.shared = now, shared
    core.charging, core.last_line = busy, last


cdef double charge_rest(World* world, Core* core) noexcept nogil:
    """Charge what is left of a program that has ended; gives the time at which its last result was done."""
    if not world.by_line:
        return core.horizon
    charge(world, core, INFINITY)
    if core.final >= 0:  # no pipe is busy any more; if none ever was, the record done last is charged
        world.line_exposed[
            core.last_line if core.last_line >= 0 else core.final_line
        ] += core.horizon - core.charged
    return core.horizon
