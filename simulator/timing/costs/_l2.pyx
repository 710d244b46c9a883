"""Which lines of a tensor a tile finds in L2. Loops only; l2_cache.py has the rules."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from ascendtile.simulator.interpreter._axes cimport AXES, LAST, begin_walk, is_empty, next_place
from ascendtile.simulator.timing.costs._lines cimport (
    BLOCK_SHIFT, EACH, LINE_SHIFT, Access, Level, Run, last_in_block, mark, newest_of
)


cdef inline int joined(
    const int64_t* strides, const int64_t* lows, const int64_t* highs, int64_t* at, int64_t* n
) noexcept nogil:
    """Outer axes that are left when those that go on where the run of n elements at `at` ends are in it."""
    cdef int left = LAST
    while left > 0:
        if highs[left - 1] - lows[left - 1] != 1 and strides[left - 1] != n[0]:
            break
        left -= 1
        at[0] += lows[left] * strides[left]
        n[0] *= highs[left] - lows[left]
    return left


cdef inline void share_lines(const Access* x, int64_t tile, int64_t size) noexcept nogil:
    """Of a tile of `size` bytes in pieces shorter than a line, those that share a line count once."""
    cdef int64_t lines = (size + (<int64_t>1 << x.shift) - 1) >> x.shift
    x.total[tile] = min(x.total[tile], max(x.new[tile], lines * x.weight))


cdef void touch_tile(const Access* x, Level* level, int64_t tile) noexcept nogil:
    """Touch all lines of a tile."""
    cdef const int64_t* strides = x.strides + tile * x.stride_step
    cdef const int64_t* lows = x.lows + tile * x.low_step
    cdef const int64_t* highs = x.highs + tile * x.high_step
    cdef int64_t[AXES] index, jumps
    cdef int64_t n = highs[LAST] - lows[LAST], step = strides[LAST], at = x.starts[tile] + lows[LAST] * step
    cdef int64_t i, k, pieces = 0
    cdef int axis = 0, left = LAST
    if is_empty(lows, highs):
        return
    if step == 1 or n == 1:
        left = joined(strides, lows, highs, &at, &n)
    at += begin_walk(index, jumps, strides, lows, highs, left - 1)
    while axis >= 0:
        pieces += 1
        if step == 1 or n == 1 or left < LAST:
            mark(x, level, tile, (at * x.itemsize) >> x.shift, ((at + n) * x.itemsize - 1) >> x.shift)
        else:
            for k in range(n):
                i = at + k * step
                mark(x, level, tile, (i * x.itemsize) >> x.shift, ((i + 1) * x.itemsize - 1) >> x.shift)
        axis = next_place(index, lows, highs, left - 1)
        at += jumps[axis] if axis >= 0 else 0
    if n * x.itemsize < <int64_t>1 << x.shift and not level.back:
        share_lines(x, tile, pieces * n * x.itemsize)


cdef inline void touch_once(const Access* x, Level* level, int64_t tile) noexcept nogil:
    """As `touch_tile`, but nothing is new in a tile that was touched before and that L2 still holds."""
    cdef int64_t* known
    if not x.memo:
        touch_tile(x, level, tile)
        return
    known = x.memo + 3 * ((<uint64_t>x.starts[tile] * <uint64_t>0x1E3779B97F4A7C15) >> (64 - x.memo_bits))
    if known[0] == x.starts[tile] + 1 and level.clock - known[2] <= level.room:
        x.total[tile] = known[1]
    else:
        touch_tile(x, level, tile)
    known[0], known[1], known[2] = x.starts[tile] + 1, x.total[tile], level.clock


cdef inline void push(Level* level, int64_t lines) noexcept nogil:
    """Note lines that were changed now; where there is no room for more notes, with the last ones."""
    cdef int64_t k
    if level.tail == level.most and level.head > 0:
        for k in range(2 * (level.tail - level.head)):
            level.queue[k] = level.queue[2 * level.head + k]
        level.tail -= level.head
        level.head = 0
    if level.tail == level.most:
        level.queue[2 * level.tail - 1] += lines
        return
    level.queue[2 * level.tail] = level.clock
    level.queue[2 * level.tail + 1] = lines
    level.tail += 1


cdef inline int64_t bytes_of(const Access* x, int64_t tile) noexcept nogil:
    """Of the elements of a tile."""
    cdef const int64_t* lows = x.lows + tile * x.low_step
    cdef const int64_t* highs = x.highs + tile * x.high_step
    cdef int64_t n = x.itemsize
    cdef int k
    for k in range(AXES):
        n *= max(<int64_t>0, highs[k] - lows[k])
    return n


cdef void settle(const Access* x, Level* level, int64_t begin, int64_t end) noexcept nogil:
    """Tiles that a store just touched: `new` becomes all of their lines if memory has to take some first.

    A store waits for as many lines as its bytes fill: where four share a line, one does not wait for all.
    """
    cdef int64_t tile, fresh = 0, lines = 0, size = 0
    cdef bint late
    for tile in range(begin, end):
        fresh += x.changed[tile]
        lines += x.total[tile]
        size += bytes_of(x, tile)
    lines = min(lines, ((size - 1) >> LINE_SHIFT) + 1)
    if fresh:
        push(level, fresh)
    while level.head < level.tail and level.queue[2 * level.head] < level.clock - level.room:
        level.owed += level.queue[2 * level.head + 1]
        level.head += 1
    late = lines > 0 and level.owed >= lines
    if late:
        level.owed -= lines
        level.written += lines
    for tile in range(begin, end):
        if x.total[tile] == 0:
            x.total[tile] = 1
        x.new[tile] = x.total[tile] if late else 0


def touch(
    list accesses, const int32_t[::1] order, const int64_t[::1] first, const int32_t[::1] cut,
    const int64_t[:, ::1] cuts, int64_t room, int64_t[::1] state, int64_t[:, ::1] queue,
):
    """Touch tiles wave by wave: for each k in turn the wave's tiles of access `order[k]`, from
    `first[k]` on.

    cuts[cut[k], w]: where wave w begins among the tiles of a row; the last column is their number.

    An access is (map of lines, write, shift, weight, itemsize, starts, strides, lows, highs, new, changed,
    total, memo, runs): lines have 2^shift bytes; of each tile `new` (zeroed, as the next two) becomes the
    lines that L2 does not hold, `changed` those that a write changes first, `total` all. memo: None, or a
    power of two rows of start + 1 (0: none), total and clock of tiles of one form. runs: of the map's
    blocks, see `_lines.pxd`. The tiles lie inside the tensor. Of a write `new` is `total` where memory has
    to take as many lines first, else 0.

    state: the clock (lines that came into L2 so far; a line is there while at most `room` came since its
    last touch), lines that left L2 changed and whose write to memory is not charged, lines whose write is,
    and where the notes in `queue` of changed lines begin and end.
    """
    cdef int64_t most = queue.shape[0]
    cdef Level level = Level(
        state[0], room, state[1], state[2], &queue[0, 0], state[3], state[4], most, False, 0, False, NULL, 0
    )
    cdef Access* all_of_them = filled(accesses)
    try:
        check(accesses, all_of_them, order, first, cut, cuts)
        with nogil:
            walk(all_of_them, &level, order, first, cut, cuts)
    finally:
        state[0], state[1], state[2] = level.clock, level.owed, level.written
        state[3], state[4] = level.head, level.tail
        free(all_of_them)


def touch_back(
    list accesses, const int32_t[::1] order, const int64_t[::1] first, const int32_t[::1] cut,
    const int64_t[:, ::1] cuts, int64_t room, int64_t[::1] changed,
):
    """What L2 holds after tiles were touched as `touch` does it; gives whether it holds all of them.

    Tiles are met from the last one on: the lines met first are the newest, and `room` different ones are
    there in the end, whatever was before. The maps of lines are zero before; their stamps become those at
    a clock of room + 1. changed: becomes lines that were written since they came, by the part of that
    clock at which they were touched last.
    """
    cdef int64_t parts = changed.shape[0]
    cdef Level level = Level(room + 1, room, 0, 0, NULL, 0, 0, 0, True, room, False, &changed[0], parts)
    cdef Access* all_of_them = filled(accesses)
    try:
        check(accesses, all_of_them, order, first, cut, cuts)
        with nogil:
            walk_back(all_of_them, &level, order, first, cut, cuts)
    finally:
        free(all_of_them)
    return not level.full


cdef void walk(
    const Access* x, Level* level,
    const int32_t[::1] order, const int64_t[::1] first, const int32_t[::1] cut,
    const int64_t[:, ::1] cuts,
) noexcept nogil:
    """All tiles, wave by wave."""
    cdef Py_ssize_t k, w
    cdef int64_t tile, begin, end
    for w in range(cuts.shape[1] - 1):
        for k in range(order.shape[0]):
            begin = first[k] + cuts[cut[k], w]
            end = first[k] + cuts[cut[k], w + 1]
            for tile in range(begin, end):
                touch_once(&x[order[k]], level, tile)
            if x[order[k]].write and end > begin:
                settle(&x[order[k]], level, begin, end)


cdef void walk_back(
    const Access* x, Level* level,
    const int32_t[::1] order, const int64_t[::1] first, const int32_t[::1] cut,
    const int64_t[:, ::1] cuts,
) noexcept nogil:
    """All tiles, from the last one of the last wave on, until L2 is full."""
    cdef Py_ssize_t k, w
    cdef int64_t tile, begin, end
    for w in range(cuts.shape[1] - 2, -1, -1):
        for k in range(order.shape[0] - 1, -1, -1):
            begin = first[k] + cuts[cut[k], w]
            end = first[k] + cuts[cut[k], w + 1]
            for tile in range(end - 1, begin - 1, -1):
                touch_once(&x[order[k]], level, tile)
            if level.full:
                return


cdef Access* filled(list accesses) except NULL:
    """They as C knows them, to be freed."""
    cdef Py_ssize_t k
    cdef Access* found = <Access*>calloc(max(1, len(accesses)), sizeof(Access))
    if not found:
        raise MemoryError("no memory for the accesses of a loop")
    try:
        for k in range(len(accesses)):
            fill(&found[k], accesses[k])
    except BaseException:
        free(found)
        raise
    return found


cdef void check(
    list accesses, const Access* x,
    const int32_t[::1] order, const int64_t[::1] first, const int32_t[::1] cut,
    const int64_t[:, ::1] cuts,
) except *:
    """Raise `IndexError` if a row has tiles that its access does not have."""
    cdef Py_ssize_t k
    cdef int64_t end, have
    for k in range(order.shape[0]):
        end = first[k] + cuts[cut[k], cuts.shape[1] - 1]
        if end > x[order[k]].tiles:
            have = x[order[k]].tiles
            raise IndexError(f"tiles up to {end} of access {order[k]}, which has {have}")


def held(const uint32_t[::1] stamps, const uint32_t[:, ::1] runs, int64_t clock, int64_t room):
    """(lines of a map that L2 holds, those that are changed, behind the last one, the newest's clock)."""
    cdef int64_t lines = 0, changed = 0, stop = 0, line = 0, end, k
    cdef uint32_t least = <uint32_t>(max(<int64_t>1, clock - room) << 1), newest = 0, stamp
    cdef Run run
    with nogil:
        while line < stamps.shape[0]:
            end = last_in_block(line, stamps.shape[0] - 1)
            run = Run(runs[line >> BLOCK_SHIFT, 0], runs[line >> BLOCK_SHIFT, 1])
            if run.step == EACH or newest_of(run) >= least:
                for k in range(line, end + 1):
                    stamp = run.first + <uint32_t>(k - line) * run.step
                    stamp = stamps[k] if run.step == EACH else stamp
                    if stamp >= least:
                        lines += 1
                        changed += stamp & 1
                        stop = k + 1
                        newest = max(newest, stamp)
            line = end + 1
    return lines, changed, stop, newest >> 1


cdef void fill(Access* x, tuple given) except *:
    cdef uint32_t[::1] stamps = given[0]
    cdef uint32_t[:, ::1] runs = given[13]
    cdef const int64_t[::1] starts = given[5]
    cdef const int64_t[:, ::1] strides = given[6], lows = given[7], highs = given[8]
    cdef int64_t[::1] new = given[9], changed = given[10], total = given[11]
    cdef int64_t[:, ::1] memo
    x.stamps, x.write, x.shift, x.weight, x.itemsize = &stamps[0], given[1], given[2], given[3], given[4]
    x.starts, x.tiles = &starts[0], starts.shape[0]
    x.strides, x.lows, x.highs = &strides[0, 0], &lows[0, 0], &highs[0, 0]
    x.runs = <Run*>&runs[0, 0]
    x.stride_step = AXES if strides.shape[0] > 1 else 0
    x.low_step = AXES if lows.shape[0] > 1 else 0
    x.high_step = AXES if highs.shape[0] > 1 else 0
    x.new, x.changed, x.total = &new[0], &changed[0], &total[0]
    if given[12] is not None:
        memo = given[12]
        x.memo, x.memo_bits = &memo[0, 0], int(memo.shape[0]).bit_length() - 1
