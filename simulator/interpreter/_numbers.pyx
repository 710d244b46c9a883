"""Integer scalars of all programs: ends, quotients and remainders as in C; the bounds test. Loops only."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from ascendtile.simulator.interpreter._axes cimport AXES


def ends(x):
    """(smallest, largest) of an array that is not empty."""
    cdef const int64_t[::1] view
    cdef int64_t i, low, high
    try:
        view = x
    except (ValueError, TypeError):  # of another type, or not in one piece
        return int(x.min()), int(x.max())
    low = high = view[0]
    with nogil:
        for i in range(1, view.shape[0]):
            low = min(low, view[i])
            high = max(high, view[i])
    return low, high


def all_bits(const int64_t[::1] x):
    """The bits that any of them has."""
    cdef int64_t i, out = 0
    for i in range(x.shape[0]):
        out |= x[i]
    return out


@cython.cdivision(True)
cdef inline int64_t quotient(int64_t a, int64_t b) noexcept nogil:
    """Toward zero; the smallest number by -1 wraps."""
    return <int64_t>(0 - <uint64_t>a) if b == -1 else a // b


def divide(const int64_t[::1] a, const int64_t[::1] b, int64_t[::1] out, bint remainder):
    """out = a / b toward zero, or what is left of `a`; one number stands for all. No `b` is 0."""
    cdef int64_t i, x, y, q
    cdef int64_t step_a = a.shape[0] > 1, step_b = b.shape[0] > 1
    with nogil:
        for i in range(out.shape[0]):
            x, y = a[i * step_a], b[i * step_b]
            q = quotient(x, y)
            out[i] = <int64_t>(<uint64_t>x - <uint64_t>q * <uint64_t>y) if remainder else q


def find_outside(
    const int64_t[::1] starts,
    const int64_t[:, ::1] strides,
    const int64_t[:, ::1] lows,
    const int64_t[:, ::1] highs,
    int64_t elements,
):
    """First program whose box leaves [0, elements), or -1; an empty box touches nothing."""
    cdef Py_ssize_t p, k, sp, lp, hp, found = -1
    cdef int64_t low = 0, high = 0, first, last, s
    cdef bint empty = False, differ = strides.shape[0] > 1 or lows.shape[0] > 1 or highs.shape[0] > 1
    with nogil:
        for p in range(starts.shape[0]):
            if differ or p == 0:
                sp = p if strides.shape[0] > 1 else 0
                lp = p if lows.shape[0] > 1 else 0
                hp = p if highs.shape[0] > 1 else 0
                low = high = 0
                empty = False
                for k in range(AXES):
                    first, last, s = lows[lp, k], highs[hp, k] - 1, strides[sp, k]
                    empty = empty or last < first
                    low += min(s * first, s * last)
                    high += max(s * first, s * last)
            if not empty and (starts[p] + low < 0 or starts[p] + high >= elements):
                found = p
                break
    return found


def first_outside(const int64_t[::1] at, const uint8_t[::1] chosen, int64_t elements):
    """Position of the first chosen address outside of [0, elements), or -1. An empty `chosen` chooses all."""
    cdef Py_ssize_t i, found = -1
    cdef bint every = chosen.shape[0] == 0
    with nogil:
        for i in range(at.shape[0]):
            if (at[i] < 0 or at[i] >= elements) and (every or chosen[i]):
                found = i
                break
    return found
