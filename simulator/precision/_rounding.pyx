"""Every rounding of the simulator: storage to float32 and back, float32 and float64 to a format's grid.

Loops only; names, defaults and checks are in rounding.py. The float32 loops use masks in place of conditions
so that gcc vectorises them at the x86-64 baseline. They need round-to-nearest and a build without fast-math.
"""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from ascendtile.simulator.precision._grid_loops cimport GridLoops, pick_loops
from ascendtile.simulator.precision._grid_rules cimport (
    AS_IS, CEIL, FLOOR, FLUSH, GENERAL, NARROW, ODD, POWERS, RINT, RNZ, ROUND, SHORT, STEPS, STOCHASTIC,
    TAPERED, TRUNC, WIDE, GridRules, GridWords, GridWords64, Mode
)

ctypedef fused Real:
    float
    double

cdef enum:
    BLOCK = 2048  # elements of an out-of-place block: 8 KiB stay in L1

MODES = {
    "RINT": RINT, "FLOOR": FLOOR, "CEIL": CEIL, "ROUND": ROUND, "TRUNC": TRUNC, "ODD": ODD, "RNZ": RNZ,
    "STOCHASTIC": STOCHASTIC,
}
PATHS = {
    "as is": AS_IS, "flush": FLUSH, "short": SHORT, "wide": WIDE, "narrow": NARROW, "tapered": TAPERED,
    "powers": POWERS, "general": GENERAL,
}


# ---- rules

cdef struct Cut:  # how the low bits of a magnitude go away; the same masks express every mode
    uint64_t drop  # number of low bits that the target lacks
    uint64_t low   # mask of those bits
    uint64_t add   # added before the cut
    uint64_t flip  # FLOOR, CEIL: exclusive-or with `add` for negative values
    uint64_t even  # 1: also add the lowest kept bit
    uint64_t odd   # the lowest kept bit, if it is to be set when anything is lost


cdef Cut make_cut(Mode mode, uint64_t drop) noexcept nogil:
    """A mode as masks: kept = (m + add + lowest kept bit) without `low`, then `odd` if anything was lost."""
    cdef Cut cut
    cdef uint64_t unit = <uint64_t>1 << drop
    cut.drop, cut.low = drop, unit - 1
    cut.add = cut.flip = cut.even = cut.odd = 0
    if mode == RINT or mode == RNZ:
        cut.add, cut.even = (unit >> 1) - (drop > 0), mode == RINT and drop > 0
    elif mode == ROUND:
        cut.add = unit >> 1 if drop else 0
    elif mode == FLOOR or mode == CEIL:
        cut.add, cut.flip = 0 if mode == FLOOR else cut.low, cut.low
    elif mode == ODD:
        cut.odd = unit if drop else 0
    return cut


cdef class Rounding:
    """One format under one mode and one pair of choices, as the loops need it; `path` is one of PATHS."""

    def __init__(
        self, int path, Mode mode, object spacing, int drop, *, double flush_below, double limit,
        double limit_negative, uint32_t over, uint32_t over_negative, uint32_t infinity,
        uint32_t infinity_negative, uint32_t nan_and, uint32_t nan_or, bint minus_zero, uint32_t least,
        object nothing, object negative
    ):
        """spacing: (exponent, mantissa bits from there on). drop: bits of a word that a wide format lacks.

        limit: the magnitude after the largest. nothing, negative: None, where the format has a zero, a sign.
        Others are FP32 words, see _grid_rules.pxd.
        """
        cdef GridRules* g = &self.rules
        g.path, g.mode = path, mode
        set_spacing(g, spacing)
        set_masks(g, make_cut(ROUND if path == POWERS and mode == RINT else mode, drop))
        set_limits(&g.words, &g.words64, max(limit, limit_negative), limit, limit_negative, flush_below)
        g.words.over, g.words.over_flip = over, over ^ over_negative
        g.words64.over, g.words64.over_flip = widened(over), widened(over) ^ widened(over_negative)
        g.words.infinity, g.words.infinity_flip = infinity, infinity ^ infinity_negative
        g.words64.infinity = widened(infinity)
        g.words64.infinity_flip = widened(infinity) ^ widened(infinity_negative)
        g.words.nan_and, g.words.nan_or = nan_and, nan_or
        g.words64.nan_and = <uint64_t>(nan_and & SIGN) << 32 | <uint64_t>(nan_and & 0x7FFFFF) << 29
        g.words64.nan_or = widened(nan_or)
        g.words.minus_zero, g.words64.minus_zero = SIGN * minus_zero, <uint64_t>(SIGN * minus_zero) << 32
        g.words.least, g.words64.least = least, widened(least)
        set_missing(&g.words, &g.words64, nothing, negative)
        g.ends = (
            limit != limit_negative or over != over_negative or over != infinity or flush_below > 0
        )


cdef uint64_t widened(uint32_t word) noexcept nogil:
    """The word of the same value as a double."""
    return bits64(<double>float_of(word))


cdef void set_limits(
    GridWords* w, GridWords64* d, double cap, double limit, double limit_negative, double flush_below
) noexcept nogil:
    """In float32 a limit of 2^128 is infinity's word."""
    w.cap, d.cap = bits32(<float>cap), bits64(cap)
    w.limit, d.limit = bits32(<float>limit), bits64(limit)
    w.limit_flip, d.limit_flip = w.limit ^ bits32(<float>limit_negative), d.limit ^ bits64(limit_negative)
    w.flush_below, d.flush_below = bits32(<float>flush_below), bits64(flush_below)


cdef int set_missing(GridWords* w, GridWords64* d, object nothing, object negative) except -1:
    w.no_zero, w.no_sign = 0 - <uint32_t>(nothing is not None), 0 - <uint32_t>(negative is not None)
    d.no_zero, d.no_sign = 0 - <uint64_t>(nothing is not None), 0 - <uint64_t>(negative is not None)
    w.nothing, w.negative = <uint32_t>(nothing or 0), <uint32_t>(negative or 0)
    d.nothing, d.negative = widened(w.nothing), widened(w.negative)
    return 0


cdef int set_spacing(GridRules* g, object spacing) except -1:
    cdef GridWords* w = &g.words
    cdef GridWords64* d = &g.words64
    cdef int s
    cdef int first = spacing[0][0]
    cdef int bits = spacing[0][1]
    if len(spacing) > STEPS + 1:
        raise ValueError(f"spacing changes {len(spacing) - 1} times, at most {STEPS}")
    w.floor, d.floor = <uint32_t>max(first + 127, 0) << 23, <uint64_t>(first + 1023) << 52
    w.rise, d.rise = <uint32_t>(23 - bits) << 23, <uint64_t>(52 - bits) << 52
    for s in range(STEPS):
        w.start[s], d.start[s] = MAGNITUDE, ~<uint64_t>0 >> 1  # never
        w.change[s] = d.change[s] = 0
    for s in range(1, len(spacing)):
        first = spacing[s][0]
        w.start[s - 1], d.start[s - 1] = <uint32_t>max(first + 127, 0) << 23, <uint64_t>(first + 1023) << 52
        w.change[s - 1] = <uint32_t>(bits - <int>spacing[s][1]) << 23
        d.change[s - 1] = <uint64_t><int64_t>(bits - <int>spacing[s][1]) << 52
        bits = spacing[s][1]
    return 0


cdef void set_masks(GridRules* g, Cut cut) noexcept nogil:
    g.drop, g.low, g.add = <uint32_t>cut.drop, <uint32_t>cut.low, <uint32_t>cut.add
    g.flip, g.even, g.odd = <uint32_t>cut.flip, <uint32_t>cut.even, <uint32_t>cut.odd


# ---- rows: storage, default rules

cdef extern from *:
    """
    #include <stddef.h>

    typedef struct {
        void (*f16_decode)(const uint16_t *src, ptrdiff_t step, float *dst, ptrdiff_t n);
        void (*f16_encode)(const float *src, uint16_t *dst, ptrdiff_t step, ptrdiff_t n);
        void (*bf16_decode)(const uint16_t *src, ptrdiff_t step, float *dst, ptrdiff_t n);
        void (*bf16_encode)(const float *src, uint16_t *dst, ptrdiff_t step, ptrdiff_t n);
    } rounding_rows;

    #define ROUNDING_DECODE(NAME, ATTRIBUTE, VALUE)                                                         \\
    ATTRIBUTE static void NAME(const uint16_t *src, ptrdiff_t step, float *dst, ptrdiff_t n)                \\
    {                                                                                                       \\
        if (step == 1) for (ptrdiff_t i = 0; i < n; i++) dst[i] = VALUE(src[i]);                            \\
        else for (ptrdiff_t i = 0; i < n; i++) dst[i] = VALUE(src[i * step]);                               \\
    }
    #define ROUNDING_ENCODE(NAME, ATTRIBUTE, VALUE)                                                         \\
    ATTRIBUTE static void NAME(const float *src, uint16_t *dst, ptrdiff_t step, ptrdiff_t n)                \\
    {                                                                                                       \\
        if (step == 1) for (ptrdiff_t i = 0; i < n; i++) dst[i] = VALUE(src[i]);                            \\
        else for (ptrdiff_t i = 0; i < n; i++) dst[i * step] = VALUE(src[i]);                               \\
    }
    #define ROUNDING_WIDTH(SUFFIX, ATTRIBUTE)                                                               \\
    ROUNDING_DECODE(rounding_f16_decode_##SUFFIX, ATTRIBUTE, ascendtile_f16_decode)                         \\
    ROUNDING_ENCODE(rounding_f16_encode_##SUFFIX, ATTRIBUTE, ascendtile_f16_encode)                         \\
    ROUNDING_DECODE(rounding_bf16_decode_##SUFFIX, ATTRIBUTE, ascendtile_bf16_decode)                       \\
    ROUNDING_ENCODE(rounding_bf16_encode_##SUFFIX, ATTRIBUTE, ascendtile_bf16_encode)                       \\
    static const rounding_rows rounding_rows_##SUFFIX = {                                                   \\
        rounding_f16_decode_##SUFFIX, rounding_f16_encode_##SUFFIX, rounding_bf16_decode_##SUFFIX,          \\
        rounding_bf16_encode_##SUFFIX};

    ROUNDING_WIDTH(plain, )
    #if defined(__x86_64__) && defined(__GNUC__)
    ROUNDING_WIDTH(wide, __attribute__((target("avx2"))))
    static const rounding_rows *rounding_pick(void)
    {
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx2") ? &rounding_rows_wide : &rounding_rows_plain;
    }
    #else
    static const rounding_rows *rounding_pick(void) { return &rounding_rows_plain; }
    #endif
    """
    ctypedef struct Rows "rounding_rows":
        void (*f16_decode)(const uint16_t* src, Py_ssize_t step, float* dst, Py_ssize_t n) noexcept nogil
        void (*f16_encode)(const float* src, uint16_t* dst, Py_ssize_t step, Py_ssize_t n) noexcept nogil
        void (*bf16_decode)(const uint16_t* src, Py_ssize_t step, float* dst, Py_ssize_t n) noexcept nogil
        void (*bf16_encode)(const float* src, uint16_t* dst, Py_ssize_t step, Py_ssize_t n) noexcept nogil
    const Rows* pick_rows "rounding_pick"() noexcept nogil

cdef const Rows* rows = pick_rows()  # the widest that this machine has; all give the same bits
cdef const GridLoops* loops = pick_loops(True)


cdef void decode_row(
    const uint16_t* src, Py_ssize_t stride, float* dst, Py_ssize_t n, bint bfloat
) noexcept nogil:
    (rows.bf16_decode if bfloat else rows.f16_decode)(src, stride, dst, n)


cdef void encode_row(
    const float* src, uint16_t* dst, Py_ssize_t stride, Py_ssize_t n, bint bfloat
) noexcept nogil:
    (rows.bf16_encode if bfloat else rows.f16_encode)(src, dst, stride, n)


cdef void flush_row(float* x, Py_ssize_t n) noexcept nogil:
    """FP32 subnormals become zero of the same sign."""
    loops.flush(x, NULL, n, NULL)


# ---- rows: to a grid

cdef void round_row(float* x, Py_ssize_t n, const GridRules* rules) noexcept nogil:
    round_row_with(x, NULL, n, rules)


cdef void round_row_with(
    float* x, const uint32_t* random, Py_ssize_t n, const GridRules* rules
) noexcept nogil:
    """`random`: a word for each element, where the mode is STOCHASTIC."""
    if rules.path == NARROW:
        loops.narrow[rules.ends][rules.mode](x, random, n, rules)
    elif rules.path == TAPERED:
        loops.tapered[rules.ends][rules.mode](x, random, n, rules)
    elif rules.path == SHORT:
        loops.shorted(x, NULL, n, rules)
    elif rules.path == WIDE:
        (loops.wide_stochastic if rules.mode == STOCHASTIC else loops.wide)(x, random, n, rules)
    elif rules.path == POWERS:
        (loops.power_stochastic if rules.mode == STOCHASTIC else loops.power)(x, random, n, rules)
    elif rules.path == FLUSH:
        loops.flush(x, NULL, n, rules)
    elif rules.path == GENERAL:
        loops.general[rules.mode](x, random, n, rules)


cdef void round_double_row(
    const double* src, float* dst, Py_ssize_t n, const GridRules* rules
) noexcept nogil:
    loops.from_double[rules.mode](src, dst, NULL, n, rules)


# ---- float64 and integers

cdef enum:
    INT_DROP = 10  # a value below 2^53 as an integer keeps ten fraction bits, the last one sticky


cdef inline uint64_t cut_bits64(uint64_t m, uint64_t negative, Cut cut) noexcept nogil:
    cdef uint64_t lost = (m & cut.low) + cut.low
    cdef uint64_t add = cut.add ^ (cut.flip & negative)
    return ((m + add + (m >> cut.drop & cut.even)) & ~cut.low) | (lost & cut.odd)


cdef inline uint64_t fixed_point(double magnitude, double scale) noexcept nogil:
    """magnitude * scale, below 2^63, as an integer; its last bit is set if anything smaller is left."""
    cdef double scaled = magnitude * scale
    cdef int64_t units = <int64_t>scaled
    return <uint64_t>units | (<double>units != scaled)


cdef uint64_t integer_magnitude(double x, Cut cut, bint wrap) noexcept nogil:
    """abs(x) rounded to an integer: clamped to 64 bits, or modulo 2^64. NaN and a wrapped infinity give 0."""
    cdef uint64_t u = bits64(x)
    cdef uint64_t m = u & (~<uint64_t>0 >> 1)
    cdef uint64_t exponent = m >> 52
    if m > <uint64_t>0x7FF << 52:
        return 0
    if exponent < 1023 + 53:
        return cut_bits64(fixed_point(double_of(m), <double>(1 << INT_DROP)), 0 - (u >> 63), cut) >> INT_DROP
    m = (m & ((<uint64_t>1 << 52) - 1)) | <uint64_t>1 << 52
    if exponent < 1023 + 64:
        return m << (exponent - 1023 - 52)
    if not wrap:
        return ~<uint64_t>0
    return m << (exponent - 1023 - 52) if exponent < 1023 + 52 + 64 else 0


# ---- what Python calls: contiguous arrays, checked by rounding.py

def decode(const uint16_t[::1] src, float[::1] dst, bint bfloat):
    """FP16 or BF16 bits to float32."""
    with nogil:
        if src.shape[0] > 0:
            decode_row(&src[0], 1, &dst[0], src.shape[0], bfloat)


def encode(const float[::1] src, uint16_t[::1] dst, bint bfloat):
    """float32 to FP16 or BF16 bits, default rules."""
    with nogil:
        if src.shape[0] > 0:
            encode_row(&src[0], &dst[0], 1, src.shape[0], bfloat)


def round_values(
    const Real[::1] src, float[::1] dst, Rounding rounding, const uint32_t[::1] random, object seed
):
    """float32 or float64 to the grid, in blocks that stay in L1; `src` may be `dst`.

    Where the mode is STOCHASTIC, the words of `random`, one for each element, or Philox's of `seed`, if that
    is not None, decide.
    """
    cdef const GridRules* rules = &rounding.rules
    cdef uint32_t[BLOCK] words
    cdef const uint32_t* given = NULL
    cdef const uint32_t* drawn = NULL
    cdef bint draws = seed is not None
    cdef uint64_t key = seed if draws else 0
    cdef Py_ssize_t n = src.shape[0]
    cdef Py_ssize_t start = 0
    cdef Py_ssize_t size
    if random is not None and random.shape[0] > 0:
        given = &random[0]
    with nogil:
        while start < n:
            size = min(<Py_ssize_t>BLOCK, n - start)
            if given != NULL:
                drawn = given + start
            if draws:
                loops.random(words, size, key, <uint64_t>start)
                drawn = words
            if Real is double:
                loops.from_double[rules.mode](&src[start], &dst[start], drawn, size, rules)
            else:
                if &src[0] != &dst[0]:
                    memcpy(&dst[start], &src[start], size * sizeof(float))
                round_row_with(&dst[start], drawn, size, rules)
            start += size


def random_words(uint32_t[::1] out, uint64_t seed, uint64_t first, bint widest):
    """Philox's words of the counters from `first` on; `widest`: by the widest loop that this machine has."""
    with nogil:
        if out.shape[0] > 0:
            pick_loops(widest).random(&out[0], out.shape[0], seed, first)


def round_integer(
    const Real[::1] src, uint64_t[::1] dst, Mode mode, bint wrap, uint64_t most, uint64_t least
):
    """To integers in 64-bit two's complement; `most` and `least` are the ends of the range as magnitudes."""
    cdef Cut cut = make_cut(mode, INT_DROP)
    cdef Py_ssize_t i
    cdef uint64_t m, limit
    with nogil:
        for i in range(src.shape[0]):
            m = integer_magnitude(src[i], cut, wrap)
            limit = least if src[i] < 0 else most
            m = limit if m > limit and not wrap else m
            dst[i] = 0 - m if src[i] < 0 else m


def flush(float[::1] x):
    """FP32 subnormals to signed zero, in place."""
    with nogil:
        if x.shape[0] > 0:
            flush_row(&x[0], x.shape[0])


def add_row(float[::1] total, const float[::1] start, bint flush):
    """total += start; `flush`: with zeros for subnormals of both, a block of the cache at a time."""
    cdef float[1024] block
    cdef Py_ssize_t first = 0
    cdef Py_ssize_t i, n
    with nogil:
        while first < total.shape[0]:
            n = min(total.shape[0] - first, <Py_ssize_t>1024)
            memcpy(block, &start[first], n * sizeof(float))
            if flush:
                flush_row(block, n)
            for i in range(n):
                total[first + i] += block[i]
            if flush:
                flush_row(&total[first], n)
            first += n
