"""Charges every cycle of a program on its core to source lines; the contract is _charge.pxd.

While pipes are busy, their lines share the time evenly: of two transfers and an addition that overlap, each is charged a
third. While none is busy, the core waits for a latency, and the line of the record that was the last to be busy is charged
(before the first one: the line of the first one).
"""

from libc.math cimport INFINITY

from ascendtile.simulator.timing._core cimport MAX_PIPES, UNKNOWN, Core, Record, World


cdef struct Lane:  # one pipe while its records are gone through in order
    int record  # being executed or next; count when there is none left
    bint busy
    double time  # when it ends or starts
    double since  # the shared clock when the record started


cdef inline void next_record(const Core* core, Lane* lane, int p) noexcept nogil:
    """Go on to the pipe's next record that took time."""
    cdef int r = lane.record + 1
    while r < core.count and (core.records[r].pipe != p or core.begun[r] == UNKNOWN or core.begun[r] == core.freed[r]):
        r += 1
    lane.record = r
    lane.busy = False
    lane.time = core.begun[r] if r < core.count else INFINITY


cdef inline int earliest_lane(const Lane* lanes, int pipes) noexcept nogil:
    """The lane with the next event; of several at one time an end comes first."""
    cdef int p, best = 0
    for p in range(1, pipes):
        if lanes[p].time < lanes[best].time or (
            lanes[p].time == lanes[best].time and lanes[p].busy and not lanes[best].busy
        ):
            best = p
    return best


cdef double charge_lines(const World* world, const Core* core, double* lines) noexcept nogil:
    """Add this program's cycles to `lines`; gives the time at which its last result was done."""
    cdef Lane[MAX_PIPES] lanes
    cdef double now = core.begin, shared = 0.0, horizon = core.begin
    cdef int p, r, busy = 0, last = -1, final = -1
    for r in range(core.count):
        if core.done[r] > horizon:
            horizon, final = core.done[r], r
    for p in range(world.pipes):
        lanes[p].record = -1
        next_record(core, &lanes[p], p)
    while True:
        p = earliest_lane(lanes, world.pipes)
        if lanes[p].time == INFINITY:
            break
        r = lanes[p].record
        if busy:
            shared += (lanes[p].time - now) / busy
        else:
            lines[core.records[last if last >= 0 else r].line] += lanes[p].time - now
        now = lanes[p].time
        if lanes[p].busy:
            lines[core.records[r].line] += shared - lanes[p].since
            last = r
            busy -= 1
            next_record(core, &lanes[p], p)
        else:
            lanes[p].busy, lanes[p].time, lanes[p].since = True, core.freed[r], shared
            busy += 1
    if final >= 0:  # no pipe is busy any more; with no busy record at all, the one that was done last is charged
        lines[core.records[last if last >= 0 else final].line] += horizon - now
    return horizon
