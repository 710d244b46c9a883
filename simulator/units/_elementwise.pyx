"""Elementary functions and tree sums of the Vector unit, with the same bits on every machine.

libm and numpy's SIMD variants differ between machines in the last bit, so exp and log are computed here in
double precision with plain IEEE operations (no fused multiply-add) to about 2^-52 and rounded once to
float32, which is the correctly rounded result in all but about one of 10^8 arguments. For a half-precision
result the last step is rounding to odd, so that the following rounding to 11 or 8 bits is the only one.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from ascendtile.simulator.precision._grid_rules cimport GridRules
from ascendtile.simulator.precision._rounding cimport Rounding, round_row

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    #define LOG2_E 1.4426950408889634
    #define LN2_HIGH 0.693147180369123816490 /* 32 bits: k * LN2_HIGH is exact */
    #define LN2_LOW 1.90821492927058770002e-10
    #define ROUNDER 6755399441055744.0 /* 1.5 * 2^52: adding it leaves the nearest integer in the low bits */

    /* e^x for x in [-150, 130]; Taylor to degree 13 on |r| <= ln2/2 leaves 4e-18. */
    ASCENDTILE_INLINE double elementwise_exp(double x)
    {
        const double shifted = x * LOG2_E + ROUNDER;
        const double k = shifted - ROUNDER;
        const double r = (x - k * LN2_HIGH) - k * LN2_LOW;
        double p = 1.6059043836821613e-10, scale;
        uint64_t bits;
        p = p * r + 2.08767569878681e-09;
        p = p * r + 2.505210838544172e-08;
        p = p * r + 2.755731922398589e-07;
        p = p * r + 2.7557319223985893e-06;
        p = p * r + 2.48015873015873e-05;
        p = p * r + 1.984126984126984e-04;
        p = p * r + 1.388888888888889e-03;
        p = p * r + 8.333333333333333e-03;
        p = p * r + 4.1666666666666664e-02;
        p = p * r + 1.6666666666666666e-01;
        p = p * r + 0.5;
        p = p * r + 1.0;
        p = p * r + 1.0;
        memcpy(&bits, &shifted, 8);
        bits = (bits + 1023) << 52;
        memcpy(&scale, &bits, 8);
        return p * scale;
    }

    /* x in [-150, 130], beyond which e^x is 0 or infinite in float32; NaN stays. */
    ASCENDTILE_INLINE float elementwise_clamp(float x)
    {
        uint32_t u;
        memcpy(&u, &x, 4);
        const uint32_t sign = u & 0x80000000u, magnitude = u & 0x7FFFFFFFu;
        const uint32_t most = 0x43020000u + (sign >> 31) * (0x43160000u - 0x43020000u);
        const uint32_t over = -(uint32_t)((magnitude > most) & (magnitude <= 0x7F800000u));
        u = sign | (magnitude & ~over) | (most & over);
        memcpy(&x, &u, 4);
        return x;
    }

    typedef void (*elementwise_row)(const float *x, float *out, ptrdiff_t n);

    #define ELEMENTWISE_EXP(NAME, ATTRIBUTE, LAST)                                                          \\
    ATTRIBUTE static void NAME(const float *x, float *out, ptrdiff_t n)                                     \\
    {                                                                                                       \\
        for (ptrdiff_t i = 0; i < n; i++) out[i] = LAST(elementwise_exp(elementwise_clamp(x[i])));          \\
    }
    ELEMENTWISE_EXP(exp_plain, , (float))
    ELEMENTWISE_EXP(exp_odd_plain, , ascendtile_odd)
    #if defined(__x86_64__) && defined(__GNUC__)
    ELEMENTWISE_EXP(exp_wide, __attribute__((target("avx2"))), (float))
    ELEMENTWISE_EXP(exp_odd_wide, __attribute__((target("avx2"))), ascendtile_odd)
    #define ELEMENTWISE_WIDEST __attribute__((target("avx512f,avx512dq")))
    ELEMENTWISE_EXP(exp_widest, ELEMENTWISE_WIDEST, (float))
    ELEMENTWISE_EXP(exp_odd_widest, ELEMENTWISE_WIDEST, ascendtile_odd)
    static elementwise_row elementwise_exp_row(int odd)
    {
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx512dq")) return odd ? exp_odd_widest : exp_widest;
        if (__builtin_cpu_supports("avx2")) return odd ? exp_odd_wide : exp_wide;
        return odd ? exp_odd_plain : exp_plain;
    }
    #else
    static elementwise_row elementwise_exp_row(int odd) { return odd ? exp_odd_plain : exp_plain; }
    #endif
    """
    ctypedef void (*row_t "elementwise_row")(const float* x, float* out, Py_ssize_t n) noexcept nogil
    const double LN2_HIGH
    const double LN2_LOW
    row_t exp_row "elementwise_exp_row"(int odd) noexcept nogil

cdef double SQRT_HALF = 0.70710678118654752440


cdef inline double log_core(double x) noexcept nogil:
    """ln x for positive finite normal x.

    x = 2^k m with m in [sqrt(1/2), sqrt 2), and ln m = 2 atanh((m-1)/(m+1)) by its series.
    """
    cdef uint64_t bits
    cdef double m, s, z, p, k
    memcpy(&bits, &x, 8)
    k = <double> (<int64_t> (bits >> 52) - 1022)
    bits = (bits & 0x000FFFFFFFFFFFFFULL) | 0x3FE0000000000000ULL
    memcpy(&m, &bits, 8)
    if m < SQRT_HALF:
        m = m + m
        k = k - 1.0
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 1.0 / 21.0
    p = p * z + 1.0 / 19.0
    p = p * z + 1.0 / 17.0
    p = p * z + 1.0 / 15.0
    p = p * z + 1.0 / 13.0
    p = p * z + 1.0 / 11.0
    p = p * z + 1.0 / 9.0
    p = p * z + 1.0 / 7.0
    p = p * z + 1.0 / 5.0
    p = p * z + 1.0 / 3.0
    p = p * z * s + s
    return k * LN2_HIGH + (2.0 * p + k * LN2_LOW)


def exp_f32(const float[::1] x, float[::1] out, bint odd):
    """out = e^x; with `odd` the result is rounded to odd instead of to nearest."""
    with nogil:
        if x.shape[0] > 0:
            exp_row(odd)(&x[0], &out[0], x.shape[0])


def log_f32(const float[::1] x, float[::1] out, bint odd):
    """out = ln x, -inf at 0, NaN below; with `odd` rounded to odd."""
    cdef Py_ssize_t i
    cdef double v, y
    cdef double infinity = <double> float("inf")
    cdef double nan = <double> float("nan")
    with nogil:
        for i in range(x.shape[0]):
            v = x[i]
            if v > 0 and v < infinity:
                y = log_core(v)
                out[i] = to_odd(y) if odd else <float> y
            elif v == 0:
                out[i] = <float> -infinity
            elif v == infinity:
                out[i] = <float> infinity
            else:
                out[i] = <float> nan


cdef enum Tree:  # in which order the lanes of a repeat are added
    ADJACENT
    HALVES
    SEQUENTIAL

cdef enum:
    MOST_LANES = 256

TREES = {"adjacent": ADJACENT, "halves": HALVES, "sequential": SEQUENTIAL}


cdef struct Rules:
    const GridRules* each  # what becomes of a sum
    Tree tree


cdef float pair_tree(const float* x, Py_ssize_t n, float* work, Rules rules) noexcept nogil:
    """Sum of up to MOST_LANES: adjacent pairs, level by level, each addition rounded in the data type."""
    cdef Py_ssize_t i, m
    cdef const float* level = x
    if n == 1:
        return x[0]
    while n > 1:
        m = n >> 1
        for i in range(m):
            work[i] = level[2 * i] + level[2 * i + 1]
        if n & 1:
            work[m] = level[n - 1]
            m += 1
        n = m
        level = work
        round_row(work, n, rules.each)
    return work[0]


cdef float half_tree(
    const float* x, Py_ssize_t n, Py_ssize_t lanes, float* work, Rules rules
) noexcept nogil:
    """As pair_tree, but lane i is added to lane i + lanes / 2; lanes that are not there are left out."""
    cdef Py_ssize_t i
    cdef const float* level = x
    while lanes > 1:
        lanes >>= 1
        for i in range(min(n, lanes)):
            work[i] = level[i] + level[i + lanes] if i + lanes < n else level[i]
        n = min(n, lanes)
        level = work
        round_row(work, n, rules.each)
    return level[0]


cdef float running_sum(const float* x, Py_ssize_t n, Rules rules) noexcept nogil:
    cdef float total = x[0]
    cdef Py_ssize_t i
    for i in range(1, n):
        total = total + x[i]
        round_row(&total, 1, rules.each)
    return total


cdef float repeat_sum(
    const float* x, Py_ssize_t n, Py_ssize_t lanes, float* work, Rules rules
) noexcept nogil:
    if rules.tree == SEQUENTIAL:
        return running_sum(x, n, rules)
    if rules.tree == HALVES:
        return half_tree(x, n, lanes, work, rules)
    return pair_tree(x, n, work, rules)


cdef float row_sum(
    const float* x, Py_ssize_t n, float* sums, Py_ssize_t lanes, bint sequential, Rules rules
) noexcept nogil:
    cdef float[MOST_LANES] work
    cdef Py_ssize_t i, count
    count = (n + lanes - 1) // lanes
    for i in range(count):
        sums[i] = repeat_sum(x + i * lanes, min(lanes, n - i * lanes), lanes, work, rules)
    if sequential or rules.tree == SEQUENTIAL:
        return running_sum(sums, count, rules)
    while count > 1:
        n = count
        count = (n + lanes - 1) // lanes
        for i in range(count):
            sums[i] = repeat_sum(sums + i * lanes, min(lanes, n - i * lanes), lanes, work, rules)
    return sums[0]


def sum_rows(
    const float[:, ::1] x,
    float[::1] out,
    float[::1] sums,
    int lanes,
    Rounding rounding,
    Tree tree,
    bint sequential,
):
    """Sum of every row in the Vector unit's order.

    sums: scratch for ceil(columns / lanes) values; lanes: a power of two up to MOST_LANES. rounding: of each
    addition. tree: a value of TREES.
    sequential: repeats' results are added one after another (tree-sequential) instead of by the same tree
    again (tree-tree).
    """
    cdef Py_ssize_t r
    cdef Rules rules = Rules(&rounding.rules, tree)
    with nogil:
        for r in range(x.shape[0]):
            out[r] = row_sum(&x[r, 0], x.shape[1], &sums[0], lanes, sequential, rules)


def has_subnormals(const float[::1] x):
    """Whether any value is subnormal."""
    cdef Py_ssize_t i
    cdef uint32_t bits, found = 0
    cdef const uint32_t* words = <const uint32_t*> &x[0] if x.shape[0] else NULL
    with nogil:
        for i in range(x.shape[0]):
            bits = words[i] & 0x7FFFFFFF
            found |= (bits - 1) < 0x007FFFFF
    return bool(found)
