# What one rounding is, as the loops read it: a format, a mode, and what becomes of the ends of its range.

from libc.stdint cimport uint32_t, uint64_t

cdef enum Mode:  # Ascend C "Cast" names; RNZ (nearest, ties to zero) is the other reading of HF32 mode 1
    RINT
    FLOOR
    CEIL
    ROUND
    TRUNC
    ODD
    RNZ
    STOCHASTIC

cdef enum:
    STEPS = 6  # changes of spacing; HiF8 has 5

cdef enum Path:  # which loop a rule needs
    AS_IS     # FP32 as it is
    FLUSH     # FP32, subnormals to zero
    SHORT     # the exponents of FP32, default rules
    WIDE      # the exponents of FP32
    NARROW    # room above the largest value for the number that is added
    TAPERED   # the same with steps
    GENERAL   # by way of double

cdef extern from *:
    """
    #ifndef ASCENDTILE_GRID_RULES
    #define ASCENDTILE_GRID_RULES
    #include <stdint.h>

    #define GRID_STEPS 6
    enum {GRID_RINT, GRID_FLOOR, GRID_CEIL, GRID_ROUND, GRID_TRUNC, GRID_ODD, GRID_RNZ, GRID_STOCHASTIC};

    typedef struct {
        int path, mode;
        /* Spacing: the first exponent word, from a binade's word to that of the number added, steps. */
        uint32_t floor, rise, start[GRID_STEPS], change[GRID_STEPS];
        uint64_t floor64, rise64, start64[GRID_STEPS], change64[GRID_STEPS];
        /* The same as masks of a word, where it never changes: added, exchanged if negative, last bit. */
        uint32_t drop, low, add, flip, even, odd;
        /* What becomes of the ends, as FP32 words of magnitudes; _flip: exclusive-or for negative values. */
        uint32_t limit, limit_flip, over, over_flip, infinity, infinity_flip, nan_and, nan_or, minus_zero;
        uint32_t cap;          /* on the grid, too large for either sign */
        uint32_t flush_below;  /* operands below become zero */
        uint32_t has_sign, negative, least, nothing;  /* formats without a sign or without a zero */
        double cap64, flush_below64;
    } grid_rules;
    #endif
    """
    ctypedef struct GridRules "grid_rules":
        int path
        int mode
        uint32_t floor, rise
        uint32_t* start
        uint32_t* change
        uint64_t floor64, rise64
        uint64_t* start64
        uint64_t* change64
        uint32_t drop, low, add, flip, even, odd
        uint32_t limit, limit_flip, over, over_flip, infinity, infinity_flip, nan_and, nan_or, minus_zero
        uint32_t cap, flush_below, has_sign, negative, least, nothing
        double cap64, flush_below64
