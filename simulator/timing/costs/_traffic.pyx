"""What a regular access is on its way, program by program. Loops only; transfers.py has the rules."""

from libc.stdint cimport int64_t

from ascendtile.simulator.interpreter._axes cimport AXES


cdef inline int64_t magnitude(int64_t x) noexcept nogil:
    return -x if x < 0 else x


cdef double weight(int64_t grain, int64_t length, int64_t line) noexcept nogil:
    """Of bursts of `length` bytes that start at multiples of `grain`."""
    cdef double lines
    if grain >= line:
        return 1.0
    lines = 1.0 + <double>(length - grain) / line
    return max(1.0, lines / max(1.0, <double>length / line))


def traffic(
    const int64_t[::1] starts, int64_t origin, const int64_t[:, ::1] strides, const int64_t[:, ::1] lows,
    const int64_t[:, ::1] highs, const int64_t[::1] shape, int plain, int64_t itemsize, int64_t block,
    int64_t line, int64_t request, double[::1] amount, int64_t[::1] bursts, int64_t[::1] elements,
    double[::1] lines,
):
    """Fill the last four: bytes, bursts, elements and requests past L2 of each program's access.

    starts to shape: those of a `Region`, whose window begins `origin` elements before element 0. plain: bit
    per axis whose stride is one number for all programs; bursts go on over such axes only.
    """
    cdef Py_ssize_t p, k, sp, lp, hp
    cdef int64_t total, run, width, count, bits, one, grain, length
    cdef bint whole, going
    with nogil:
        for p in range(starts.shape[0]):
            sp = p if strides.shape[0] > 1 else 0
            lp = p if lows.shape[0] > 1 else 0
            hp = p if highs.shape[0] > 1 else 0
            total = run = width = 1
            whole = going = True
            bits = magnitude(starts[p] - origin) * itemsize | line
            for k in range(AXES - 1, -1, -1):
                count = max(0, highs[hp, k] - lows[lp, k])
                total *= count
                if shape[k] == 1:
                    continue
                one = magnitude(strides[sp, k])
                going = going and plain >> k & 1 and one == width
                if not (going and whole):  # bursts that begin so far from each other
                    bits |= one * itemsize
                if going:
                    run = run * count if whole else run
                    whole = whole and count == shape[k]
                    width *= shape[k]
            run, grain = max(run, 1), bits & -bits
            elements[p] = total
            bursts[p] = total // run
            amount[p] = bursts[p] * ((run * itemsize + block - 1) // block * block)
            if grain < request or total > run:  # not the only burst, of whole requests
                amount[p] *= weight(grain, run * itemsize, line)
            length = (run * itemsize + grain - 1) // grain * grain
            lines[p] = bursts[p] * (1.0 + <double>(length - grain) / line)


def count_alike(
    const int64_t[::1] starts, const int64_t[::1] numbers, const int64_t[::1] iteration, int64_t cores,
    int64_t[::1] out,
):
    """Add to `out` how many lanes of one iteration and one wave of `cores` programs have the same start.

    Those of a wave follow each other.
    """
    cdef Py_ssize_t first = 0, end, i, k, n = starts.shape[0]
    cdef int64_t stop
    with nogil:
        while first < n:
            stop, end = (numbers[first] // cores + 1) * cores, first + 1
            while end < n and iteration[end] == iteration[first] and numbers[end] < stop:
                end += 1
            for i in range(first, end):
                for k in range(first, end):
                    out[i] += starts[i] == starts[k]
            first = end
