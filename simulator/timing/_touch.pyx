"""Which lines of a tensor a tile touches for the first time. Loops only; access.py has the rules."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free


cdef struct Access:  # one load; its tiles come in rows, one tile for each program
    uint8_t* seen
    int shift
    int64_t itemsize
    const int64_t* starts
    const int64_t* strides
    const int64_t* lows
    const int64_t* highs
    int64_t stride_step, low_step, high_step  # 5 where each tile has its own, else 0
    int64_t* new
    int64_t* total
    int64_t* memo_start  # NULL for none: tiles that were touched before, by a hash of their start
    int64_t* memo_total
    int memo_bits


cdef inline int64_t mark(uint8_t* seen, int64_t first, int64_t last, int64_t* total) noexcept nogil:
    """Mark lines first..last; gives how many were new."""
    cdef int64_t line, new = 0
    for line in range(first, last + 1):
        new += 1 - seen[line]
        seen[line] = 1
    total[0] += last - first + 1
    return new


cdef void touch_tile(const Access* x, int64_t tile) noexcept nogil:
    """Mark what a tile touches."""
    cdef const int64_t* strides = x.strides + tile * x.stride_step
    cdef const int64_t* lows = x.lows + tile * x.low_step
    cdef const int64_t* highs = x.highs + tile * x.high_step
    cdef int64_t a, b, c, d, at, i, n = highs[4] - lows[4], new = 0, total = 0
    if n <= 0:
        return
    for a in range(lows[0], highs[0]):
        for b in range(lows[1], highs[1]):
            for c in range(lows[2], highs[2]):
                for d in range(lows[3], highs[3]):
                    at = x.starts[tile] + a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3]
                    at += lows[4] * strides[4]
                    if strides[4] == 1 or n == 1:
                        new += mark(
                            x.seen,
                            (at * x.itemsize) >> x.shift,
                            ((at + n) * x.itemsize - 1) >> x.shift,
                            &total,
                        )
                    else:
                        for i in range(n):
                            new += mark(
                                x.seen,
                                ((at + i * strides[4]) * x.itemsize) >> x.shift,
                                ((at + i * strides[4] + 1) * x.itemsize - 1) >> x.shift,
                                &total,
                            )
    x.new[tile], x.total[tile] = new, total


cdef inline void touch_once(const Access* x, int64_t tile) noexcept nogil:
    """As `touch_tile`, but nothing is new in a tile that was touched before."""
    cdef uint64_t place
    if not x.memo_start:
        touch_tile(x, tile)
        return
    place = (<uint64_t>x.starts[tile] * <uint64_t>0x1E3779B97F4A7C15) >> (64 - x.memo_bits)
    if x.memo_start[place] == x.starts[tile]:
        x.total[tile] = x.memo_total[place]
        return
    touch_tile(x, tile)
    x.memo_start[place], x.memo_total[place] = x.starts[tile], x.total[tile]


def touch(
    list accesses, const int32_t[::1] order, const int64_t[::1] rows, int64_t programs,
):
    """Touch row `rows[k]` of access `order[k]`, for each k in turn; within a row the programs in their order.

    An access is (map of lines, shift, itemsize, starts, strides, lows, highs, new, total, memo): lines have
    2^shift bytes; `new` and `total` (zeroed) become the lines of each tile that are new, and all.
    memo: None, or two arrays of a power of two entries: starts (-1: none) and totals of tiles of one form.
    The tiles lie inside the tensor.
    """
    cdef Py_ssize_t count = len(accesses), k
    cdef int64_t tile
    cdef Access* all_of_them = <Access*>calloc(max(1, count), sizeof(Access))
    if not all_of_them:
        raise MemoryError("no memory for the accesses of a loop")
    try:
        for k in range(count):
            fill(&all_of_them[k], accesses[k])
        with nogil:
            for k in range(order.shape[0]):
                for tile in range(rows[k] * programs, (rows[k] + 1) * programs):
                    touch_once(&all_of_them[order[k]], tile)
    finally:
        free(all_of_them)


cdef void fill(Access* x, tuple given) except *:
    cdef uint8_t[::1] seen = given[0]
    cdef const int64_t[::1] starts = given[3]
    cdef const int64_t[:, ::1] strides = given[4], lows = given[5], highs = given[6]
    cdef int64_t[::1] new = given[7], total = given[8], memo_start, memo_total
    x.seen, x.shift, x.itemsize, x.starts = &seen[0], given[1], given[2], &starts[0]
    x.strides, x.lows, x.highs = &strides[0, 0], &lows[0, 0], &highs[0, 0]
    x.stride_step = 5 if strides.shape[0] > 1 else 0
    x.low_step = 5 if lows.shape[0] > 1 else 0
    x.high_step = 5 if highs.shape[0] > 1 else 0
    x.new, x.total = &new[0], &total[0]
    if given[9] is not None:
        memo_start, memo_total = given[9]
        x.memo_start, x.memo_total = &memo_start[0], &memo_total[0]
        x.memo_bits = len(given[9][0]).bit_length() - 1
