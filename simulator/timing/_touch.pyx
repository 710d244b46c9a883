"""Which lines of a tensor a tile touches for the first time. Loops only; access.py has the rules."""

from libc.stdint cimport int64_t, uint8_t


cdef inline int64_t mark(uint8_t* seen, int64_t first, int64_t last, int64_t* total) noexcept nogil:
    """Mark lines first..last; gives how many were new."""
    cdef int64_t line, new = 0
    for line in range(first, last + 1):
        new += 1 - seen[line]
        seen[line] = 1
    total[0] += last - first + 1
    return new


def touch(
    uint8_t[::1] seen,
    int shift,
    int64_t itemsize,
    const int64_t[::1] starts,
    const int64_t[:, ::1] strides,
    const int64_t[:, ::1] lows,
    const int64_t[:, ::1] highs,
    int64_t[::1] new,
    int64_t[::1] total,
):
    """Per program: lines of 2^shift bytes that its box touches (`total`), and how many of them are `new`.

    The boxes lie inside the tensor. Programs are taken in their order.
    """
    cdef Py_ssize_t p, s, lo, hi
    cdef int64_t a, b, c, d, at, n, i
    cdef uint8_t* base = &seen[0]
    with nogil:
        for p in range(starts.shape[0]):
            s = p if strides.shape[0] > 1 else 0
            lo = p if lows.shape[0] > 1 else 0
            hi = p if highs.shape[0] > 1 else 0
            n = highs[hi, 4] - lows[lo, 4]
            if n <= 0:
                continue
            for a in range(lows[lo, 0], highs[hi, 0]):
                for b in range(lows[lo, 1], highs[hi, 1]):
                    for c in range(lows[lo, 2], highs[hi, 2]):
                        for d in range(lows[lo, 3], highs[hi, 3]):
                            at = starts[p] + a * strides[s, 0] + b * strides[s, 1] + c * strides[s, 2]
                            at += d * strides[s, 3] + lows[lo, 4] * strides[s, 4]
                            if strides[s, 4] == 1 or n == 1:
                                new[p] += mark(
                                    base,
                                    (at * itemsize) >> shift,
                                    ((at + n) * itemsize - 1) >> shift,
                                    &total[p],
                                )
                            else:
                                for i in range(n):
                                    new[p] += mark(
                                        base,
                                        ((at + i * strides[s, 4]) * itemsize) >> shift,
                                        ((at + i * strides[s, 4] + 1) * itemsize - 1) >> shift,
                                        &total[p],
                                    )
