"""Single elements of global memory: gathers, scatters and atomics over lists of addresses.

Memory is a window of elements; an address is an index in it. Lists are flat, in the order of programs and of
the elements of their tiles. The caller has checked types and lengths.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp

from ascendtile.simulator.precision._rounding cimport decode_row, encode_row

ctypedef fused element:
    int8_t
    uint8_t
    int16_t
    uint16_t
    int32_t
    uint32_t
    int64_t
    uint64_t
    float
    double

ctypedef fused bits:  # what is only moved: by width
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused integer:
    int8_t
    uint8_t
    int16_t
    uint16_t
    int32_t
    uint32_t
    int64_t
    uint64_t


def gather_plain(
    const bits[::1] memory, const int64_t[::1] at, const uint8_t[::1] chosen, bits[::1] out
):
    """out[i] = memory[at[i]] where chosen; other elements of `out` stay."""
    cdef Py_ssize_t i
    cdef bint every = chosen.shape[0] == 0
    with nogil:
        for i in range(at.shape[0]):
            if every or chosen[i]:
                out[i] = memory[at[i]]


def gather_half(
    const uint16_t[::1] memory, const int64_t[::1] at, const uint8_t[::1] chosen, float[::1] out, bint bf16
):
    """The same from fp16 or bf16 memory into float32."""
    cdef Py_ssize_t i
    cdef bint every = chosen.shape[0] == 0
    with nogil:
        for i in range(at.shape[0]):
            if every or chosen[i]:
                decode_row(&memory[at[i]], 1, &out[i], 1, bf16)


def scatter_plain(
    bits[::1] memory, const int64_t[::1] at, const uint8_t[::1] chosen, const bits[::1] tile
):
    """memory[at[i]] = tile[i] where chosen, in order: of equal addresses the last one stays."""
    cdef Py_ssize_t i
    cdef bint every = chosen.shape[0] == 0
    with nogil:
        for i in range(at.shape[0]):
            if every or chosen[i]:
                memory[at[i]] = tile[i]


def scatter_half(
    uint16_t[::1] memory, const int64_t[::1] at, const uint8_t[::1] chosen, const float[::1] tile, bint bf16
):
    """The same into fp16 or bf16 memory."""
    cdef Py_ssize_t i
    cdef bint every = chosen.shape[0] == 0
    with nogil:
        for i in range(at.shape[0]):
            if every or chosen[i]:
                encode_row(&tile[i], &memory[at[i]], 1, 1, bf16)


cdef inline bint is_nan(element x) noexcept nogil:
    """Integers have none."""
    if element is float or element is double:
        return x != x
    else:
        return False


cdef inline element combined(int what, element old, element x) noexcept nogil:
    """What memory holds afterwards: 0 add, 1 max, 2 min, 3 and, 4 or, 5 xor, 6 exchange (see `ATOMICS`)."""
    if what == 0:
        return <element> (old + x)
    if what == 1:
        if is_nan(x):
            return old
        return x if is_nan(old) or x > old else old
    if what == 2:
        if is_nan(x):
            return old
        return x if is_nan(old) or x < old else old
    if element in integer:
        if what == 3:
            return old & x
        if what == 4:
            return old | x
        if what == 5:
            return old ^ x
    return x


def atomic_plain(
    int what,
    element[::1] memory,
    const int64_t[::1] at,
    const uint8_t[::1] chosen,
    const element[::1] tile,
    const element[::1] expected,
    element[::1] old,
):
    """Combine one element after another; `old` gets what memory held before. 7: compare and swap bits."""
    cdef Py_ssize_t i
    cdef bint every = chosen.shape[0] == 0
    cdef element before
    with nogil:
        for i in range(at.shape[0]):
            if not (every or chosen[i]):
                continue
            before = memory[at[i]]
            old[i] = before
            if what < 7:
                memory[at[i]] = combined[element](what, before, tile[i])
            elif memcmp(&before, &expected[i], sizeof(element)) == 0:
                memory[at[i]] = tile[i]


def atomic_half(
    int what,
    uint16_t[::1] memory,
    const int64_t[::1] at,
    const uint8_t[::1] chosen,
    const float[::1] tile,
    const float[::1] expected,
    float[::1] old,
    bint bf16,
):
    """The same on fp16 or bf16 memory, computed in float32 and rounded each time."""
    cdef Py_ssize_t i
    cdef bint every = chosen.shape[0] == 0
    cdef float before, after
    with nogil:
        for i in range(at.shape[0]):
            if not (every or chosen[i]):
                continue
            decode_row(&memory[at[i]], 1, &before, 1, bf16)
            old[i] = before
            if what == 7 and memcmp(&before, &expected[i], 4) != 0:
                continue
            after = tile[i] if what == 7 else combined[float](what, before, tile[i])
            encode_row(&after, &memory[at[i]], 1, 1, bf16)
