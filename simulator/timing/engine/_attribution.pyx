"""Charges every cycle of a program on its core to source lines; the contract is _attribution.pxd.

While pipes are busy, their lines share the time evenly: of two transfers and an addition that overlap, each
is charged a third. While none is busy, the core waits for a latency, and the line of the record that was the
last to be busy is charged (before the first one: the line of the first one).

What pipes do is kept until it is known what all of them do at that time, and charged in order of time.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport realloc
from libc.string cimport memmove

from ascendtile.simulator.timing.engine._state cimport MAX_PIPES, Core, Interval, Lane, Pipe, Stage, World

cdef extern from *:
    """
    /* The lane with the next event, of 4, 8 or 16; of several at one time an end goes first, then the lowest.
       Without branches: which lane it is cannot be guessed. */
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #define TWO(i) _mm_load_pd(t + (i))
    #define FOUR(i) _mm_castps_si128(_mm_shuffle_ps(_mm_castpd_ps(_mm_cmpeq_pd(a, TWO(i))), \
        _mm_castpd_ps(_mm_cmpeq_pd(a, TWO((i) + 2))), _MM_SHUFFLE(2, 0, 2, 0)))
    static inline int earliest_lane(const double* t, int lanes, unsigned int busy) {
        __m128d a = _mm_min_pd(TWO(0), TWO(2)), b;
        unsigned int first, ends;
        if (lanes > 4)
            a = _mm_min_pd(a, _mm_min_pd(TWO(4), TWO(6)));
        if (lanes > 8) {
            b = _mm_min_pd(_mm_min_pd(TWO(8), TWO(10)), _mm_min_pd(TWO(12), TWO(14)));
            a = _mm_min_pd(a, b);
        }
        a = _mm_min_pd(a, _mm_shuffle_pd(a, a, 1));
        if (lanes > 4 && lanes <= 8)
            first = _mm_movemask_epi8(
                _mm_packs_epi16(_mm_packs_epi32(FOUR(0), FOUR(4)), _mm_setzero_si128()));
        else if (lanes > 4)
            first = _mm_movemask_epi8(
                _mm_packs_epi16(_mm_packs_epi32(FOUR(0), FOUR(4)), _mm_packs_epi32(FOUR(8), FOUR(12))));
        else
            first = _mm_movemask_ps(_mm_castsi128_ps(FOUR(0)));
        ends = first & busy;
        return __builtin_ctz(ends ? ends : first);
    }
    /* Both of a pair are written: what is written at once can be read at once. */
    static inline void set_lane(double* t, int p, double time) {
        __m128d both = _mm_load_pd(t + (p & ~1)), one = _mm_set1_pd(time);
        __m128d high = _mm_castsi128_pd(_mm_set_epi32(-(p & 1), -(p & 1), (p & 1) - 1, (p & 1) - 1));
        _mm_store_pd(t + (p & ~1), _mm_or_pd(_mm_and_pd(high, one), _mm_andnot_pd(high, both)));
    }
    #else
    static inline void set_lane(double* t, int p, double time) { t[p] = time; }
    static inline int earliest_lane(const double* t, int lanes, unsigned int busy) {
        double a = t[0], b = t[1];
        unsigned int first = 0, ends;
        int i;
        lanes = lanes > 4 ? 16 : 4;
        for (i = 2; i < lanes; i += 2) {
            a = t[i] < a ? t[i] : a;
            b = t[i + 1] < b ? t[i + 1] : b;
        }
        a = b < a ? b : a;
        for (i = 0; i < lanes; i++)
            first |= (unsigned int)(t[i] <= a) << i;
        ends = first & busy;
        return __builtin_ctz(ends ? ends : first);
    }
    #endif
    """
    int earliest_lane(const double* times, int lanes, unsigned int busy) nogil
    void set_lane(double* times, int lane, double time) nogil

cdef double[17] PART  # of the time, that each of so many busy pipes is charged
PART[0] = 0.0
for _busy in range(1, 17):
    PART[_busy] = 1.0 / _busy

cdef int64_t MOST = 1 << 6  # intervals of a pipe that are kept before some are charged


cdef void begin_charging(const World* world, Core* core) noexcept nogil:
    """Nothing is charged yet of a program that begins at `core.begin`."""
    cdef int p
    core.charged, core.shared = core.begin, 0.0
    core.charging, core.last_line, core.due = 0, -1, MOST
    core.lanes_busy = 0
    for p in range(MAX_PIPES):
        core.lanes[p].head = core.lanes[p].tail = 0
        core.lane_time[p] = INFINITY


cdef bint make_room(World* world, Lane* lane) noexcept nogil:
    """Move what is left, and its end, to the front; twice the room if that is more than half of it."""
    cdef int64_t left = lane.tail - lane.head
    cdef Interval* more
    if left:
        memmove(lane.intervals, lane.intervals + lane.head, (left + 1) * sizeof(Interval))
    lane.head, lane.tail = 0, left
    if left <= lane.room // 2 and lane.room:
        return True
    more = <Interval*>realloc(lane.intervals, (2 * lane.room + 65) * sizeof(Interval))
    if not more:
        world.full = True
        return False
    lane.intervals, lane.room = more, 2 * lane.room + 64
    return True


cdef bint lane_is_full(World* world, Core* core, int p) noexcept nogil:
    """Room for one more; if many are kept, some are charged."""
    cdef Lane* lane = &core.lanes[p]
    if lane.tail - lane.head >= core.due:
        charge(world, core, min(known_until(world, core), lane.intervals[lane.tail - 1].end))
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


cdef void charge(World* world, Core* core, double until) noexcept nogil:
    """Charge the time before `until`."""
    cdef double* lines = world.line_exposed
    cdef double* times = core.lane_time
    cdef double now = core.charged, shared = core.shared, time
    cdef int64_t last = core.last_line
    cdef int busy = core.charging, p, ends, on
    cdef unsigned int busy_lanes = core.lanes_busy
    cdef Lane* lane
    cdef Interval* interval
    while True:
        p = earliest_lane(times, world.lanes, busy_lanes)
        time = times[p]
        if time >= until:
            break
        lane = &core.lanes[world.first_lane + p]
        interval = &lane.intervals[lane.head]
        ends = busy_lanes >> p & 1
        if not busy:
            lines[last if last >= 0 else interval.line] += time - now
        shared += (time - now) * PART[busy]
        now = time
        # Whether it begins or ends, and whether the next one begins at once, cannot be guessed: the same
        # steps for all.
        on = ends & (interval[1].begin == time)
        lines[interval.line] += (shared - lane.since) * ends
        lane.since = shared
        last = interval.line if ends else last
        set_lane(times, p, (<double*>interval)[1 + 2 * ends + on])  # its end, or the next one's begin or end
        lane.head += ends
        busy += 1 - 2 * ends + on
        busy_lanes ^= <unsigned int>(1 - on) << p
    core.charged, core.shared = now, shared
    core.charging, core.last_line, core.lanes_busy = busy, last, busy_lanes


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
