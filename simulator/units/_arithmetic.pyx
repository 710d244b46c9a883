"""Elementwise arithmetic in float32 with the unit's rounding in the same pass, while results are in L1.

The loops exist in several vector widths, chosen at run time; IEEE arithmetic gives all of them the same bits.
"""

from cpython.buffer cimport (
    PyBUF_RECORDS_RO,
    PyBUF_WRITABLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)

from ascendtile.simulator.precision._grid_rules cimport GridRules
from ascendtile.simulator.precision._rounding cimport Rounding, round_row

cdef extern from *:
    """
    #include <stddef.h>

    typedef void (*arithmetic_row)(
        const float *a, ptrdiff_t sa, const float *b, ptrdiff_t sb, float *out, ptrdiff_t n);

    /* Steps are 0 or 1: the compiler makes a loop of vectors of each case. */
    #define ARITHMETIC_ROW(NAME, ATTRIBUTE, OP)                                                             \\
    ATTRIBUTE static void NAME(                                                                             \\
        const float *a, ptrdiff_t sa, const float *b, ptrdiff_t sb, float *out, ptrdiff_t n)                \\
    {                                                                                                       \\
        if (sa && sb) for (ptrdiff_t i = 0; i < n; i++) out[i] = a[i] OP b[i];                              \\
        else if (sa) { const float y = *b; for (ptrdiff_t i = 0; i < n; i++) out[i] = a[i] OP y; }          \\
        else if (sb) { const float x = *a; for (ptrdiff_t i = 0; i < n; i++) out[i] = x OP b[i]; }          \\
        else { const float z = *a OP *b; for (ptrdiff_t i = 0; i < n; i++) out[i] = z; }                    \\
    }
    #define ARITHMETIC_WIDTH(SUFFIX, ATTRIBUTE)                                                             \\
        ARITHMETIC_ROW(arithmetic_add_##SUFFIX, ATTRIBUTE, +)                                               \\
        ARITHMETIC_ROW(arithmetic_sub_##SUFFIX, ATTRIBUTE, -)                                               \\
        ARITHMETIC_ROW(arithmetic_mul_##SUFFIX, ATTRIBUTE, *)                                               \\
        ARITHMETIC_ROW(arithmetic_div_##SUFFIX, ATTRIBUTE, /)                                               \\
        static const arithmetic_row arithmetic_rows_##SUFFIX[4] = {                                         \\
            arithmetic_add_##SUFFIX, arithmetic_sub_##SUFFIX,                                               \\
            arithmetic_mul_##SUFFIX, arithmetic_div_##SUFFIX};

    ARITHMETIC_WIDTH(plain, )
    #if defined(__x86_64__) && defined(__GNUC__)
    ARITHMETIC_WIDTH(wide, __attribute__((target("avx2"))))
    static int arithmetic_wide(void) { __builtin_cpu_init(); return __builtin_cpu_supports("avx2"); }
    static arithmetic_row arithmetic_pick(int op) {
        return arithmetic_wide() ? arithmetic_rows_wide[op] : arithmetic_rows_plain[op];
    }
    #else
    static arithmetic_row arithmetic_pick(int op) { return arithmetic_rows_plain[op]; }
    #endif
    """
    ctypedef void (*row_t "arithmetic_row")(
        const float* a, Py_ssize_t sa, const float* b, Py_ssize_t sb, float* out, Py_ssize_t n) noexcept nogil
    row_t pick_row "arithmetic_pick"(int op) noexcept nogil

cdef enum:
    AXES = 8
    BLOCK = 4096  # elements that are rounded at once: 16 KiB, half of L1

OPERATIONS = {"add": 0, "sub": 1, "mul": 2, "div": 3}

cdef struct Rows:  # operands over the axes of the result: length, steps in elements; the last is a row
    int axes
    Py_ssize_t[AXES] length
    Py_ssize_t[AXES] step_a
    Py_ssize_t[AXES] step_b


cdef inline Py_ssize_t step_of(Py_buffer* x, int axis, int axes) noexcept nogil:
    """Elements between neighbours along an axis of the result; 0: one for all; -1: no whole number."""
    cdef int own = axis - (axes - x.ndim)
    if own < 0 or x.shape[own] == 1:
        return 0
    return x.strides[own] // 4 if x.strides[own] % 4 == 0 and x.strides[own] >= 0 else -1


cdef bint make_rows(Rows* rows, Py_buffer* a, Py_buffer* b, Py_buffer* out) noexcept nogil:
    """Merge axes that both operands walk alike; whether a row is then neighbours, or one number, of each."""
    cdef int k
    cdef int last = -1
    cdef Py_ssize_t sa, sb
    for k in range(out.ndim):
        sa, sb = step_of(a, k, out.ndim), step_of(b, k, out.ndim)
        if sa < 0 or sb < 0:
            return False
        if out.shape[k] == 1:
            continue
        if last >= 0 and rows.step_a[last] == sa * out.shape[k] and rows.step_b[last] == sb * out.shape[k]:
            rows.length[last] *= out.shape[k]
            rows.step_a[last], rows.step_b[last] = sa, sb
            continue
        last += 1
        rows.length[last], rows.step_a[last], rows.step_b[last] = out.shape[k], sa, sb
    if last < 0:
        last = 0
        rows.length[0], rows.step_a[0], rows.step_b[0] = 1, 0, 0
    rows.axes = last + 1
    return rows.step_a[last] <= 1 and rows.step_b[last] <= 1


cdef void one_row(
    row_t row, const float* a, Py_ssize_t sa, const float* b, Py_ssize_t sb, float* out, Py_ssize_t n,
    const GridRules* rules
) noexcept nogil:
    cdef Py_ssize_t start = 0
    cdef Py_ssize_t size
    while start < n:
        size = min(<Py_ssize_t> BLOCK, n - start)
        row(a + start * sa, sa, b + start * sb, sb, out + start, size)
        round_row(out + start, size, rules)
        start += size


cdef void all_rows(
    row_t row, const float* a, const float* b, float* out, Rows* rows, const GridRules* rules
) noexcept nogil:
    """Row after row; the axes before the last count like an odometer."""
    cdef Py_ssize_t[AXES] at
    cdef int inner = rows.axes - 1
    cdef int k
    cdef Py_ssize_t n = rows.length[inner]
    for k in range(inner):
        at[k] = 0
    while True:
        one_row(row, a, rows.step_a[inner], b, rows.step_b[inner], out, n, rules)
        out += n
        k = inner - 1
        while k >= 0:
            at[k] += 1
            a += rows.step_a[k]
            b += rows.step_b[k]
            if at[k] < rows.length[k]:
                break
            a -= rows.step_a[k] * rows.length[k]
            b -= rows.step_b[k] * rows.length[k]
            at[k] = 0
            k -= 1
        if k < 0:
            return


def arithmetic(int op, object a, object b, object out, Rounding rounding):
    """out = a op b, rounded; False, and nothing done, if the layouts are no rows.

    a, b: float32, broadcast to out; out: float32, C-contiguous, not empty. op: a value of OPERATIONS.
    """
    cdef Py_buffer x, y, z
    cdef Rows rows
    cdef const GridRules* rules = &rounding.rules
    cdef bint possible
    PyObject_GetBuffer(a, &x, PyBUF_RECORDS_RO)
    try:
        PyObject_GetBuffer(b, &y, PyBUF_RECORDS_RO)
        try:
            PyObject_GetBuffer(out, &z, PyBUF_RECORDS_RO | PyBUF_WRITABLE)
            possible = z.ndim <= AXES and make_rows(&rows, &x, &y, &z)
            if possible:
                with nogil:
                    all_rows(
                        pick_row(op), <const float*> x.buf, <const float*> y.buf, <float*> z.buf, &rows, rules
                    )
            PyBuffer_Release(&z)
        finally:
            PyBuffer_Release(&y)
    finally:
        PyBuffer_Release(&x)
    return possible
