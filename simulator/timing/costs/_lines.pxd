"""Lines of L2 and when they were touched last, in blocks that need no stamp for each line.

A block of `BLOCK` lines that are touched together has stamps that rise by the same step, fall by it, or are
equal: its run says so (first stamp, step), and its stamps are not written. Step `EACH` says that they are.
All zero: never touched.
"""

from libc.stdint cimport int64_t, uint32_t


cdef enum:
    LINE_SHIFT = 7  # of the lines that clocks and rooms count, LINE_BYTES of l2/state.py
    BLOCK_SHIFT = 5
    BLOCK = 32  # lines of a map
    EACH = 1  # steps are even: a stamp is twice a clock


cdef struct Run:
    uint32_t first
    uint32_t step


cdef struct Access:  # one load or store; its tiles come in rows, one tile for each program
    uint32_t* stamps  # per line: twice the clock at its last touch, plus 1 if changed since; 0: never
    Run* runs  # per block
    bint write
    int shift
    int64_t weight  # lines of L2 that a line of this map is
    int64_t itemsize
    const int64_t* starts
    int64_t tiles
    const int64_t* strides
    const int64_t* lows
    const int64_t* highs
    int64_t stride_step, low_step, high_step  # AXES where each tile has its own, else 0
    int64_t* new
    int64_t* changed
    int64_t* total
    int64_t* memo  # NULL for none: start + 1, total and clock of tiles known, by a hash of their start
    int memo_bits


cdef struct Level:  # L2: see `_l2.touch`
    int64_t clock
    int64_t room
    int64_t owed
    int64_t written
    int64_t* queue  # pairs: the clock at which lines were changed, and how many
    int64_t head, tail, most
    bint back  # whether accesses are met from the last one on, see `_l2.touch_back`
    int64_t left  # lines that L2 has room for, then
    bint full  # whether a line was met that had no room
    int64_t* changed  # of lines changed, by age; the newest last
    int64_t parts


cdef inline uint32_t last_of(Run run) noexcept nogil:
    return run.first + (BLOCK - 1) * run.step


cdef inline uint32_t newest_of(Run run) noexcept nogil:
    return max(run.first, last_of(run))


cdef inline uint32_t oldest_of(Run run) noexcept nogil:
    return min(run.first, last_of(run))


cdef inline void spread(const Access* x, int64_t block) noexcept nogil:
    """Write the stamps of a block: from here on each line has its own."""
    cdef Run run = x.runs[block]
    cdef uint32_t* stamps = x.stamps + (block << BLOCK_SHIFT)
    cdef int k
    if run.step == EACH:
        return
    if run.first:
        for k in range(BLOCK):
            stamps[k] = run.first + <uint32_t>k * run.step
    x.runs[block] = Run(0, EACH)


cdef inline bint touch_cached(uint32_t* stamps, int64_t n, int64_t clock, int64_t room) noexcept nogil:
    """Read n lines if L2 holds all of them: two loops without branches, which become vector code."""
    cdef uint32_t least = <uint32_t>(max(<int64_t>1, clock - room) << 1)
    cdef uint32_t now = <uint32_t>(clock << 1)
    cdef uint32_t missing = 0
    cdef int64_t k
    for k in range(n):
        missing |= stamps[k] < least
    if missing:
        return False
    for k in range(n):
        stamps[k] = now | (stamps[k] & 1)
    return True


cdef inline bint touch_new(
    const Access* x, Level* level, int64_t tile, int64_t first, int64_t n
) noexcept nogil:
    """Touch n lines if none of them was ever touched: again two loops without branches."""
    cdef uint32_t* stamps = x.stamps + first
    cdef uint32_t seen = 0, stamp = <uint32_t>(level.clock << 1 | x.write), step = <uint32_t>(x.weight << 1)
    cdef int64_t k
    for k in range(n):
        seen |= stamps[k]
    if seen:
        return False
    for k in range(n):
        stamps[k] = stamp + <uint32_t>(k + 1) * step
    level.clock += n * x.weight
    x.new[tile] += n * x.weight
    x.changed[tile] += n * x.weight if x.write else 0
    return True


cdef inline void mark_each(
    const Access* x, Level* level, int64_t tile, int64_t first, int64_t last
) noexcept nogil:
    """Touch lines first..last of a block, each by its own stamp."""
    cdef int64_t line
    cdef uint32_t dirty
    spread(x, first >> BLOCK_SHIFT)
    if last - first >= 3:
        if not x.write and touch_cached(x.stamps + first, last - first + 1, level.clock, level.room):
            return
        if touch_new(x, level, tile, first, last - first + 1):
            return
    for line in range(first, last + 1):
        dirty = x.stamps[line] & 1
        if x.stamps[line] == 0 or level.clock - (x.stamps[line] >> 1) > level.room:
            x.new[tile] += x.weight
            level.clock += x.weight
            dirty = 0
        if x.write and not dirty:
            x.changed[tile] += x.weight
            dirty = 1
        x.stamps[line] = <uint32_t>(level.clock << 1 | dirty)


cdef inline bint mark_block(const Access* x, Level* level, int64_t tile, int64_t block) noexcept nogil:
    """Touch all lines of a block, if they are all there or all missing."""
    cdef Run run = x.runs[block]
    cdef uint32_t dirty = run.first & 1
    cdef int64_t n = BLOCK * x.weight
    if run.step == EACH:
        return False
    if run.first == 0 or level.clock - (newest_of(run) >> 1) > level.room:
        run.step = <uint32_t>(x.weight << 1)
        x.runs[block] = Run(<uint32_t>(level.clock << 1 | x.write) + run.step, run.step)
        level.clock += n
        x.new[tile] += n
        x.changed[tile] += n if x.write else 0
        return True
    if level.clock - (oldest_of(run) >> 1) > level.room:
        return False
    if x.write and not dirty:
        x.changed[tile] += n
        dirty = 1
    x.runs[block] = Run(<uint32_t>(level.clock << 1 | dirty), 0)
    return True


cdef inline int64_t last_in_block(int64_t line, int64_t last) noexcept nogil:
    return min(last, line | (BLOCK - 1))


cdef inline void change_back(Level* level, int64_t clock, int64_t lines) noexcept nogil:
    level.changed[clock * level.parts // (level.room + 2)] += lines


cdef inline bint all_new(const Access* x, int64_t first, int64_t last) noexcept nogil:
    """Whether none of these lines was ever touched."""
    cdef int64_t line = first, end, k
    cdef uint32_t seen = 0
    while line <= last and not seen:
        end = last_in_block(line, last)
        seen = x.runs[line >> BLOCK_SHIFT].first
        if x.runs[line >> BLOCK_SHIFT].step == EACH:
            for k in range(line, end + 1):
                seen |= x.stamps[k]
        line = end + 1
    return not seen


cdef inline bint new_back(const Access* x, Level* level, int64_t first, int64_t last) noexcept nogil:
    """`mark_back` of lines of which none was met, if all have room."""
    cdef int64_t n = (last - first + 1) * x.weight, line = first, end, k
    cdef uint32_t stamp = <uint32_t>(level.clock << 1 | x.write), step = <uint32_t>(x.weight << 1)
    if n > level.left or not all_new(x, first, last):
        return False
    while line <= last:
        end = last_in_block(line, last)
        if end - line == BLOCK - 1:
            x.runs[line >> BLOCK_SHIFT] = Run(stamp - <uint32_t>(line - first) * step, 0 - step)
        else:
            spread(x, line >> BLOCK_SHIFT)
            for k in range(line, end + 1):
                x.stamps[k] = stamp - <uint32_t>(k - first) * step
        line = end + 1
    if x.write:
        change_back(level, level.clock, n)
    level.clock -= n
    level.left -= n
    return True


cdef inline void each_back(const Access* x, Level* level, int64_t line) noexcept nogil:
    """A line that was met is newer, one that was not is next in age."""
    cdef uint32_t stamp = x.stamps[line]
    if stamp == 0:
        if level.left < x.weight:
            level.full = True
            return
        stamp = <uint32_t>(level.clock << 1)
        level.clock -= x.weight
        level.left -= x.weight
    if x.write and not stamp & 1:
        change_back(level, stamp >> 1, x.weight)
    x.stamps[line] = stamp | x.write


cdef inline void mark_back(const Access* x, Level* level, int64_t first, int64_t last) noexcept nogil:
    """Lines first..last."""
    cdef int64_t line = first, end, k
    cdef Run run
    if new_back(x, level, first, last):
        return
    while line <= last:
        end = last_in_block(line, last)
        run = x.runs[line >> BLOCK_SHIFT]
        if run.step == EACH or run.first == 0 or (x.write and not run.first & 1):
            spread(x, line >> BLOCK_SHIFT)
            for k in range(line, end + 1):
                each_back(x, level, k)
        line = end + 1


cdef inline void mark(
    const Access* x, Level* level, int64_t tile, int64_t first, int64_t last
) noexcept nogil:
    """Touch lines first..last."""
    cdef int64_t line = first, end
    if level.back:
        mark_back(x, level, first, last)
        return
    x.total[tile] += (last - first + 1) * x.weight
    while line <= last:
        end = last_in_block(line, last)
        if end - line < BLOCK - 1 or not mark_block(x, level, tile, line >> BLOCK_SHIFT):
            mark_each(x, level, tile, line, end)
        line = end + 1
