"""Who accessed each element of memory, and whether the next access is ordered after that. Loops only.

See memory_map.py. An entry is one access: agent + 1 (34 bits), its epoch (16 bits), the number of its
operation (14 bits); 0 is none. Each element has the last store, two loads and two atomics since then that
are not ordered, and the store before it that is not ordered and stored the same. Four arrays hold them, of
one, two, two and one entries an element; one that is empty is not kept. `rest`: whether agents that `clocks`
has no column for come before. `differ`: a bit for each element of the tensor that was not always given the
same value; empty if all may have been given several.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

from ascendtile.simulator.checks.memory._runs cimport Runs, Walk, next_run

cdef enum Kind:
    LOAD, STORE, ATOMIC

cdef struct Slots:
    uint64_t* stored
    uint64_t* loaded
    uint64_t* atomic
    uint64_t* same
    const uint64_t* differ
    int64_t shift  # of the tensor's first element, in units of the map
    int64_t scale  # units an element

cdef struct Agent:
    int64_t number
    uint64_t entry
    const int32_t* clock  # for each agent from `base` on: the first of its epochs that need not be over
    int64_t base
    int64_t width
    bint rest
    int32_t turn  # its own epochs before that one need not be over
    uint64_t over  # an entry that was found to come before: neighbours mostly have the same
    uint64_t read  # the same of loads and atomics

cdef struct Met:
    Py_ssize_t lane  # -1: none
    int64_t unit
    uint64_t other
    bint equal  # two stores of one value


cdef inline bint before(uint64_t entry, const Agent* me) noexcept nogil:
    """Whether an access is ordered before what the agent does now; there is none in an empty entry."""
    cdef int64_t other = <int64_t> (entry >> 30) - 1, k = other - me.base
    cdef int32_t epoch = <int32_t> ((entry >> 14) & 0xffff)
    if entry == 0 or (other == me.number and epoch >= me.turn):
        return True
    return me.clock[k] > epoch if 0 <= k < me.width else me.rest


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


cdef inline void meet(Met* met, Py_ssize_t lane, int64_t unit, uint64_t other, bint equal) noexcept nogil:
    """Keep the first; one of two equal values only as long as there is no other."""
    if met.lane < 0 or (met.equal and not equal):
        met.lane, met.unit, met.other, met.equal = lane, unit, other, equal


cdef inline bint alike(const Slots* m, int64_t unit) noexcept nogil:
    """Whether all that was stored there is the same."""
    cdef int64_t at = (unit - m.shift) // m.scale
    return m.differ != NULL and not (m.differ[at >> 6] >> (at & 63)) & 1


cdef uint64_t store_before(
    Slots* m, int64_t unit, Kind kind, Agent* me, Py_ssize_t lane, Met* met
) noexcept nogil:
    """A store that does not come before this access, or 0."""
    cdef uint64_t last = m.stored[unit], same = 0 if m.same == NULL or kind == LOAD else m.same[unit]
    if over(last, &me.over, me):
        if over(same, &me.read, me) or (kind == STORE and alike(m, unit)):
            return 0
        return same
    if kind != STORE or not alike(m, unit):
        return last
    meet(met, lane, unit, last, True)
    m.same[unit] = last
    return 0


cdef void touch(Slots* m, int64_t unit, Kind kind, Agent* me, Py_ssize_t lane, Met* met) noexcept nogil:
    """One unit in which there is something to look at. What was loaded may be stored again as it was."""
    cdef uint64_t other = 0
    cdef bint again = kind == STORE and m.stored[unit] != 0 and alike(m, unit)
    if m.stored != NULL and m.stored[unit] != 0:
        other = store_before(m, unit, kind, me, lane, met)
    if other == 0 and kind != LOAD and not again and m.loaded != NULL:
        other = unordered(m.loaded + 2 * unit, me)
    if other == 0 and kind != ATOMIC and m.atomic != NULL:
        other = unordered(m.atomic + 2 * unit, me)
    if other != 0:
        meet(met, lane, unit, other, False)
    if kind == STORE and not again and m.loaded != NULL:
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
    cdef uint64_t* same = NULL if kind == LOAD else m.same
    for unit in range(first, end):
        seen = 0 if same == NULL else same[unit]
        if stored != NULL and stored[unit] != me.over:
            seen |= stored[unit]
        if loaded != NULL:
            seen |= loaded[2 * unit] | loaded[2 * unit + 1]
        if atomic != NULL:
            seen |= atomic[2 * unit] | atomic[2 * unit + 1]
        if seen != 0:
            touch(m, unit, kind, me, lane, met)
        if kind == STORE:
            stored[unit] = entry
        elif kind != LOAD or stored == NULL or stored[unit] >> 14 != entry >> 14:  # what is its own anyway
            keep(mine + 2 * unit, me)


cdef Slots slots(list arrays, tuple place):
    cdef uint64_t[::1] stored = arrays[0], loaded = arrays[1], atomic = arrays[2], same = arrays[3]
    cdef const uint64_t[::1] differ = place[2]
    cdef Slots m
    m.stored = &stored[0] if stored.shape[0] else NULL
    m.loaded = &loaded[0] if loaded.shape[0] else NULL
    m.atomic = &atomic[0] if atomic.shape[0] else NULL
    m.same = &same[0] if same.shape[0] else NULL
    m.differ = &differ[0] if differ.shape[0] else NULL
    m.shift, m.scale = place[0], place[1]
    return m


cdef inline Agent agent(
    Py_ssize_t lane,
    const uint64_t[::1] entries,
    const int64_t[::1] bases,
    const int32_t[:, ::1] clocks,
    bint rest,
    int32_t turn,
) noexcept nogil:
    cdef Agent a
    a.entry = entries[lane]
    a.number = <int64_t> (a.entry >> 30) - 1
    a.base = bases[lane if bases.shape[0] > 1 else 0]
    a.width = clocks.shape[1] if clocks.shape[0] > 0 else 0
    a.clock = &clocks[lane if clocks.shape[0] > 1 else 0, 0] if a.width > 0 else NULL
    a.rest, a.turn = rest, turn
    a.over = a.read = a.entry
    return a


def visit(list arrays, tuple place, int kind, const uint64_t[::1] entries, tuple order, Runs runs):
    """Access memory, with an entry for each lane. Gives (lane, unit, entry, equal) of the first that is not
    ordered after an access before it, or None; equal: if there are only stores of one value. place: shift,
    scale, differ; order: bases, clocks, rest and, if own accesses before some epoch need not be over, that
    epoch.
    """
    cdef Slots m = slots(arrays, place)
    cdef const int64_t[::1] bases = order[0]
    cdef const int32_t[:, ::1] clocks = order[1]
    cdef bint rest = order[2]
    cdef int32_t turn = order[3] if len(order) > 3 else 0
    cdef Agent me
    cdef Met met
    cdef Walk w
    cdef Py_ssize_t p
    met.lane, met.unit, met.other, met.equal = -1, 0, 0, False
    with nogil:
        for p in range(entries.shape[0]):
            me = agent(p, entries, bases, clocks, rest, turn)
            runs.begin(p, &w)
            while next_run(&w):
                touch_run(&m, w.at, w.count, <Kind> kind, &me, p, &met)
    return None if met.lane < 0 else (met.lane, met.unit, met.other, met.equal)
