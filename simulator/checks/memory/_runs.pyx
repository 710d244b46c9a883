"""The elements that an access touches, as runs of those that lie behind each other in memory: of boxes or of
single elements, lane by lane. All that follows memory walks it in this way.
"""

from libc.stdint cimport int64_t, uint8_t

from ascendtile.simulator.interpreter._axes cimport LAST, begin_walk, is_empty


cdef class Runs:
    """starts (P or 1), strides, lows, highs (P or 1, 9): the box of each lane, or one for all of them."""

    def __init__(
        self,
        const int64_t[::1] starts,
        const int64_t[:, ::1] strides,
        const int64_t[:, ::1] lows,
        const int64_t[:, ::1] highs,
    ):
        self.lanes, self.boxes = starts.shape[0], True
        self.at, self.strides, self.lows, self.highs = starts, strides, lows, highs

    @staticmethod
    def of_elements(const int64_t[::1] at, const uint8_t[::1] chosen, Py_ssize_t lanes):
        """Single elements, as many of each lane; an empty `chosen` chooses all."""
        cdef Runs out = Runs.__new__(Runs)
        out.at, out.chosen, out.lanes = at, chosen, lanes
        return out

    cdef void begin(self, Py_ssize_t lane, Walk* w) noexcept nogil:
        """In front of the first run of a lane; of any lane where all touch the same."""
        cdef Py_ssize_t size, p = lane if self.lanes > 1 else 0
        w.k, w.end, w.axis, w.count = 0, 0, -1, 1
        if self.boxes:
            self.begin_box(p, w)
            return
        size = self.at.shape[0] // self.lanes
        if size > 0:
            w.k, w.end, w.places = p * size, (p + 1) * size, &self.at[0]
            w.chosen = &self.chosen[0] if self.chosen.shape[0] > 0 else NULL

    cdef void begin_box(self, Py_ssize_t p, Walk* w) noexcept nogil:
        w.steps = &self.strides[p if self.strides.shape[0] > 1 else 0, 0]
        w.lows = &self.lows[p if self.lows.shape[0] > 1 else 0, 0]
        w.highs = &self.highs[p if self.highs.shape[0] > 1 else 0, 0]
        if is_empty(w.lows, w.highs):
            return
        w.axis, w.after = LAST, self.at[p]
        if w.steps[LAST] == 1:
            w.axis, w.count = LAST - 1, w.highs[LAST] - w.lows[LAST]
            w.after += w.lows[LAST]
        w.after += begin_walk(w.index, w.jumps, w.steps, w.lows, w.highs, w.axis)
