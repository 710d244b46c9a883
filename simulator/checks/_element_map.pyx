"""Who accessed each element of memory, and whether the next access is ordered after that. Loops only.

See memory_map.py. An entry is one access: agent + 1 (34 bits), its epoch (16 bits), the number of its
operation (14 bits); 0 is none. Each element has the last store, and two loads and two atomics since then
that are not ordered. Three arrays hold them, of one, two and two entries an element; one that is empty is
not kept. `rest`: whether agents that `clocks` has no column for come before.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

from ascendtile.simulator.checks.memory._runs cimport Runs, Walk, next_run

cdef enum Kind:
    LOAD, STORE, ATOMIC

cdef struct Slots:
    uint64_t* stored
    uint64_t* loaded
    uint64_t* atomic
    int64_t shift  # of the tensor's first element, in units of the map
    int64_t scale  # units an element

cdef struct Agent:
    int64_t number
    uint64_t entry
    const int32_t* clock  # for each agent from `base` on: the first of its epochs that need not be over
    int64_t base
    int64_t width
    bint rest
    uint64_t over  # an entry that was found to come before: neighbours mostly have the same
    uint64_t read  # the same of loads and atomics

cdef struct Met:
    Py_ssize_t lane  # -1: none
    int64_t unit
    uint64_t other


cdef inline bint before(uint64_t entry, const Agent* me) noexcept nogil:
    """Whether an access is ordered before what the agent does now; there is none in an empty entry."""
    cdef int64_t other = <int64_t> (entry >> 30) - 1, k = other - me.base
    if entry == 0 or other == me.number:
        return True
    if 0 <= k < me.width:
        return me.clock[k] > <int32_t> ((entry >> 14) & 0xffff)
    return me.rest


cdef inline bint over(uint64_t entry, uint64_t* last, const Agent* me) noexcept nogil:
    """The same, with a look at the last one first."""
    if entry == 0 or entry == last[0]:
        return True
    if not before(entry, me):
        return False
    last[0] = entry
    return True


cdef inline uint64_t unordered(const uint64_t* pair, Agent* me) noexcept nogil:
    if not over(pair[0], &me.read, me):
        return pair[0]
    return 0 if over(pair[1], &me.read, me) else pair[1]


cdef inline void keep(uint64_t* pair, Agent* me) noexcept nogil:
    """The first of those that are not ordered stays, the other is the latest."""
    if over(pair[0], &me.read, me):
        pair[0] = me.entry
    else:
        pair[1] = me.entry


cdef void touch(Slots* m, int64_t unit, Kind kind, Agent* me, Py_ssize_t lane, Met* met) noexcept nogil:
    """One unit in which there is something to look at."""
    cdef uint64_t other = 0
    if m.stored != NULL and not over(m.stored[unit], &me.over, me):
        other = m.stored[unit]
    if other == 0 and kind != LOAD and m.loaded != NULL:
        other = unordered(m.loaded + 2 * unit, me)
    if other == 0 and kind != ATOMIC and m.atomic != NULL:
        other = unordered(m.atomic + 2 * unit, me)
    if other != 0 and met.lane < 0:
        met.lane, met.unit, met.other = lane, unit, other
    if kind == STORE and m.loaded != NULL:
        m.loaded[2 * unit], m.loaded[2 * unit + 1] = 0, 0
    if kind == STORE and m.atomic != NULL:
        m.atomic[2 * unit], m.atomic[2 * unit + 1] = 0, 0


cdef void touch_run(
    Slots* m, int64_t at, int64_t count, Kind kind, Agent* me, Py_ssize_t lane, Met* met
) noexcept nogil:
    """So many elements of the tensor, one behind the other."""
    cdef int64_t unit, first = m.shift + at * m.scale, end = m.shift + (at + count) * m.scale
    cdef uint64_t seen, entry = me.entry
    cdef uint64_t* stored = m.stored
    cdef uint64_t* loaded = NULL if kind == LOAD else m.loaded
    cdef uint64_t* atomic = NULL if kind == ATOMIC else m.atomic
    cdef uint64_t* mine = m.loaded if kind == LOAD else m.atomic
    for unit in range(first, end):
        seen = 0
        if stored != NULL and stored[unit] != me.over:
            seen = stored[unit]
        if loaded != NULL:
            seen |= loaded[2 * unit] | loaded[2 * unit + 1]
        if atomic != NULL:
            seen |= atomic[2 * unit] | atomic[2 * unit + 1]
        if seen != 0:
            touch(m, unit, kind, me, lane, met)
        if kind == STORE:
            stored[unit] = entry
        else:
            keep(mine + 2 * unit, me)


cdef Slots slots(
    uint64_t[::1] stored, uint64_t[::1] loaded, uint64_t[::1] atomic, int64_t shift, int64_t scale
):
    cdef Slots m
    m.stored = &stored[0] if stored.shape[0] else NULL
    m.loaded = &loaded[0] if loaded.shape[0] else NULL
    m.atomic = &atomic[0] if atomic.shape[0] else NULL
    m.shift, m.scale = shift, scale
    return m


cdef inline Agent agent(
    Py_ssize_t lane,
    const uint64_t[::1] entries,
    const int64_t[::1] bases,
    const int32_t[:, ::1] clocks,
    bint rest,
) noexcept nogil:
    cdef Agent a
    a.entry = entries[lane]
    a.number = <int64_t> (a.entry >> 30) - 1
    a.base = bases[lane if bases.shape[0] > 1 else 0]
    a.width = clocks.shape[1] if clocks.shape[0] > 0 else 0
    a.clock = &clocks[lane if clocks.shape[0] > 1 else 0, 0] if a.width > 0 else NULL
    a.rest = rest
    a.over = a.read = a.entry
    return a


def visit(list arrays, tuple place, int kind, const uint64_t[::1] entries, tuple order, Runs runs):
    """Access memory, with an entry for each lane. Gives (lane, unit, entry) of the first that is not ordered
    after an access before it, or None. place: shift and scale; order: bases, clocks, rest.
    """
    cdef Slots m = slots(arrays[0], arrays[1], arrays[2], place[0], place[1])
    cdef const int64_t[::1] bases = order[0]
    cdef const int32_t[:, ::1] clocks = order[1]
    cdef bint rest = order[2]
    cdef Agent me
    cdef Met met
    cdef Walk w
    cdef Py_ssize_t p
    met.lane, met.unit, met.other = -1, 0, 0
    with nogil:
        for p in range(entries.shape[0]):
            me = agent(p, entries, bases, clocks, rest)
            runs.begin(p, &w)
            while next_run(&w):
                touch_run(&m, w.at, w.count, <Kind> kind, &me, p, &met)
    return None if met.lane < 0 else (met.lane, met.unit, met.other)
