# The contract of the one place that rounds: one value (inline), rows of values, and rules for every mode.
#
# A row is n values; strides count elements, not bytes. Where no Cut is given the rules are the default ones:
# nearest with ties to even, overflow to infinity, subnormals kept.

from libc.stdint cimport int32_t, uint16_t, uint32_t, uint64_t

cdef extern from *:
    """
    #ifndef ASCENDTILE_FLOAT_BITS
    #define ASCENDTILE_FLOAT_BITS
    #include <stdint.h>
    #include <string.h>
    /* memcpy is the one way to reinterpret a float that C allows; gcc still vectorises the loop around it. */
    static inline uint32_t ascendtile_bits32(float x) { uint32_t u; memcpy(&u, &x, sizeof u); return u; }
    static inline float ascendtile_float(uint32_t u) { float x; memcpy(&x, &u, sizeof x); return x; }
    static inline uint64_t ascendtile_bits64(double x) { uint64_t u; memcpy(&u, &x, sizeof u); return u; }
    static inline double ascendtile_double(uint64_t u) { double x; memcpy(&x, &u, sizeof x); return x; }
    #endif
    """
    uint32_t bits32 "ascendtile_bits32"(float x) noexcept nogil
    float float_of "ascendtile_float"(uint32_t u) noexcept nogil
    uint64_t bits64 "ascendtile_bits64"(double x) noexcept nogil
    double double_of "ascendtile_double"(uint64_t u) noexcept nogil

cdef enum:
    SIGN = 0x80000000
    MAGNITUDE = 0x7FFFFFFF
    INFINITY = 0x7F800000
    QUIET = 0x00400000
    MIN_NORMAL = 0x00800000      # 2^-126
    F16_MIN_NORMAL = 0x38800000  # 2^-14
    F16_REBASE = 0x38000000      # exponent bias 127 - 15, in place
    F16_LIMIT = 0x47800000       # 65536
    F16_DROP = 13
    HALF = 0x3F000000            # 0.5f, whose ulp is 2^-24, the smallest FP16 subnormal

cdef enum Target:  # number formats that values are rounded to
    TO_FP16
    TO_BF16
    TO_HF32
    TO_TF32
    TO_FP32

cdef enum Mode:  # Ascend C "Cast" names; RNZ (nearest, ties to zero) is the other reading of HF32 mode 1
    RINT
    FLOOR
    CEIL
    ROUND
    TRUNC
    ODD
    RNZ

cdef struct Cut:  # how the low bits of a magnitude go away; the same masks express every mode
    uint64_t drop  # number of low bits that the target lacks
    uint64_t low   # mask of those bits
    uint64_t add   # added before the cut
    uint64_t flip  # FLOOR, CEIL: exclusive-or with `add` for negative values
    uint64_t even  # 1: also add the lowest kept bit
    uint64_t odd   # the lowest kept bit, if it is to be set when anything is lost

cdef struct Ends:  # what becomes of values at the ends of the range, as FP32 words
    uint32_t limit        # first rounded magnitude that the target cannot hold
    uint32_t over         # what stands for it, positive values
    uint32_t over_flip    # exclusive-or with `over` for negative values
    uint32_t infinity     # what stands for an infinite operand
    uint32_t nan_and      # NaN: these bits of the word stay, sign included
    uint32_t nan_or       # and these are set
    uint32_t flush_below  # operands below become signed zero


# ---- rules: build them once, outside the loop over rows

cdef Cut make_cut(Mode mode, uint64_t drop) noexcept nogil
cdef Ends make_ends(Target target, Mode mode, bint saturate, bint flush) noexcept nogil
cdef uint64_t stored_bits(Target target) noexcept nogil


# ---- rows: storage to float32 and back; decoding is exact, and a NaN keeps sign and payload both ways

cdef void f16_decode_row(const uint16_t* src, Py_ssize_t src_stride, float* dst, Py_ssize_t n) noexcept nogil
cdef void f16_encode_row(const float* src, uint16_t* dst, Py_ssize_t dst_stride, Py_ssize_t n) noexcept nogil
cdef void bf16_decode_row(const uint16_t* src, Py_ssize_t src_stride, float* dst, Py_ssize_t n) noexcept nogil
cdef void bf16_encode_row(const float* src, uint16_t* dst, Py_ssize_t dst_stride, Py_ssize_t n) noexcept nogil


# ---- rows: float32, in place, to the grid of a format

cdef void f16_round_row(float* x, Py_ssize_t n) noexcept nogil
cdef void bf16_round_row(float* x, Py_ssize_t n) noexcept nogil
cdef void hf32_round_row(float* x, Py_ssize_t n) noexcept nogil
cdef void tf32_round_row(float* x, Py_ssize_t n) noexcept nogil
cdef void flush_row(float* x, Py_ssize_t n) noexcept nogil
cdef void round_row(float* x, Py_ssize_t n, Target target, Cut cut, Ends ends) noexcept nogil

# From float64 in one rounding; here `cut` drops 52 - stored_bits(target).
cdef void round_double_row(
    const double* src, float* dst, Py_ssize_t n, Target target, Cut cut, Ends ends
) noexcept nogil


# ---- one value
# Masks, not conditions: gcc turns `x if c else y` into jumps and then does not vectorise the loop around it.

cdef inline uint32_t below(uint32_t a, uint32_t b) noexcept nogil:
    """All ones if a < b; both under 2^31, so that the signed comparison of SSE2 serves."""
    return 0 - <uint32_t>(<int32_t>a < <int32_t>b)


cdef inline uint32_t pick(uint32_t mask, uint32_t yes, uint32_t no) noexcept nogil:
    return no ^ ((no ^ yes) & mask)


cdef inline float f16_decode(uint16_t half) noexcept nogil:
    cdef uint32_t sign = (<uint32_t>half & 0x8000) << 16
    cdef uint32_t m = half & 0x7FFF
    cdef uint32_t special = below(0x7BFF, m) & <uint32_t>F16_REBASE  # infinity, NaN: exponent 255, not 143
    cdef uint32_t normal = (m << F16_DROP) + <uint32_t>F16_REBASE + special
    cdef uint32_t tiny = bits32(float_of(HALF + m) - <float>0.5)  # m units of 2^-24, no FP32 subnormal used
    return float_of(sign | pick(below(m, 0x400), tiny, normal))


cdef inline uint16_t f16_encode(float x) noexcept nogil:
    cdef uint32_t u = bits32(x)
    cdef uint32_t m = u & MAGNITUDE
    cdef uint32_t r = (m - F16_REBASE + 0xFFF + (m >> F16_DROP & 1)) >> F16_DROP
    cdef uint32_t tiny = bits32(float_of(m) + <float>0.5) - HALF  # the sum rounds to multiples of 2^-24
    cdef uint32_t payload = m >> F16_DROP & 0x3FF
    cdef uint32_t nan = 0x7C00 | payload | (below(payload, 1) & 0x200)
    r = pick(below(0x7C00, r), 0x7C00, r)
    r = pick(below(m, F16_MIN_NORMAL), tiny, r)
    r = pick(below(INFINITY, m), nan, r)
    return <uint16_t>(r | (u >> 16 & 0x8000))


cdef inline float bf16_decode(uint16_t half) noexcept nogil:
    return float_of(<uint32_t>half << 16)


cdef inline uint16_t bf16_encode(float x) noexcept nogil:
    cdef uint32_t u = bits32(x)
    cdef uint32_t rounded = (u + 0x7FFF + (u >> 16 & 1)) >> 16
    cdef uint32_t nan = u >> 16 | (below(u >> 16 & 0x7F, 1) & 0x40)
    return <uint16_t>pick(below(INFINITY, u & MAGNITUDE), nan, rounded)


cdef inline uint32_t f16_nearest(uint32_t m) noexcept nogil:
    """A finite magnitude to the FP16 grid as if that had no end."""
    cdef uint32_t r = (m + 0xFFF + (m >> F16_DROP & 1)) & ~<uint32_t>0x1FFF
    cdef uint32_t tiny = bits32((float_of(m) + <float>0.5) - <float>0.5)
    return pick(below(m, F16_MIN_NORMAL), tiny, r)


cdef inline float f16_round(float x) noexcept nogil:
    cdef uint32_t u = bits32(x)
    cdef uint32_t m = u & MAGNITUDE
    cdef uint32_t r = pick(below(m, F16_LIMIT - 0x1000), f16_nearest(m), INFINITY)
    r = pick(below(INFINITY, m), (m | QUIET) & ~<uint32_t>0x1FFF, r)
    return float_of(r | (u & SIGN))


cdef inline float wide_round(float x, uint32_t drop) noexcept nogil:
    """BF16 (drop 16), HF32 (12), TF32 (13): the carry into the exponent, and into infinity, is right."""
    cdef uint32_t u = bits32(x)
    cdef uint32_t low = (<uint32_t>1 << drop) - 1
    cdef uint32_t r = u + (low >> 1) + (u >> drop & 1)
    return float_of(pick(below(INFINITY, u & MAGNITUDE), u | QUIET, r) & ~low)
