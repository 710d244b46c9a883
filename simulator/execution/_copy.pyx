"""Copies between global memory and tiles: boxes of strided rows, decoded and encoded on the way.

Memory is a window of bytes; a tile is (programs, d0, ..., d7), contiguous. Rows are the last axis. The
callers validate shapes and allocate; here is the loop.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t

from ascendtile.simulator.interpreter._axes cimport AXES, LAST, begin_walk, is_empty, next_place
from ascendtile.simulator.precision._rounding cimport decode_row, encode_row

ctypedef void (*row_t)(const uint8_t* src, Py_ssize_t stride, uint8_t* dst, Py_ssize_t n) noexcept nogil

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    /* Rows of whole elements: read into a tile, written to memory, added to memory (integers wrap). */
    #define ROW(NAME) static inline void NAME(const uint8_t *src, ptrdiff_t stride, uint8_t *dst, ptrdiff_t n)
    #define COPY_ADD(NAME, T)                                                                   \\
    ROW(copy_add_##NAME)                                                                        \\
    {                                                                                           \\
        if (stride == 1) for (ptrdiff_t i = 0; i < n; i++) ((T *)dst)[i] += ((const T *)src)[i]; \\
        else for (ptrdiff_t i = 0; i < n; i++) ((T *)dst)[i * stride] += ((const T *)src)[i];   \\
    }
    #define COPY_ROWS(BITS, T)                                                                  \\
    ROW(copy_read_##BITS)                                                                       \\
    {                                                                                           \\
        if (stride == 1) memcpy(dst, src, sizeof(T) * n);                                       \\
        else for (ptrdiff_t i = 0; i < n; i++) ((T *)dst)[i] = ((const T *)src)[i * stride];    \\
    }                                                                                           \\
    ROW(copy_write_##BITS)                                                                      \\
    {                                                                                           \\
        if (stride == 1) memcpy(dst, src, sizeof(T) * n);                                       \\
        else for (ptrdiff_t i = 0; i < n; i++) ((T *)dst)[i * stride] = ((const T *)src)[i];    \\
    }                                                                                           \\
    COPY_ADD(BITS, T)
    COPY_ROWS(8, uint8_t)
    COPY_ROWS(16, uint16_t)
    COPY_ROWS(32, uint32_t)
    COPY_ROWS(64, uint64_t)
    COPY_ADD(f32, float)

    /* Added in float32 and rounded. */
    #define COPY_ADD_HALF(NAME)                                                                 \\
    ROW(copy_add_##NAME)                                                                        \\
    {                                                                                           \\
        for (ptrdiff_t i = 0; i < n; i++) {                                                     \\
            uint16_t *at = (uint16_t *)dst + i * stride;                                        \\
            const float sum = ascendtile_##NAME##_decode(*at) + ((const float *)src)[i];        \\
            *at = ascendtile_##NAME##_encode(sum);                                              \\
        }                                                                                       \\
    }
    COPY_ADD_HALF(f16)
    COPY_ADD_HALF(bf16)
    """
    row_t read_8 "copy_read_8"
    row_t read_16 "copy_read_16"
    row_t read_32 "copy_read_32"
    row_t read_64 "copy_read_64"
    row_t write_8 "copy_write_8"
    row_t write_16 "copy_write_16"
    row_t write_32 "copy_write_32"
    row_t write_64 "copy_write_64"
    row_t add_8 "copy_add_8"
    row_t add_16 "copy_add_16"
    row_t add_32 "copy_add_32"
    row_t add_f32 "copy_add_f32"
    row_t add_f16 "copy_add_f16"
    row_t add_bf16 "copy_add_bf16"


cdef void read_f16(const uint8_t* src, Py_ssize_t stride, uint8_t* dst, Py_ssize_t n) noexcept nogil:
    decode_row(<const uint16_t*> src, stride, <float*> dst, n, False)


cdef void read_bf16(const uint8_t* src, Py_ssize_t stride, uint8_t* dst, Py_ssize_t n) noexcept nogil:
    decode_row(<const uint16_t*> src, stride, <float*> dst, n, True)


cdef void write_f16(const uint8_t* src, Py_ssize_t stride, uint8_t* dst, Py_ssize_t n) noexcept nogil:
    encode_row(<const float*> src, <uint16_t*> dst, stride, n, False)


cdef void write_bf16(const uint8_t* src, Py_ssize_t stride, uint8_t* dst, Py_ssize_t n) noexcept nogil:
    encode_row(<const float*> src, <uint16_t*> dst, stride, n, True)


cdef row_t pick_row(int kind, bint reading, bint adding) noexcept nogil:
    """Row function by number, as `_MOVE` and `_ADD` of copy.py count them."""
    if adding:
        return (add_f32 if kind == 0 else add_32 if kind == 1 else add_f16 if kind == 2 else
                add_bf16 if kind == 3 else add_16 if kind == 4 else add_8)
    if reading:
        return (read_8 if kind == 0 else read_16 if kind == 1 else read_32 if kind == 2 else
                read_64 if kind == 3 else read_f16 if kind == 4 else read_bf16)
    return (write_8 if kind == 0 else write_16 if kind == 1 else write_32 if kind == 2 else
            write_64 if kind == 3 else write_f16 if kind == 4 else write_bf16)


cdef void walk_box(
    row_t row,
    uint8_t* memory,
    uint8_t* tile,
    int64_t start,
    const int64_t* stride,
    const int64_t* low,
    const int64_t* high,
    const int64_t* shape,
    Py_ssize_t itemsize,
    Py_ssize_t host_itemsize,
    bint reading,
) noexcept nogil:
    """Apply `row` to every row of the box; the tile is contiguous, memory is strided."""
    cdef int64_t[AXES] index, jumps, widths, places
    cdef int64_t n = high[LAST] - low[LAST], m, t
    cdef int axis
    if is_empty(low, high):
        return
    widths[LAST] = 1
    for axis in range(LAST, 0, -1):
        widths[axis - 1] = widths[axis] * shape[axis]
    m = start + low[LAST] * stride[LAST] + begin_walk(index, jumps, stride, low, high, LAST - 1)
    t = low[LAST] + begin_walk(index, places, widths, low, high, LAST - 1)
    axis = 0
    while axis >= 0:
        if reading:
            row(memory + m * itemsize, stride[LAST], tile + t * host_itemsize, n)
        else:
            row(tile + t * host_itemsize, stride[LAST], memory + m * itemsize, n)
        axis = next_place(index, low, high, LAST - 1)
        if axis >= 0:
            m, t = m + jumps[axis], t + places[axis]


cdef inline Py_ssize_t bytes_of(const int64_t[::1] shape, Py_ssize_t host_itemsize) noexcept nogil:
    """Of a tile."""
    cdef int axis
    for axis in range(AXES):
        host_itemsize *= shape[axis]
    return host_itemsize


def read_boxes(
    int kind,
    const uint8_t[::1] memory,
    const int64_t[::1] starts,
    const int64_t[:, ::1] strides,
    const int64_t[:, ::1] lows,
    const int64_t[:, ::1] highs,
    const int64_t[::1] shape,
    uint8_t[::1] tile,
    Py_ssize_t itemsize,
    Py_ssize_t host_itemsize,
):
    """Tile of every program from its box in memory; elements outside of the box are left as they are."""
    cdef Py_ssize_t p
    cdef Py_ssize_t size = bytes_of(shape, host_itemsize)
    cdef row_t row = pick_row(kind, True, False)
    with nogil:
        for p in range(starts.shape[0]):
            walk_box(
                row, <uint8_t*> &memory[0], &tile[p * size], starts[p],
                &strides[p if strides.shape[0] > 1 else 0, 0],
                &lows[p if lows.shape[0] > 1 else 0, 0],
                &highs[p if highs.shape[0] > 1 else 0, 0],
                &shape[0], itemsize, host_itemsize, True,
            )


def write_boxes(
    int kind,
    bint adding,
    uint8_t[::1] memory,
    const int64_t[::1] starts,
    const int64_t[:, ::1] strides,
    const int64_t[:, ::1] lows,
    const int64_t[:, ::1] highs,
    const int64_t[::1] shape,
    const uint8_t[::1] tile,
    Py_ssize_t programs,
    Py_ssize_t itemsize,
    Py_ssize_t host_itemsize,
):
    """Write (or add) every program's box of its tile to memory, in program order.

    `programs` is 1 if all share one tile.
    """
    cdef Py_ssize_t p
    cdef Py_ssize_t size = bytes_of(shape, host_itemsize)
    cdef row_t row = pick_row(kind, False, adding)
    with nogil:
        for p in range(starts.shape[0]):
            walk_box(
                row, &memory[0], <uint8_t*> &tile[(p if programs > 1 else 0) * size], starts[p],
                &strides[p if strides.shape[0] > 1 else 0, 0],
                &lows[p if lows.shape[0] > 1 else 0, 0],
                &highs[p if highs.shape[0] > 1 else 0, 0],
                &shape[0], itemsize, host_itemsize, False,
            )
