"""Walks over boxes of memory. Tables have a column for each axis, as many as `regions.MAX_RANK` says."""

from libc.stdint cimport int64_t

cdef enum:
    AXES = 9
    LAST = 8


cdef inline int64_t begin_walk(
    int64_t* index, int64_t* jumps, const int64_t* strides, const int64_t* lows, const int64_t* highs,
    int axis,
) noexcept nogil:
    """Begin a walk over axes 0 to `axis`, last one first: gives the first place; see `next_place`."""
    cdef int64_t at = 0, back = 0
    while axis >= 0:
        index[axis], jumps[axis] = lows[axis], strides[axis] - back
        at += lows[axis] * strides[axis]
        back += (highs[axis] - lows[axis] - 1) * strides[axis]
        axis -= 1
    return at


cdef inline int next_place(
    int64_t* index, const int64_t* lows, const int64_t* highs, int axis
) noexcept nogil:
    """The axis that goes on, those behind it begin anew: go on by jumps[axis]; -1 at the end."""
    while axis >= 0:
        index[axis] += 1
        if index[axis] < highs[axis]:
            return axis
        index[axis] = lows[axis]
        axis -= 1
    return -1


cdef inline bint is_empty(const int64_t* lows, const int64_t* highs) noexcept nogil:
    cdef int axis
    for axis in range(AXES):
        if lows[axis] >= highs[axis]:
            return True
    return False
