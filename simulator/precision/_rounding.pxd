# The contract of the one place that rounds: one value (inline), rows of values, and rules for every mode.
#
# A row is n values; strides count elements, not bytes. Storage is encoded by the default rules: nearest with
# ties to even, overflow to infinity, subnormals kept.

from libc.stdint cimport uint16_t, uint32_t, uint64_t

from ascendtile.simulator.precision._grid_rules cimport GridRules

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
    MIN_NORMAL = 0x00800000      # 2^-126

cdef class Rounding:
    """How values are brought to a format, by one mode and one pair of choices: see rounding_rules.py."""
    cdef GridRules rules


# ---- rows: FP16 or BF16 in memory to float32 and back; decoding is exact, a NaN keeps sign and payload

cdef void decode_row(
    const uint16_t* src, Py_ssize_t stride, float* dst, Py_ssize_t n, bint bfloat
) noexcept nogil
cdef void encode_row(
    const float* src, uint16_t* dst, Py_ssize_t stride, Py_ssize_t n, bint bfloat
) noexcept nogil


# ---- rows: to the grid of a format; the mode is none that needs random bits

cdef void flush_row(float* x, Py_ssize_t n) noexcept nogil
cdef void round_row(float* x, Py_ssize_t n, const GridRules* rules) noexcept nogil  # in place
cdef void round_double_row(  # one rounding
    const double* src, float* dst, Py_ssize_t n, const GridRules* rules
) noexcept nogil


# ---- one value
# C, so that a loop around it can be compiled for wider vectors. Masks, not conditions: gcc turns `c ? x : y`
# into jumps and then does not vectorise the loop.

cdef extern from *:
    """
    #ifndef ASCENDTILE_ONE_VALUE
    #define ASCENDTILE_ONE_VALUE
    #if defined(__GNUC__)
    #define ASCENDTILE_VALUE static inline __attribute__((always_inline))
    #else
    #define ASCENDTILE_VALUE static inline
    #endif

    /* All ones if a < b; both under 2^31, so that the signed comparison of SSE2 serves. */
    ASCENDTILE_VALUE uint32_t ascendtile_below(uint32_t a, uint32_t b) {
        return -(uint32_t)((int32_t)a < (int32_t)b);
    }
    ASCENDTILE_VALUE uint32_t ascendtile_pick(uint32_t mask, uint32_t yes, uint32_t no) {
        return no ^ ((no ^ yes) & mask);
    }
    ASCENDTILE_VALUE float ascendtile_f16_decode(uint16_t half) {
        const uint32_t sign = ((uint32_t)half & 0x8000) << 16, m = half & 0x7FFF;
        /* infinity, NaN: exponent 255, not 143 */
        const uint32_t special = ascendtile_below(0x7BFF, m) & 0x38000000u;
        const uint32_t normal = (m << 13) + 0x38000000u + special;
        /* m units of 2^-24, no FP32 subnormal used */
        const uint32_t tiny = ascendtile_bits32(ascendtile_float(0x3F000000u + m) - 0.5f);
        return ascendtile_float(sign | ascendtile_pick(ascendtile_below(m, 0x400), tiny, normal));
    }
    ASCENDTILE_VALUE uint16_t ascendtile_f16_encode(float x) {
        const uint32_t u = ascendtile_bits32(x), m = u & 0x7FFFFFFFu;
        uint32_t r = (m - 0x38000000u + 0xFFF + (m >> 13 & 1)) >> 13;
        /* the sum rounds to multiples of 2^-24 */
        const uint32_t tiny = ascendtile_bits32(ascendtile_float(m) + 0.5f) - 0x3F000000u;
        const uint32_t payload = m >> 13 & 0x3FF;
        const uint32_t nan = 0x7C00 | payload | (ascendtile_below(payload, 1) & 0x200);
        r = ascendtile_pick(ascendtile_below(0x7C00, r), 0x7C00, r);
        r = ascendtile_pick(ascendtile_below(m, 0x38800000u), tiny, r);
        r = ascendtile_pick(ascendtile_below(0x7F800000u, m), nan, r);
        return (uint16_t)(r | (u >> 16 & 0x8000));
    }
    ASCENDTILE_VALUE float ascendtile_bf16_decode(uint16_t half) {
        return ascendtile_float((uint32_t)half << 16);
    }
    ASCENDTILE_VALUE uint16_t ascendtile_bf16_encode(float x) {
        const uint32_t u = ascendtile_bits32(x), rounded = (u + 0x7FFF + (u >> 16 & 1)) >> 16;
        const uint32_t nan = u >> 16 | (ascendtile_below(u >> 16 & 0x7F, 1) & 0x40);
        return (uint16_t)ascendtile_pick(ascendtile_below(0x7F800000u, u & 0x7FFFFFFFu), nan, rounded);
    }
    #endif
    """
    uint32_t below "ascendtile_below"(uint32_t a, uint32_t b) noexcept nogil
    uint32_t pick "ascendtile_pick"(uint32_t mask, uint32_t yes, uint32_t no) noexcept nogil
