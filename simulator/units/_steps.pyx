"""Steps of the Cube whose products are not added up exactly: the readings that the documents leave open.

TREE: adjacent products of a step are added pair by pair, each sum rounded to FP32, and their sum to the
accumulator. Aligned: products and accumulator are cut toward zero to `extra` bits below the last place
that FP32 has at the largest of them, then added exactly; adders of other matrix units work so (MMA-Sim,
arXiv 2511.10909). The sum of a step is rounded once, as in _cube.pyx. Loops only, one element of the
result after another: these are for studies of small products.
"""

from libc.math cimport NAN, fabs, ilogb, ldexp
from libc.stdint cimport int64_t

from ascendtile.simulator.precision._rounding cimport Rounding, flush_row, round_double_row
from ascendtile.simulator.units._cube cimport Rule, make_rule

cdef enum:
    TREE = -1  # `extra` of sums by pairs
    FP32_PLACES = 23  # stored bits of the accumulator


cdef inline double settled(double x, Rule* rule) noexcept nogil:
    """One rounding by the general rules."""
    cdef float out
    round_double_row(&x, &out, 1, rule.grid)
    if rule.flush:
        flush_row(&out, 1)
    return out


cdef double tree_sum(double* terms, Py_ssize_t n, Rule* pairs) noexcept nogil:
    """Adjacent pairs, level by level, in place; what has no partner goes on as it is."""
    cdef Py_ssize_t i, half
    while n > 1:
        half = n >> 1
        for i in range(half):
            terms[i] = settled(terms[2 * i] + terms[2 * i + 1], pairs)
        if n & 1:
            terms[half] = terms[n - 1]
        n = half + (n & 1)
    return terms[0]


cdef double aligned_sum(const double* terms, Py_ssize_t n, double acc, int extra) noexcept nogil:
    """All terms in units of the last place that is kept. Infinities and NaN add up as IEEE has them."""
    cdef double largest = fabs(acc)
    cdef double plain = acc
    cdef int64_t total
    cdef Py_ssize_t i
    cdef int shift
    for i in range(n):
        plain = plain + terms[i]
        if fabs(terms[i]) > largest:
            largest = fabs(terms[i])
    if largest == 0 or plain - plain != 0:
        return plain
    shift = FP32_PLACES + extra - ilogb(largest)
    total = <int64_t>ldexp(acc, shift)
    for i in range(n):
        total += <int64_t>ldexp(terms[i], shift)
    return ldexp(<double>total, -shift)


cdef double chain(
    const float* a, const float* b, Py_ssize_t stride, Py_ssize_t k, Py_ssize_t kb, double acc, int extra,
    double* terms, Rule* pairs, Rule* rule
) noexcept nogil:
    """One element: its accumulator after all steps; b has its values `stride` apart."""
    cdef Py_ssize_t begin = 0
    cdef Py_ssize_t t, n
    while begin < k:
        n = min(kb, k - begin)
        for t in range(n):
            terms[t] = <double>a[begin + t] * <double>b[(begin + t) * stride]
        if extra == TREE:
            acc = acc + tree_sum(terms, n, pairs)
        else:
            acc = aligned_sum(terms, n, acc, extra)
        acc = settled(acc, rule)
        begin += kb
    return acc


def multiply_in_steps(
    const float[:, :, ::1] a, const float[:, :, ::1] b, float[:, :, ::1] c, double[::1] scratch,
    Py_ssize_t kb, int extra, Rounding rounding, Rounding of_pairs, bint flush
):
    """c[p] += a[p] @ b[p] in steps of kb in ascending k, each rounded once, and sums of pairs by `of_pairs`.

    a: (P or 1, M, K), b: (P or 1, K, N), c: (P, M, N), none empty. scratch: kb doubles. extra: TREE or bits.
    """
    cdef Rule rule = make_rule(&rounding.rules, flush)
    cdef Rule pairs = make_rule(&of_pairs.rules, flush)
    cdef Py_ssize_t p, i, j, pa, pb
    cdef double sum_of
    with nogil:
        for p in range(c.shape[0]):
            pa = p if a.shape[0] > 1 else 0
            pb = p if b.shape[0] > 1 else 0
            for i in range(c.shape[1]):
                for j in range(c.shape[2]):
                    sum_of = chain(
                        &a[pa, i, 0], &b[pb, 0, j], b.shape[2], a.shape[2], kb, c[p, i, j], extra,
                        &scratch[0], &pairs, &rule
                    )
                    c[p, i, j] = <float>sum_of if sum_of == sum_of else <float>NAN
