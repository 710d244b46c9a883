"""Offsets of slots, first fit. Loops only; packing.py has the rules."""

from libc.stdint cimport int64_t, uint8_t

cdef enum:
    ALIVE, MOVED  # whom a slot keeps off: who is alive with it; also where one is moved


cdef struct Slots:  # in the order in which they are placed; by_offset: those placed so far, lowest first
    const int64_t* total
    const int64_t* size
    const int64_t* copies
    int64_t* offset
    int64_t* by_offset
    uint8_t* kept_off  # of those placed: whether the slot in hand shares no bytes with it


cdef inline int64_t rest_of(int64_t distance, int64_t period) noexcept nogil:
    """From 0 on, of negative distances, too."""
    return (distance % period + period) % period


cdef int64_t lowest(const Slots* x, int64_t s, int64_t placed, int64_t period, int64_t rest) noexcept nogil:
    """The lowest free place, of those that leave `rest` when divided by `period`."""
    cdef int64_t k, p, at = rest
    for k in range(placed):
        p = x.by_offset[k]
        if not x.kept_off[p]:
            continue
        if x.offset[p] - at >= x.total[s]:
            break
        if x.offset[p] + x.total[p] > at:
            at = x.offset[p] + x.total[p]
            at += rest_of(rest - at, period)
    return at


cdef bint meet(
    const Slots* x, int64_t s, int64_t at, int64_t p, int64_t period, int64_t span
) noexcept nogil:
    """Whether slot s at that offset shares a group of banks with slot p, in any copy."""
    cdef int64_t k, apart
    for k in range(max(x.copies[s], x.copies[p])):
        apart = at + k % x.copies[s] * x.size[s] - x.offset[p] - k % x.copies[p] * x.size[p]
        if not span <= rest_of(apart, period) <= period - span:
            return True
    return False


cdef int64_t apart_from(
    const Slots* x, int64_t s, int64_t placed, const uint8_t* near, int64_t period, int64_t span
) noexcept nogil:
    """The place at which the fewest meet it: the lowest, or half a period from a slot that is near."""
    cdef int64_t p, q, at, met, best = x.offset[s], least = -1
    for p in range(-1, placed):
        if p >= 0 and not near[p]:
            continue
        at = x.offset[s] if p < 0 else lowest(x, s, placed, period, (x.offset[p] + period // 2) % period)
        met = 0
        for q in range(placed):
            if near[q] and meet(x, s, at, q, period, span):
                met += 1
        if least < 0 or met < least or (met == least and at < best):
            best, least = at, met
    return best


def place(
    const int64_t[::1] total, const int64_t[::1] size, const int64_t[::1] copies, const int64_t[::1] start,
    const int64_t[::1] end, const uint8_t[::1] moved, const uint8_t[:, ::1] near, int64_t period,
    int64_t span, int sharing, int64_t capacity, int64_t[::1] offset, int64_t[::1] by_offset,
    uint8_t[::1] kept_off,
):
    """Fill `offset`, one slot after the other. near: empty, or which slots one instruction reads together.

    sharing: ALIVE, MOVED, or any: whom a slot keeps off while it ends below `capacity` that way.
    """
    cdef int64_t s, p, k, n = total.shape[0]
    cdef Slots x
    if n == 0:
        return
    x = Slots(&total[0], &size[0], &copies[0], &offset[0], &by_offset[0], &kept_off[0])
    with nogil:
        for s in range(n):
            if sharing != ALIVE:
                for p in range(s):
                    kept_off[p] = (start[p] <= end[s] and start[s] <= end[p]) or (
                        sharing != MOVED or moved[p] or moved[s]
                    )
                offset[s] = lowest(&x, s, s, 1, 0)
            if sharing == ALIVE or offset[s] + total[s] > capacity:
                for p in range(s):
                    kept_off[p] = start[p] <= end[s] and start[s] <= end[p]
                offset[s] = lowest(&x, s, s, 1, 0)
            if near.shape[0]:
                offset[s] = apart_from(&x, s, s, &near[s, 0], period, span)
            k = s
            while k > 0 and offset[by_offset[k - 1]] > offset[s]:
                by_offset[k] = by_offset[k - 1]
                k -= 1
            by_offset[k] = s
