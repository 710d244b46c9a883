"""What the maps of memory walk: see _runs.pyx."""

from libc.stdint cimport int64_t, uint8_t

from ascendtile.simulator.interpreter._axes cimport AXES, next_place


cdef struct Walk:
    int64_t at  # window index of the first element of the run
    int64_t count
    # boxes: tables of nine axes; the run is the last one if its elements lie behind each other
    const int64_t* steps
    const int64_t* lows
    const int64_t* highs
    int64_t[AXES] index, jumps
    int64_t after  # where the next run begins
    int axis  # the last one that is walked; -1 behind the last run
    # single elements
    const int64_t* places
    const uint8_t* chosen  # NULL: all
    Py_ssize_t k
    Py_ssize_t end


cdef class Runs:
    cdef readonly Py_ssize_t lanes
    cdef const int64_t[::1] at
    cdef const uint8_t[::1] chosen
    cdef const int64_t[:, ::1] strides
    cdef const int64_t[:, ::1] lows
    cdef const int64_t[:, ::1] highs
    cdef bint boxes
    cdef void begin(self, Py_ssize_t lane, Walk* w) noexcept nogil
    cdef void begin_box(self, Py_ssize_t p, Walk* w) noexcept nogil


cdef inline bint next_run(Walk* w) noexcept nogil:
    """Go to the next run; False behind the last one."""
    cdef int axis
    cdef Py_ssize_t k = w.k
    while k < w.end and w.chosen != NULL and not w.chosen[k]:
        k += 1
    if k < w.end:
        w.k, w.at = k + 1, w.places[k]
        return True
    if w.axis < 0:
        return False
    w.at = w.after
    axis = next_place(w.index, w.lows, w.highs, w.axis)
    if axis < 0:
        w.axis = -1
    else:
        w.after += w.jumps[axis]
    return True
