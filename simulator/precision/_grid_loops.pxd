# Rounding to the grid of a format, in C: one definition of each loop in two vector widths, chosen at run
# time.
#
# A grid is its spacing: from the binade of a magnitude follows the number whose float32 (or double)
# neighbours lie one spacing apart. Adding it and taking it away again rounds to nearest even; the difference
# is exact, and says what every other mode needs. A format whose spacing changes (no subnormals, tapered) has
# steps. Masks, not conditions: gcc turns `c ? x : y` into jumps and then does not vectorise the loop.

from libc.stdint cimport uint32_t

from ascendtile.simulator.precision._grid_rules cimport GridRules
from ascendtile.simulator.precision._philox cimport words_t

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    enum {GRID_RINT, GRID_FLOOR, GRID_CEIL, GRID_ROUND, GRID_TRUNC, GRID_ODD, GRID_RNZ, GRID_STOCHASTIC};

    #if defined(__GNUC__)
    #define GRID_VALUE static inline __attribute__((always_inline))
    #else
    #define GRID_VALUE static inline
    #endif

    GRID_VALUE uint32_t grid_bits(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }
    GRID_VALUE float grid_of(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }
    GRID_VALUE uint64_t grid_bits64(double x) { uint64_t u; memcpy(&u, &x, 8); return u; }
    GRID_VALUE double grid_of64(uint64_t u) { double x; memcpy(&x, &u, 8); return x; }

    /* The first 31 dropped bits and 31 random ones are added, and a carry rounds away. `rest`: what is
       dropped, in ulps. */
    GRID_VALUE uint32_t grid_carry(float rest, uint32_t random) {
        const uint32_t sum = (uint32_t)(int32_t)(rest * 2147483648.0f) + (random >> 1);
        return -(sum >> 31);
    }
    GRID_VALUE uint64_t grid_carry64(double rest, uint32_t random) {
        return -(uint64_t)(rest * 2147483648.0 + (double)(int32_t)(random >> 1) >= 2147483648.0);
    }

    #define GRID_WIDTH(SUFFIX, REAL, WORD, SIGNED, STORED, BIAS)                                            \\
    /* All ones if a < b; both without their highest bit, so that signed comparisons serve. */              \\
    GRID_VALUE WORD grid_below##SUFFIX(WORD a, WORD b) { return -(WORD)((SIGNED)a < (SIGNED)b); }           \\
    GRID_VALUE WORD grid_pick##SUFFIX(WORD mask, WORD yes, WORD no) { return no ^ ((no ^ yes) & mask); }    \\
    GRID_VALUE REAL grid_if##SUFFIX(WORD mask, REAL x) {                                                    \\
        return grid_of##SUFFIX(grid_bits##SUFFIX(x) & mask);                                                \\
    }                                                                                                       \\
                                                                                                            \\
    /* A magnitude to the grid whose spacing `adder` says; all of it is exact but the first sum. */         \\
    GRID_VALUE REAL grid_round##SUFFIX(REAL x, WORD adder, WORD negative, int mode, uint32_t random)        \\
    {                                                                                                       \\
        const REAL big = grid_of##SUFFIX(adder), nearest = (x + big) - big;                                 \\
        if (mode == GRID_RINT) return nearest;                                                              \\
        const REAL ulp = grid_of##SUFFIX(adder - ((WORD)STORED << STORED)), off = x - nearest;              \\
        if (mode == GRID_ROUND) return nearest + grid_if##SUFFIX(-(WORD)(off + off == ulp), ulp);           \\
        if (mode == GRID_RNZ) return nearest - grid_if##SUFFIX(-(WORD)(off + off == -ulp), ulp);            \\
        const REAL low = nearest - grid_if##SUFFIX(-(WORD)(off < 0), ulp);                                  \\
        if (mode == GRID_TRUNC) return low;                                                                 \\
        const REAL rest = x - low;                                                                          \\
        WORD up = -(WORD)(rest > 0);                                                                        \\
        if (mode == GRID_FLOOR) up &= negative;                                                             \\
        if (mode == GRID_CEIL) up &= ~negative;                                                             \\
        if (mode == GRID_ODD) {                                                                             \\
            const REAL twice = grid_of##SUFFIX(adder + ((WORD)1 << STORED));                                \\
            up &= -(WORD)((low + twice) - twice == low);                                                    \\
        }                                                                                                   \\
        if (mode == GRID_STOCHASTIC) {                                                                      \\
            const WORD inverse = ((WORD)(2 * BIAS) << STORED) - grid_bits##SUFFIX(ulp);                     \\
            up = grid_carry##SUFFIX(rest * grid_of##SUFFIX(inverse), random);                               \\
        }                                                                                                   \\
        return low + grid_if##SUFFIX(up, ulp);                                                              \\
    }                                                                                                       \\
                                                                                                            \\
    /* The value for a rounded magnitude r of the operand u = sign | m. ends 0: both signs alike, infinity  \\
       as what is too large, nothing flushed; 1: all rules; 2: of formats without a sign or a zero, too. */ \\
    GRID_VALUE REAL grid_ends##SUFFIX(                                                                      \\
        WORD r, WORD u, WORD sign, WORD m, const grid_words##SUFFIX *g, int ends)                           \\
    {                                                                                                       \\
        const WORD infinity = (WORD)(2 * BIAS + 1) << STORED, top = (WORD)1 << (8 * sizeof(WORD) - 1);      \\
        const WORD negative = ends ? -(sign / top) : 0;                                                     \\
        const WORD limit = g->limit ^ (g->limit_flip & negative);                                           \\
        r = grid_pick##SUFFIX(grid_below##SUFFIX(r, limit), r, g->over ^ (g->over_flip & negative));        \\
        if (ends) {                                                                                         \\
            r &= ~grid_below##SUFFIX(m, g->flush_below);                                                    \\
            const WORD beyond = g->infinity ^ (g->infinity_flip & negative);                                \\
            r = grid_pick##SUFFIX(grid_below##SUFFIX(m, infinity), r, beyond);                              \\
        }                                                                                                   \\
        if (ends > 1) r = grid_pick##SUFFIX(grid_below##SUFFIX(r, 1), g->least, r);                         \\
        r |= sign & (g->minus_zero | ~grid_below##SUFFIX(r, 1));                                            \\
        if (ends > 1) {                                                                                     \\
            const WORD zero = grid_below##SUFFIX(m, 1);                                                     \\
            r = grid_pick##SUFFIX(zero & g->no_zero, g->nothing, r);                                        \\
            r = grid_pick##SUFFIX(negative & ~zero & g->no_sign, g->negative, r);                           \\
        }                                                                                                   \\
        const WORD nan = (u & g->nan_and) | g->nan_or;                                                      \\
        return grid_of##SUFFIX(grid_pick##SUFFIX(grid_below##SUFFIX(infinity, m), nan, r));                 \\
    }                                                                                                       \\
                                                                                                            \\
    GRID_VALUE REAL grid_value##SUFFIX(                                                                     \\
        REAL x, const grid_words##SUFFIX *g, int mode, int steps, int ends, uint32_t random)                \\
    {                                                                                                       \\
        const WORD top = (WORD)1 << (8 * sizeof(WORD) - 1), exponents = (WORD)(2 * BIAS + 1) << STORED;     \\
        const WORD u = grid_bits##SUFFIX(x), sign = u & top, m = u ^ sign;                                  \\
        const WORD held = grid_pick##SUFFIX(grid_below##SUFFIX(m, g->cap), m, g->cap);                      \\
        const WORD binade = held & exponents;                                                               \\
        WORD adder = grid_pick##SUFFIX(grid_below##SUFFIX(binade, g->floor), g->floor, binade) + g->rise;   \\
        if (steps)                                                                                          \\
            for (int s = 0; s < GRID_STEPS; s++)                                                            \\
                adder += g->change[s] & ~grid_below##SUFFIX(held, g->start[s]);                             \\
        const REAL r = grid_round##SUFFIX(grid_of##SUFFIX(held), adder, -(sign / top), mode, random);       \\
        return grid_ends##SUFFIX(grid_bits##SUFFIX(r), u, sign, m, g, ends);                                \\
    }
    GRID_WIDTH(, float, uint32_t, int32_t, 23, 127)
    GRID_WIDTH(64, double, uint64_t, int64_t, 52, 1023)

    /* Formats with the exponents of FP32: one spacing of words everywhere, subnormals included. */
    GRID_VALUE float grid_wide(float x, const grid_rules *g, int stochastic, uint32_t random)
    {
        const uint32_t u = grid_bits(x), sign = u & 0x80000000u, m = u ^ sign;
        const uint32_t lost = (m & g->low) + g->low; /* the bit above `low` is set if any dropped bit is */
        const uint32_t add = stochastic ? random >> 1 >> (31 - g->drop) : g->add ^ (g->flip & -(u >> 31));
        const uint32_t r = ((m + add + (m >> g->drop & g->even)) & ~g->low) | (lost & g->odd);
        return grid_ends(r, u, sign, m, &g->words, 1);
    }

    /* The same by default rules: the carry into the exponent, and into infinity, is right. */
    GRID_VALUE float grid_short(float x, const grid_rules *g)
    {
        const uint32_t u = grid_bits(x), r = u + g->add + (u >> g->drop & 1);
        const uint32_t nan = grid_below(0x7F800000u, u & 0x7FFFFFFFu);
        return grid_of(grid_pick(nan, u | 0x00400000u, r) & ~g->low);
    }

    /* Powers of two from 2^-127 on, which FP32 holds as half of its least normal number; no sign, no zero. A
       tie is between one spacing and two, and goes up. What is below 2^-127 becomes `least` by every mode. */
    GRID_VALUE float grid_power(float x, const grid_rules *g, int stochastic, uint32_t random)
    {
        const uint32_t u = grid_bits(x), sign = u & 0x80000000u, m = u ^ sign;
        const uint32_t half = grid_below(m, 0x00800000u), add = stochastic ? random >> 9 : g->add;
        const uint32_t r = (m + grid_pick(half, add >> 1, add)) & ~(0x007FFFFFu ^ (half & 0x00400000u));
        return grid_ends(r, u, sign, m, &g->words, 2);
    }

    GRID_VALUE float grid_flush(float x)
    {
        const uint32_t u = grid_bits(x), nan = grid_below(0x7F800000u, u & 0x7FFFFFFFu);
        return grid_of((u & (0x80000000u | -(uint32_t)((u & 0x7F800000u) != 0))) | (nan & 0x00400000u));
    }

    typedef void (*grid_row)(float *x, const uint32_t *random, ptrdiff_t n, const grid_rules *rules);
    typedef void (*grid_row64)(
        const double *x, float *out, const uint32_t *random, ptrdiff_t n, const grid_rules *rules);
    typedef struct {
        grid_row narrow[2][8], tapered[2][8], general[8];
        grid_row wide, wide_stochastic, power, power_stochastic, shorted, flush;
        grid_row64 from_double[8];
        philox_row random;
    } grid_loops;

    #define GRID_ROW(NAME, ATTRIBUTE, VALUE)                                                                \\
    ATTRIBUTE static void NAME(float *x, const uint32_t *random, ptrdiff_t n, const grid_rules *rules)      \\
    {                                                                                                       \\
        const grid_rules g = *rules;                                                                        \\
        (void)g; (void)random;                                                                              \\
        for (ptrdiff_t i = 0; i < n; i++) x[i] = VALUE;                                                     \\
    }
    #define GRID_MODE(SUFFIX, ATTRIBUTE, MODE, BITS)                                                        \\
    GRID_ROW(grid_plain_##MODE##_##SUFFIX, ATTRIBUTE, grid_value(x[i], &g.words, MODE, 0, 0, BITS))         \\
    GRID_ROW(grid_narrow_##MODE##_##SUFFIX, ATTRIBUTE, grid_value(x[i], &g.words, MODE, 0, 1, BITS))        \\
    GRID_ROW(grid_steps_##MODE##_##SUFFIX, ATTRIBUTE, grid_value(x[i], &g.words, MODE, 1, 0, BITS))         \\
    GRID_ROW(grid_tapered_##MODE##_##SUFFIX, ATTRIBUTE, grid_value(x[i], &g.words, MODE, 1, 1, BITS))       \\
    GRID_ROW(                                                                                               \\
        grid_general_##MODE##_##SUFFIX, ATTRIBUTE, (float)grid_value64(x[i], &g.words64, MODE, 1, 2, BITS)) \\
    ATTRIBUTE static void grid_from_double_##MODE##_##SUFFIX(                                               \\
        const double *x, float *out, const uint32_t *random, ptrdiff_t n, const grid_rules *rules)          \\
    {                                                                                                       \\
        const grid_rules g = *rules;                                                                        \\
        (void)random;                                                                                       \\
        for (ptrdiff_t i = 0; i < n; i++) out[i] = (float)grid_value64(x[i], &g.words64, MODE, 1, 2, BITS); \\
    }
    #define GRID_EACH(NAME, SUFFIX)                                                                         \\
        {NAME##_GRID_RINT_##SUFFIX, NAME##_GRID_FLOOR_##SUFFIX, NAME##_GRID_CEIL_##SUFFIX,                  \\
         NAME##_GRID_ROUND_##SUFFIX, NAME##_GRID_TRUNC_##SUFFIX, NAME##_GRID_ODD_##SUFFIX,                  \\
         NAME##_GRID_RNZ_##SUFFIX, NAME##_GRID_STOCHASTIC_##SUFFIX}
    #define GRID_LOOPS(SUFFIX, ATTRIBUTE)                                                                   \\
    GRID_MODE(SUFFIX, ATTRIBUTE, GRID_RINT, 0)                                                              \\
    GRID_MODE(SUFFIX, ATTRIBUTE, GRID_FLOOR, 0)                                                             \\
    GRID_MODE(SUFFIX, ATTRIBUTE, GRID_CEIL, 0)                                                              \\
    GRID_MODE(SUFFIX, ATTRIBUTE, GRID_ROUND, 0)                                                             \\
    GRID_MODE(SUFFIX, ATTRIBUTE, GRID_TRUNC, 0)                                                             \\
    GRID_MODE(SUFFIX, ATTRIBUTE, GRID_ODD, 0)                                                               \\
    GRID_MODE(SUFFIX, ATTRIBUTE, GRID_RNZ, 0)                                                               \\
    GRID_MODE(SUFFIX, ATTRIBUTE, GRID_STOCHASTIC, random[i])                                                \\
    GRID_ROW(grid_wide_##SUFFIX, ATTRIBUTE, grid_wide(x[i], &g, 0, 0))                                      \\
    GRID_ROW(grid_wide_stochastic_##SUFFIX, ATTRIBUTE, grid_wide(x[i], &g, 1, random[i]))                   \\
    GRID_ROW(grid_power_##SUFFIX, ATTRIBUTE, grid_power(x[i], &g, 0, 0))                                    \\
    GRID_ROW(grid_power_stochastic_##SUFFIX, ATTRIBUTE, grid_power(x[i], &g, 1, random[i]))                 \\
    GRID_ROW(grid_short_##SUFFIX, ATTRIBUTE, grid_short(x[i], &g))                                          \\
    GRID_ROW(grid_flush_##SUFFIX, ATTRIBUTE, grid_flush(x[i]))                                              \\
    static const grid_loops grid_loops_##SUFFIX = {                                                         \\
        {GRID_EACH(grid_plain, SUFFIX), GRID_EACH(grid_narrow, SUFFIX)},                                    \\
        {GRID_EACH(grid_steps, SUFFIX), GRID_EACH(grid_tapered, SUFFIX)}, GRID_EACH(grid_general, SUFFIX),  \\
        grid_wide_##SUFFIX, grid_wide_stochastic_##SUFFIX, grid_power_##SUFFIX,                             \\
        grid_power_stochastic_##SUFFIX, grid_short_##SUFFIX, grid_flush_##SUFFIX,                           \\
        GRID_EACH(grid_from_double, SUFFIX), philox_##SUFFIX};

    GRID_LOOPS(plain, )
    #if defined(__x86_64__) && defined(__GNUC__)
    GRID_LOOPS(wider, __attribute__((target("avx2"))))
    static const grid_loops *grid_pick_loops(int widest)
    {
        __builtin_cpu_init();
        return widest && __builtin_cpu_supports("avx2") ? &grid_loops_wider : &grid_loops_plain;
    }
    #else
    static const grid_loops *grid_pick_loops(int widest) { (void)widest; return &grid_loops_plain; }
    #endif
    """
    ctypedef void (*row_t "grid_row")(
        float* x, const uint32_t* random, Py_ssize_t n, const GridRules* rules) noexcept nogil
    ctypedef void (*row64_t "grid_row64")(
        const double* x, float* out, const uint32_t* random, Py_ssize_t n, const GridRules* rules
    ) noexcept nogil
    ctypedef struct GridLoops "grid_loops":
        row_t[8]* narrow
        row_t[8]* tapered
        row_t* general
        row_t wide, wide_stochastic, power, power_stochastic, shorted, flush
        row64_t* from_double
        words_t random
    const GridLoops* pick_loops "grid_pick_loops"(bint widest) noexcept nogil
