"""Sums, maxima and counts over (actual, golden) pairs in one pass; one error by rank; where the errors are.

Sums are taken over blocks and the blocks are added: always in the same order, and with a smaller error than
one long sum. What the figures mean, and every threshold, is in metrics.py.
"""

from libc.float cimport DBL_MAX
from libc.math cimport fabs, frexp
from libc.stdint cimport int64_t, uint64_t

from ascendtile.simulator.precision._rounding cimport bits64, double_of

cdef enum:
    BLOCK = 4096
    FINE_BINS = 4096  # of the error in ulp: 16 to an octave, from 2^-128 up
    FINE_OFFSET = (1023 - 128) << 4
    BIAS = 1023

FINE_BIN_COUNT = FINE_BINS
FINE_BINS_PER_OCTAVE = 16
FINE_LOWEST_EXPONENT = -128

cdef struct Limits:
    int64_t mantissa
    double min_normal
    double overflow_from    # the smallest magnitude that rounds to infinity
    double small_below      # golden values below are of the small-value domain
    double small_error      # and count there if the absolute error exceeds this

cdef struct Totals:
    int64_t compared
    int64_t exact
    int64_t overflow
    int64_t underflow
    int64_t subnormal
    int64_t nan
    int64_t nan_mismatch
    int64_t inf_mismatch
    int64_t small
    int64_t small_errors
    int64_t max_ulp_at
    int64_t max_abs_at
    int64_t mismatch_at
    double max_abs
    double max_rel
    double max_ulp
    double max_rel_large
    double sum_abs
    double sum_rel
    double sum_rel_large
    double sum_golden
    double sum_squares
    double sum_balance
    double sum_product
    double sum_actual_squares
    double sum_golden_squares

ctypedef fused Real:
    float
    double

ctypedef fused Golden:
    float
    double


cdef inline bint finite(double x) noexcept nogil:
    return fabs(x) <= DBL_MAX


cdef inline double in_ulps(double error, double size, const Limits* limits) noexcept nogil:
    """error / 2^(max(floor(log2 size), emin) - mantissa), the division by its exact reciprocal."""
    cdef double normal = size if size > limits.min_normal else limits.min_normal
    cdef uint64_t exponent = bits64(normal) & (<uint64_t>0x7FF << 52)
    return error * double_of((<uint64_t>(2 * BIAS + limits.mantissa) << 52) - exponent)


cdef inline int64_t fine_bin(double ulps) noexcept nogil:
    cdef int64_t index = <int64_t>(bits64(ulps) >> 48) - FINE_OFFSET
    index = 0 if index < 0 else index
    return FINE_BINS - 1 if index > FINE_BINS - 1 else index


cdef inline void add_special(
    Totals* t, double actual, double golden, int64_t index, const Limits* limits
) noexcept nogil:
    """A pair of which one at least is not finite: no error to measure, but the two must agree."""
    cdef bint nan = (actual != actual) != (golden != golden)
    cdef bint infinite = not nan and actual == actual and actual != golden
    t.nan += actual != actual
    t.nan_mismatch += nan
    t.inf_mismatch += infinite
    t.overflow += finite(golden) and (infinite or fabs(golden) >= limits.overflow_from)
    if (nan or infinite) and t.mismatch_at < 0:
        t.mismatch_at = index


cdef inline void add_relative(Totals* t, double error, double golden, const Limits* limits) noexcept nogil:
    cdef double rel = error / (golden + 1e-7)
    t.sum_rel += rel
    t.max_rel = rel if rel > t.max_rel else t.max_rel
    if golden < limits.small_below:
        t.small += 1
        t.small_errors += error > limits.small_error
    else:
        t.sum_rel_large += rel
        t.max_rel_large = rel if rel > t.max_rel_large else t.max_rel_large


cdef inline void add_sums(Totals* t, double actual, double golden, double size) noexcept nogil:
    cdef double difference = actual - golden
    t.sum_abs += fabs(difference)
    t.sum_golden += size
    t.sum_squares += difference * difference
    t.sum_balance += difference / (size if size > 1 else 1)
    t.sum_product += actual * golden
    t.sum_actual_squares += actual * actual
    t.sum_golden_squares += golden * golden


cdef inline void add_counts(Totals* t, double actual, double size, const Limits* limits) noexcept nogil:
    t.compared += 1
    t.overflow += size >= limits.overflow_from
    t.underflow += actual == 0 and size > 0
    t.subnormal += actual != 0 and fabs(actual) < limits.min_normal


cdef inline void add_maxima(Totals* t, double error, double ulps, int64_t index) noexcept nogil:
    if ulps > t.max_ulp or t.max_ulp_at < 0:
        t.max_ulp, t.max_ulp_at = ulps, index
    if error > t.max_abs or t.max_abs_at < 0:
        t.max_abs, t.max_abs_at = error, index


cdef Totals empty() noexcept nogil:
    cdef Totals t
    t.compared = t.exact = t.overflow = t.underflow = t.subnormal = 0
    t.nan = t.nan_mismatch = t.inf_mismatch = 0
    t.small = t.small_errors = 0
    t.max_ulp_at = t.max_abs_at = t.mismatch_at = -1
    t.max_abs = t.max_rel = t.max_ulp = t.max_rel_large = 0
    t.sum_abs = t.sum_rel = t.sum_rel_large = t.sum_golden = t.sum_squares = t.sum_balance = 0
    t.sum_product = t.sum_actual_squares = t.sum_golden_squares = 0
    return t


cdef void start_block(Totals* block, const Totals* t) noexcept nogil:
    """Counts and maxima go on from the totals; sums start again."""
    block[0] = t[0]
    block.sum_abs = block.sum_rel = block.sum_rel_large = block.sum_golden = block.sum_squares = 0
    block.sum_balance = block.sum_product = block.sum_actual_squares = block.sum_golden_squares = 0


cdef void end_block(Totals* t, const Totals* block) noexcept nogil:
    cdef Totals sums = t[0]
    t[0] = block[0]
    t.sum_abs += sums.sum_abs
    t.sum_rel += sums.sum_rel
    t.sum_rel_large += sums.sum_rel_large
    t.sum_golden += sums.sum_golden
    t.sum_squares += sums.sum_squares
    t.sum_balance += sums.sum_balance
    t.sum_product += sums.sum_product
    t.sum_actual_squares += sums.sum_actual_squares
    t.sum_golden_squares += sums.sum_golden_squares


cdef void measure_block(
    Totals* out, const Real* actual, const Golden* golden, int64_t first, int64_t last,
    Limits limits, int64_t* bins,
) noexcept nogil:
    cdef Totals t = out[0]
    cdef int64_t i
    cdef double a, g, size, error, ulps
    for i in range(first, last):
        a, g = actual[i], golden[i]
        if not (finite(a) and finite(g)):
            add_special(&t, a, g, i, &limits)
            continue
        size, error = fabs(g), fabs(a - g)
        ulps = in_ulps(error, size, &limits)
        t.exact += error == 0
        bins[fine_bin(ulps)] += 1
        add_counts(&t, a, size, &limits)
        add_relative(&t, error, size, &limits)
        add_sums(&t, a, g, size)
        add_maxima(&t, error, ulps, i)
    out[0] = t


def measure(const Real[::1] actual, const Golden[::1] golden, int64_t[::1] bins, Limits limits):
    """The totals, as a dict, and the fine histogram of errors in ulp, added to `bins`."""
    cdef Totals t = empty()
    cdef Totals block
    cdef int64_t n = actual.shape[0]
    cdef int64_t start = 0
    with nogil:
        while start < n:
            start_block(&block, &t)
            measure_block(&block, &actual[0], &golden[0], start, min(n, start + BLOCK), limits, &bins[0])
            end_block(&t, &block)
            start += BLOCK
    return t


def collect_bin(
    const Real[::1] actual, const Golden[::1] golden, double[::1] out, int64_t bin, Limits limits
):
    """The errors in ulp that fall into one fine bin; `out` has as many places as the bin has counts."""
    cdef int64_t i
    cdef int64_t k = 0
    cdef double a, g, ulps
    with nogil:
        for i in range(actual.shape[0]):
            a, g = actual[i], golden[i]
            ulps = in_ulps(fabs(a - g), fabs(g), &limits)
            if fine_bin(ulps) == bin and finite(a) and finite(g):
                out[k] = ulps
                k += 1


def count_outside(const Real[::1] actual, const Golden[::1] golden, double rtol, double atol):
    """How many finite pairs have abs(actual - golden) > atol + rtol * abs(golden)."""
    cdef int64_t i
    cdef int64_t outside = 0
    cdef double a, g
    with nogil:
        for i in range(actual.shape[0]):
            a, g = actual[i], golden[i]
            outside += fabs(a - g) > atol + rtol * fabs(g) and finite(a) and finite(g)
    return outside


cdef inline int64_t octave(double size, int64_t lowest, int64_t count) noexcept nogil:
    """Bin of a magnitude: floor(log2), in `count` bins from `lowest` up; the first has zero, too."""
    cdef int exponent = 0
    if size == 0:
        return 0
    frexp(size, &exponent)
    cdef int64_t k = exponent - 1 - lowest
    return 0 if k < 0 else count - 1 if k >= count else k


cdef inline void keep(double ulps, int64_t index, double* worst, int64_t* at, int64_t places) noexcept nogil:
    """Put an error among the largest, which stand in falling order; of equals the first comes first."""
    cdef int64_t k = places - 1
    if not ulps > worst[k]:
        return
    while k > 0 and ulps > worst[k - 1]:
        worst[k], at[k] = worst[k - 1], at[k - 1]
        k -= 1
    worst[k], at[k] = ulps, index


def locate(
    const Real[::1] actual, const Golden[::1] golden, Limits limits, int64_t lowest,
    int64_t[::1] counts, double[::1] ulp_sums, double[::1] ulp_most, double[::1] abs_sums,
    double[::1] worst, int64_t[::1] at,
):
    """Fill the outputs, zeroed by the caller: by octave of the golden, and the largest errors with places."""
    cdef int64_t i, k
    cdef double a, g, error, ulps
    with nogil:
        for i in range(actual.shape[0]):
            a, g = actual[i], golden[i]
            if not (finite(a) and finite(g)):
                continue
            error = fabs(a - g)
            ulps = in_ulps(error, fabs(g), &limits)
            k = octave(fabs(g), lowest, counts.shape[0])
            counts[k] += 1
            ulp_sums[k] += ulps
            abs_sums[k] += error
            ulp_most[k] = ulps if ulps > ulp_most[k] else ulp_most[k]
            keep(ulps, i, &worst[0], &at[0], worst.shape[0])
