# Rounding to the grid of a format, in C: one definition of each loop in two vector widths, chosen at run
# time.
#
# A grid is its spacing: from the binade of a magnitude follows the number whose float32 (or double)
# neighbours lie one spacing apart. Adding it and taking it away again rounds to nearest even; the difference
# is exact, and says what every other mode needs. A format whose spacing changes (no subnormals, tapered) has
# steps.
# Masks, not conditions: gcc turns `c ? x : y` into jumps and then does not vectorise the loop.

from libc.stdint cimport uint32_t, uint64_t

from ascendtile.simulator.precision._grid_rules cimport GridRules

cdef extern from *:
    """
    #ifndef ASCENDTILE_GRID_LOOPS
    #define ASCENDTILE_GRID_LOOPS
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    #if defined(__GNUC__)
    #define GRID_VALUE static inline __attribute__((always_inline))
    #else
    #define GRID_VALUE static inline
    #endif

    GRID_VALUE uint32_t grid_below(uint32_t a, uint32_t b) { return -(uint32_t)((int32_t)a < (int32_t)b); }
    GRID_VALUE uint32_t grid_pick(uint32_t mask, uint32_t yes, uint32_t no) {
        return no ^ ((no ^ yes) & mask);
    }
    GRID_VALUE uint32_t grid_bits(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }
    GRID_VALUE float grid_float(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }
    GRID_VALUE uint64_t grid_bits64(double x) { uint64_t u; memcpy(&u, &x, 8); return u; }
    GRID_VALUE double grid_double(uint64_t u) { double x; memcpy(&x, &u, 8); return x; }
    GRID_VALUE uint32_t grid_least(uint32_t a, uint32_t b) { return (int32_t)a < (int32_t)b ? a : b; }
    GRID_VALUE uint32_t grid_most(uint32_t a, uint32_t b) { return (int32_t)a > (int32_t)b ? a : b; }

    /* A magnitude to the grid by float arithmetic. `adder` has neighbours one spacing apart; all of it is
       exact but the first sum. Stochastic: the first 31 dropped bits and 31 random ones are added, a carry
       rounds away. */
    #define GRID_ROUND_MAGNITUDE(NAME, REAL, WORD, SIGNED, BITS, OF, MANTISSA, BIAS)                        \
    GRID_VALUE REAL NAME(REAL x, WORD adder, WORD negative, int mode, uint32_t random)                      \
    {                                                                                                       \
        const REAL big = OF(adder), nearest = (x + big) - big;                                              \
        if (mode == GRID_RINT) return nearest;                                                              \
        const REAL ulp = OF(adder - ((WORD)MANTISSA << MANTISSA));                                          \
        const REAL low = nearest - OF(BITS(ulp) & -(WORD)(nearest > x)), rest = x - low;                    \
        WORD up = 0;                                                                                        \
        if (mode == GRID_FLOOR) up = negative & -(WORD)(rest > 0);                                          \
        if (mode == GRID_CEIL) up = ~negative & -(WORD)(rest > 0);                                          \
        if (mode == GRID_ROUND) up = -(WORD)(rest + rest >= ulp);                                           \
        if (mode == GRID_RNZ) up = -(WORD)(rest + rest > ulp);                                              \
        if (mode == GRID_ODD) {                                                                             \
            const REAL twice = OF(adder + ((WORD)1 << MANTISSA));                                           \
            up = -(WORD)(rest > 0) & -(WORD)((low + twice) - twice == low);                                 \
        }                                                                                                   \
        if (mode == GRID_STOCHASTIC) {                                                                      \
            const REAL scale = OF(((WORD)(2 * BIAS + 31) << MANTISSA) - BITS(ulp)); /* 2^31 / ulp */        \
            const uint32_t sum = (uint32_t)(int32_t)(rest * scale) + (random >> 1);                         \
            up = (WORD)(SIGNED)((int32_t)sum >> 31);                                                        \
        }                                                                                                   \
        return low + OF(BITS(ulp) & up);                                                                    \
    }
    GRID_ROUND_MAGNITUDE(grid_round, float, uint32_t, int32_t, grid_bits, grid_float, 23, 127)
    GRID_ROUND_MAGNITUDE(grid_round64, double, uint64_t, int64_t, grid_bits64, grid_double, 52, 1023)

    /* The word of a rounded magnitude r; masks say what the operand was. */
    GRID_VALUE uint32_t grid_ends(
        uint32_t r, uint32_t sign, uint32_t small, uint32_t infinite, uint32_t nan, uint32_t payload,
        const grid_rules *g)
    {
        const uint32_t negative = -(sign >> 31);
        const uint32_t limit = g->limit ^ (g->limit_flip & negative);
        const uint32_t over = g->over ^ (g->over_flip & negative);
        r = grid_pick(grid_below(r, limit), r, over);
        r = grid_pick(infinite, g->infinity ^ (g->infinity_flip & negative), r & ~small);
        r |= sign & (g->minus_zero | ~grid_below(r, 1));
        return grid_pick(nan, (payload & g->nan_and) | g->nan_or, r);
    }

    GRID_VALUE float grid_narrow(float x, const grid_rules *g, int mode, int tapered, uint32_t random)
    {
        const uint32_t u = grid_bits(x), m = u & 0x7FFFFFFFu, held = grid_least(m, g->cap);
        uint32_t adder = grid_most(held & 0x7F800000u, g->floor) + g->rise;
        if (tapered)
            for (int s = 0; s < GRID_STEPS; s++) adder += g->change[s] & ~grid_below(held, g->start[s]);
        const float r = grid_round(grid_float(held), adder, -(u >> 31), mode, random);
        return grid_float(grid_ends(
            grid_bits(r), u & 0x80000000u, grid_below(m, g->flush_below), -(uint32_t)(m == 0x7F800000u),
            grid_below(0x7F800000u, m), u, g));
    }

    /* Formats with the exponents of FP32: one spacing of words everywhere, subnormals included. */
    GRID_VALUE float grid_wide(float x, const grid_rules *g, int stochastic, uint32_t random)
    {
        const uint32_t u = grid_bits(x), m = u & 0x7FFFFFFFu;
        const uint32_t lost = (m & g->low) + g->low; /* the bit above `low` is set if any dropped bit is */
        const uint32_t add = stochastic ? random >> 1 >> (31 - g->drop) : g->add ^ (g->flip & -(u >> 31));
        const uint32_t r = ((m + add + (m >> g->drop & g->even)) & ~g->low) | (lost & g->odd);
        return grid_float(grid_ends(
            r, u & 0x80000000u, grid_below(m, g->flush_below), -(uint32_t)(m == 0x7F800000u),
            grid_below(0x7F800000u, m), u, g));
    }

    /* The same by default rules: the carry into the exponent, and into infinity, is right. */
    GRID_VALUE float grid_short(float x, const grid_rules *g)
    {
        const uint32_t u = grid_bits(x), r = u + g->add + (u >> g->drop & 1);
        const uint32_t nan = grid_below(0x7F800000u, u & 0x7FFFFFFFu);
        return grid_float(grid_pick(nan, u | 0x00400000u, r) & ~g->low);
    }

    GRID_VALUE float grid_flush(float x)
    {
        const uint32_t u = grid_bits(x), nan = grid_below(0x7F800000u, u & 0x7FFFFFFFu);
        return grid_float((u & (0x80000000u | -(uint32_t)((u & 0x7F800000u) != 0))) | (nan & 0x00400000u));
    }

    /* Any format, from a double or a float, which a double holds. */
    GRID_VALUE float grid_general(double x, uint32_t payload, const grid_rules *g, int mode, uint32_t random)
    {
        const uint64_t u = grid_bits64(x), m = u & 0x7FFFFFFFFFFFFFFFull;
        const uint32_t sign = (uint32_t)(u >> 32) & 0x80000000u;
        const uint32_t nan = -(uint32_t)(m > 0x7FF0000000000000ull);
        const double magnitude = grid_double(m);
        const double held = magnitude < g->cap64 ? magnitude : g->cap64;
        uint64_t adder = grid_bits64(held) & 0x7FF0000000000000ull;
        adder = (adder < g->floor64 ? g->floor64 : adder) + g->rise64;
        for (int s = 0; s < GRID_STEPS; s++) adder += held >= grid_double(g->start64[s]) ? g->change64[s] : 0;
        uint32_t r = grid_bits((float)grid_round64(held, adder, -(u >> 63), mode, random));
        if (g->least && !m) return grid_float(g->nothing);
        if (g->least && !r) r = g->least;
        if (!g->has_sign && sign && !nan) return grid_float(m ? g->negative : 0);
        return grid_float(grid_ends(
            r, sign, -(uint32_t)(magnitude < g->flush_below64), -(uint32_t)(m == 0x7FF0000000000000ull), nan,
            payload | sign, g));
    }

    /* Philox 4x32-10 (Salmon and others, SC 2011): word 0 of counter (i, 0, 0, 0), i of 64 bits, and a key of
       64. What tl.randint(seed, i) gives. */
    GRID_VALUE uint32_t grid_random(uint32_t c0, uint32_t c1, uint32_t k0, uint32_t k1)
    {
        uint32_t c2 = 0, c3 = 0;
        for (int round = 0; round < 10; round++) {
            const uint64_t a = (uint64_t)c0 * 0xD2511F53u, b = (uint64_t)c2 * 0xCD9E8D57u;
            c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
            c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
            c1 = (uint32_t)b;
            c3 = (uint32_t)a;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        return c0;
    }

    typedef void (*grid_row)(float *x, const uint32_t *random, ptrdiff_t n, const grid_rules *rules);
    typedef void (*grid_general_row)(
        const double *x, float *out, const uint32_t *random, ptrdiff_t n, const grid_rules *rules);
    typedef struct {
        grid_row narrow[8], tapered[8], wide, wide_stochastic, shorted, flush;
        grid_general_row general[8];
        void (*random)(uint32_t *out, ptrdiff_t n, uint64_t seed, uint64_t first);
    } grid_loops;

    #define GRID_ROW(NAME, ATTRIBUTE, VALUE)                                                                \
    ATTRIBUTE static void NAME(float *x, const uint32_t *random, ptrdiff_t n, const grid_rules *rules)      \
    {                                                                                                       \
        const grid_rules g = *rules;                                                                        \
        (void)g; (void)random;                                                                              \
        for (ptrdiff_t i = 0; i < n; i++) x[i] = VALUE;                                                     \
    }
    #define GRID_MODE(SUFFIX, ATTRIBUTE, MODE, RANDOM)                                                      \
    GRID_ROW(grid_narrow_##MODE##_##SUFFIX, ATTRIBUTE, grid_narrow(x[i], &g, MODE, 0, RANDOM))              \
    GRID_ROW(grid_tapered_##MODE##_##SUFFIX, ATTRIBUTE, grid_narrow(x[i], &g, MODE, 1, RANDOM))             \
    ATTRIBUTE static void grid_general_##MODE##_##SUFFIX(                                                   \
        const double *x, float *out, const uint32_t *random, ptrdiff_t n, const grid_rules *rules)          \
    {                                                                                                       \
        const grid_rules g = *rules;                                                                        \
        (void)random;                                                                                       \
        for (ptrdiff_t i = 0; i < n; i++) out[i] = grid_general(x[i], 0x7FC00000u, &g, MODE, RANDOM);       \
    }
    #define GRID_EACH(NAME, SUFFIX)                                                                         \
        {NAME##_GRID_RINT_##SUFFIX, NAME##_GRID_FLOOR_##SUFFIX, NAME##_GRID_CEIL_##SUFFIX,                  \
         NAME##_GRID_ROUND_##SUFFIX, NAME##_GRID_TRUNC_##SUFFIX, NAME##_GRID_ODD_##SUFFIX,                  \
         NAME##_GRID_RNZ_##SUFFIX, NAME##_GRID_STOCHASTIC_##SUFFIX}
    #define GRID_WIDTH(SUFFIX, ATTRIBUTE)                                                                   \
    GRID_MODE(SUFFIX, ATTRIBUTE, GRID_RINT, 0)                                                              \
    GRID_MODE(SUFFIX, ATTRIBUTE, GRID_FLOOR, 0)                                                             \
    GRID_MODE(SUFFIX, ATTRIBUTE, GRID_CEIL, 0)                                                              \
    GRID_MODE(SUFFIX, ATTRIBUTE, GRID_ROUND, 0)                                                             \
    GRID_MODE(SUFFIX, ATTRIBUTE, GRID_TRUNC, 0)                                                             \
    GRID_MODE(SUFFIX, ATTRIBUTE, GRID_ODD, 0)                                                               \
    GRID_MODE(SUFFIX, ATTRIBUTE, GRID_RNZ, 0)                                                               \
    GRID_MODE(SUFFIX, ATTRIBUTE, GRID_STOCHASTIC, random[i])                                                \
    GRID_ROW(grid_wide_##SUFFIX, ATTRIBUTE, grid_wide(x[i], &g, 0, 0))                                      \
    GRID_ROW(grid_wide_stochastic_##SUFFIX, ATTRIBUTE, grid_wide(x[i], &g, 1, random[i]))                   \
    GRID_ROW(grid_short_##SUFFIX, ATTRIBUTE, grid_short(x[i], &g))                                          \
    GRID_ROW(grid_flush_##SUFFIX, ATTRIBUTE, grid_flush(x[i]))                                              \
    ATTRIBUTE static void grid_random_##SUFFIX(uint32_t *out, ptrdiff_t n, uint64_t seed, uint64_t first)   \
    {                                                                                                       \
        const uint32_t low = (uint32_t)first, high = (uint32_t)(first >> 32);                               \
        const uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);                                    \
        for (uint32_t i = 0; i < (uint32_t)n; i++)                                                          \
            out[i] = grid_random(low + i, high + (low + i < low), k0, k1);                                  \
    }                                                                                                       \
    static const grid_loops grid_loops_##SUFFIX = {                                                         \
        GRID_EACH(grid_narrow, SUFFIX), GRID_EACH(grid_tapered, SUFFIX), grid_wide_##SUFFIX,                \
        grid_wide_stochastic_##SUFFIX, grid_short_##SUFFIX, grid_flush_##SUFFIX,                            \
        GRID_EACH(grid_general, SUFFIX), grid_random_##SUFFIX};

    GRID_WIDTH(plain, )
    #if defined(__x86_64__) && defined(__GNUC__)
    GRID_WIDTH(wider, __attribute__((target("avx2"))))
    static const grid_loops *grid_pick_loops(void)
    {
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx2") ? &grid_loops_wider : &grid_loops_plain;
    }
    #else
    static const grid_loops *grid_pick_loops(void) { return &grid_loops_plain; }
    #endif
    #endif
    """
    ctypedef void (*row_t "grid_row")(
        float* x, const uint32_t* random, Py_ssize_t n, const GridRules* rules) noexcept nogil
    ctypedef void (*general_row_t "grid_general_row")(
        const double* x, float* out, const uint32_t* random, Py_ssize_t n, const GridRules* rules
    ) noexcept nogil
    ctypedef struct GridLoops "grid_loops":
        row_t* narrow
        row_t* tapered
        row_t wide, wide_stochastic, shorted, flush
        general_row_t* general
        void (*random)(uint32_t* out, Py_ssize_t n, uint64_t seed, uint64_t first) noexcept nogil
    const GridLoops* pick_loops "grid_pick_loops"() noexcept nogil
