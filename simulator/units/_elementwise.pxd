"""What other loops of the Vector unit take from `_elementwise`."""

from libc.stdint cimport uint32_t
from libc.string cimport memcpy


cdef inline float to_odd(double y) noexcept nogil:
    """float32 of y, rounded to odd: a later rounding to fewer bits is then the only one that counts."""
    cdef float f = <float> y
    cdef double back = f
    cdef uint32_t bits
    if back == y or y != y:
        return f
    memcpy(&bits, &f, 4)
    if bits & 1:
        return f
    # the neighbour of f on the other side of y; bits grow with magnitude
    if (back < y) == (y > 0):
        bits += 1
    else:
        bits -= 1
    memcpy(&f, &bits, 4)
    return f
