"""Every rounding of the simulator: storage to float32 and back, float32 and float64 to a format's grid.

Loops only; names, defaults and checks are in rounding.py. The float32 loops use masks in place of conditions
so that gcc vectorises them at the x86-64 baseline. They need round-to-nearest and a build without fast-math.
"""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    BLOCK = 2048  # elements of an out-of-place block: 8 KiB stay in L1

MODES = {"RINT": RINT, "FLOOR": FLOOR, "CEIL": CEIL, "ROUND": ROUND, "TRUNC": TRUNC, "ODD": ODD, "RNZ": RNZ}
TARGETS = {"fp16": TO_FP16, "bf16": TO_BF16, "hf32": TO_HF32, "tf32": TO_TF32, "fp32": TO_FP32}


# ---- rules

cdef uint64_t stored_bits(Target target) noexcept nogil:
    """Mantissa bits that the format stores."""
    return (10 if target == TO_FP16 or target == TO_TF32 else
            7 if target == TO_BF16 else
            11 if target == TO_HF32 else 23)


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


cdef inline uint32_t largest(Target target) noexcept nogil:
    """FP32 bits of the largest finite value."""
    if target == TO_FP16:
        return 0x477FE000
    return INFINITY - (<uint32_t>1 << (23 - stored_bits(target)))


cdef Ends make_ends(Target target, Mode mode, bint saturate, bint flush) noexcept nogil:
    """Overflow as IEEE 754 has it (a mode that rounds toward zero never reaches infinity), or saturated."""
    cdef Ends ends
    cdef uint32_t top = largest(target)
    ends.limit = F16_LIMIT if target == TO_FP16 else INFINITY
    ends.over = top if saturate or mode == TRUNC or mode == ODD or mode == FLOOR else INFINITY
    ends.over_flip = top ^ INFINITY if not saturate and (mode == FLOOR or mode == CEIL) else 0
    ends.infinity = top if saturate else INFINITY
    ends.nan_and = 0 if saturate else ~((<uint32_t>1 << (23 - stored_bits(target))) - 1)
    ends.nan_or = 0 if saturate else INFINITY | QUIET
    ends.flush_below = (F16_MIN_NORMAL if target == TO_FP16 else MIN_NORMAL) if flush else 0
    return ends


# ---- rows, default rules

cdef extern from *:
    """
    #include <stddef.h>

    typedef struct {
        void (*f16_decode)(const uint16_t *src, ptrdiff_t step, float *dst, ptrdiff_t n);
        void (*f16_encode)(const float *src, uint16_t *dst, ptrdiff_t step, ptrdiff_t n);
        void (*bf16_decode)(const uint16_t *src, ptrdiff_t step, float *dst, ptrdiff_t n);
        void (*bf16_encode)(const float *src, uint16_t *dst, ptrdiff_t step, ptrdiff_t n);
        void (*f16_round)(float *x, ptrdiff_t n);
        void (*wide_round)(float *x, ptrdiff_t n, uint32_t drop);
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
    ATTRIBUTE static void rounding_f16_##SUFFIX(float *x, ptrdiff_t n)                                      \\
    {                                                                                                       \\
        for (ptrdiff_t i = 0; i < n; i++) x[i] = ascendtile_f16_round(x[i]);                                \\
    }                                                                                                       \\
    ATTRIBUTE static void rounding_wide_##SUFFIX(float *x, ptrdiff_t n, uint32_t drop)                      \\
    {                                                                                                       \\
        for (ptrdiff_t i = 0; i < n; i++) x[i] = ascendtile_wide_round(x[i], drop);                         \\
    }                                                                                                       \\
    static const rounding_rows rounding_rows_##SUFFIX = {                                                   \\
        rounding_f16_decode_##SUFFIX, rounding_f16_encode_##SUFFIX, rounding_bf16_decode_##SUFFIX,          \\
        rounding_bf16_encode_##SUFFIX, rounding_f16_##SUFFIX, rounding_wide_##SUFFIX};

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
        void (*f16_round)(float* x, Py_ssize_t n) noexcept nogil
        void (*wide_round)(float* x, Py_ssize_t n, uint32_t drop) noexcept nogil
    const Rows* pick_rows "rounding_pick"() noexcept nogil

cdef const Rows* rows = pick_rows()  # the widest that this machine has; all give the same bits


cdef void decode_row(
    const uint16_t* src, Py_ssize_t stride, float* dst, Py_ssize_t n, bint bfloat
) noexcept nogil:
    (rows.bf16_decode if bfloat else rows.f16_decode)(src, stride, dst, n)


cdef void encode_row(
    const float* src, uint16_t* dst, Py_ssize_t stride, Py_ssize_t n, bint bfloat
) noexcept nogil:
    (rows.bf16_encode if bfloat else rows.f16_encode)(src, dst, stride, n)


cdef void nearest_row(float* x, Py_ssize_t n, Target target) noexcept nogil:
    if target == TO_FP16:
        rows.f16_round(x, n)
    elif target != TO_FP32:
        rows.wide_round(x, n, <uint32_t>(23 - stored_bits(target)))


cdef void flush_row(float* x, Py_ssize_t n) noexcept nogil:
    """FP32 subnormals become zero of the same sign."""
    cdef Py_ssize_t i
    cdef uint32_t u
    for i in range(n):
        u = bits32(x[i])
        x[i] = float_of(u & (~below(u & MAGNITUDE, MIN_NORMAL) | SIGN))


# ---- rows, any rule

cdef inline uint32_t cut_bits(uint32_t m, uint32_t negative, Cut cut) noexcept nogil:
    """`negative` is 0 or all ones. Also right for m = 0 and for exact values: nothing lost, nothing added."""
    cdef uint32_t low = <uint32_t>cut.low
    cdef uint32_t lost = (m & low) + low  # the bit above `low` is set if any dropped bit is
    cdef uint32_t add = <uint32_t>cut.add ^ (<uint32_t>cut.flip & negative)
    return ((m + add + (m >> <uint32_t>cut.drop & <uint32_t>cut.even)) & ~low) | (lost & <uint32_t>cut.odd)


cdef inline uint32_t apply_ends(uint32_t r, uint32_t u, Ends ends) noexcept nogil:
    """The word for rounded magnitude r of the FP32 operand u."""
    cdef uint32_t m = u & MAGNITUDE
    cdef uint32_t sign = u & SIGN
    cdef uint32_t over = ends.over ^ (ends.over_flip & (0 - (u >> 31)))
    cdef uint32_t nan = (u & ends.nan_and) | ends.nan_or
    r = pick(below(r, ends.limit), r, over) & ~below(m, ends.flush_below)
    r = pick(below(m, INFINITY), r, ends.infinity)
    return pick(below(INFINITY, m), nan, r | sign)


cdef inline uint32_t f16_code(uint32_t m) noexcept nogil:
    """FP32 magnitude to an FP16 magnitude with 13 bits more, linear across the border of the subnormals.

    Below 2^-14 it counts units of 2^-37; the last bit is set if anything smaller is left: no tie goes wrong.
    """
    cdef uint32_t small = below(m, F16_MIN_NORMAL)
    cdef float scaled = float_of(m & small) * <float>(<uint64_t>1 << 37)
    cdef int32_t units = <int32_t>scaled
    cdef uint32_t sticky = <uint32_t>(<float>units != scaled)
    return pick(small, <uint32_t>units | sticky, m - F16_REBASE)


cdef inline uint32_t f16_uncode(uint32_t code) noexcept nogil:
    cdef float tiny = <float><int32_t>code * float_of(0x2D000000)  # 2^-37; exact, code is at most 2^23 here
    return pick(below(code, MIN_NORMAL), bits32(tiny), code + F16_REBASE)


cdef void wide_row(float* x, Py_ssize_t n, Cut cut, Ends ends) noexcept nogil:
    cdef Py_ssize_t i
    cdef uint32_t u
    for i in range(n):
        u = bits32(x[i])
        x[i] = float_of(apply_ends(cut_bits(u & MAGNITUDE, 0 - (u >> 31), cut), u, ends))


cdef void half_row(float* x, Py_ssize_t n, Cut cut, Ends ends) noexcept nogil:
    cdef Py_ssize_t i
    cdef uint32_t u, r
    for i in range(n):
        u = bits32(x[i])
        r = f16_uncode(cut_bits(f16_code(u & MAGNITUDE), 0 - (u >> 31), cut))
        x[i] = float_of(apply_ends(r, u, ends))


cdef void half_nearest_row(float* x, Py_ssize_t n, Ends ends) noexcept nogil:
    """half_row of RINT in little more than half the time: saturating FP16 is all that 910A and 310P have."""
    cdef Py_ssize_t i
    cdef uint32_t u
    for i in range(n):
        u = bits32(x[i])
        x[i] = float_of(apply_ends(f16_nearest(u & MAGNITUDE), u, ends))


cdef void round_row(float* x, Py_ssize_t n, Target target, Cut cut, Ends ends) noexcept nogil:
    if target == TO_FP16 and cut.even:  # only RINT looks at the last kept bit
        half_nearest_row(x, n, ends)
    elif target == TO_FP16:
        half_row(x, n, cut, ends)
    else:
        wide_row(x, n, cut, ends)


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


cdef inline uint64_t double_code(uint64_t m, uint64_t min_normal) noexcept nogil:
    """FP64 magnitude to a code with 52 mantissa bits, linear across the target's smallest normal."""
    cdef uint64_t rebase = min_normal - (<uint64_t>1 << 52)
    if m >= min_normal:
        return m - rebase
    return fixed_point(double_of(m), double_of((<uint64_t>(2 * 1023 + 52) << 52) - min_normal))


cdef inline uint32_t double_word(uint64_t code, uint32_t rebase) noexcept nogil:
    """The FP32 magnitude of a code, its low 29 bits dropped; huge codes stop at infinity."""
    if code < <uint64_t>1 << 52:
        return f16_uncode(<uint32_t>(code >> 29)) if rebase else <uint32_t>(code >> 29)
    code = (code >> 29) + rebase
    return <uint32_t>code if code < INFINITY else INFINITY


cdef void round_double_row(
    const double* src, float* dst, Py_ssize_t n, Target target, Cut cut, Ends ends
) noexcept nogil:
    """One rounding from float64: build `cut` with drop = 52 - stored mantissa bits."""
    cdef Py_ssize_t i
    cdef uint64_t u, m, code
    cdef uint64_t min_normal = <uint64_t>(1023 - 14 if target == TO_FP16 else 1023 - 126) << 52
    cdef uint32_t rebase = F16_REBASE if target == TO_FP16 else 0
    cdef uint32_t sign, word, operand
    for i in range(n):
        u = bits64(src[i])
        m = u & (~<uint64_t>0 >> 1)
        sign = <uint32_t>(u >> 32) & SIGN
        if m >= <uint64_t>0x7FF << 52:
            operand = INFINITY | QUIET if m > <uint64_t>0x7FF << 52 else INFINITY
            word = operand
        else:
            code = double_code(m, min_normal)
            # the operand is only compared with the flush limit, and must not pass for infinity
            operand = 0 if m < min_normal else INFINITY - 1
            word = double_word(cut_bits64(code, 0 - (u >> 63), cut), rebase)
        dst[i] = float_of(apply_ends(word, operand | sign, ends))


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


ctypedef fused Real:
    float
    double


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


def round_float(
    const float[::1] src, float[::1] dst, Target target, Mode mode, bint saturate, bint flush
):
    """float32 to the grid of `target`, in blocks that stay in L1; `src` may be `dst`."""
    cdef Cut cut = make_cut(mode, 23 - stored_bits(target))
    cdef Ends ends = make_ends(target, mode, saturate, flush)
    cdef bint default = mode == RINT and not saturate and not flush
    cdef Py_ssize_t n = src.shape[0]
    cdef Py_ssize_t start = 0
    cdef Py_ssize_t size
    with nogil:
        while start < n:
            size = min(<Py_ssize_t>BLOCK, n - start)
            if &src[0] != &dst[0]:
                memcpy(&dst[start], &src[start], size * sizeof(float))
            if default:
                nearest_row(&dst[start], size, target)
            else:
                round_row(&dst[start], size, target, cut, ends)
            start += size


def round_double(
    const double[::1] src, float[::1] dst, Target target, Mode mode, bint saturate, bint flush
):
    """float64 to the grid of `target` in one rounding."""
    cdef Cut cut = make_cut(mode, 52 - stored_bits(target))
    cdef Ends ends = make_ends(target, mode, saturate, flush)
    with nogil:
        if src.shape[0] > 0:
            round_double_row(&src[0], &dst[0], src.shape[0], target, cut, ends)


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
