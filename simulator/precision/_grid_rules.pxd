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
    STEPS = 5  # changes of spacing: HiF8 has so many

cdef enum Path:  # which loop a rule needs
    AS_IS     # FP32 as it is
    FLUSH     # FP32, subnormals to zero
    SHORT     # the exponents of FP32, default rules
    WIDE      # the exponents of FP32
    NARROW    # by float arithmetic: room above the largest value for the number that is added
    TAPERED   # the same with steps
    POWERS    # E8M0: the powers of two of FP32, by its words
    GENERAL   # by double arithmetic, which has room for every format

cdef extern from *:
    """
    #ifndef ASCENDTILE_GRID_RULES
    #define ASCENDTILE_GRID_RULES
    #include <stdint.h>

    #define GRID_STEPS 5

    /* Words of float32 or of doubles. Magnitudes but for NaN; _flip: exclusive-or for negative values. */
    #define GRID_WORDS(NAME, WORD)                                                                          \\
    typedef struct {                                                                                        \\
        WORD floor, rise;    /* the first binade; from a binade's word to that of the number added */       \\
        WORD start[GRID_STEPS], change[GRID_STEPS];  /* from `start` on, `rise` changes by so much */       \\
        WORD cap;            /* on the grid, too large for either sign */                                   \\
        WORD limit, limit_flip, over, over_flip;  /* from `limit` on, `over` stands for the value */        \\
        WORD infinity, infinity_flip;                                                                       \\
        WORD nan_and, nan_or;  /* bits of a NaN that stay, and that are set */                              \\
        WORD minus_zero;     /* its sign, if there is one */                                                \\
        WORD flush_below;    /* operands below become zero */                                               \\
        WORD least;          /* what stands for values that are rounded to zero */                          \\
        WORD no_zero, nothing;     /* all ones without a zero, and what then stands for it */               \\
        WORD no_sign, negative;    /* all ones without a sign, and what then stands for values below zero */\\
    } NAME;
    GRID_WORDS(grid_words, uint32_t)
    GRID_WORDS(grid_words64, uint64_t)

    typedef struct {
        int path, mode, ends;  /* ends: which of the rules for the ends a loop needs, see grid_ends */
        grid_words words;
        grid_words64 words64;
        /* WIDE, POWERS: the mode as masks: added, exchanged if negative, last bit that is kept. */
        uint32_t drop, low, add, flip, even, odd;
    } grid_rules;
    #endif
    """
    ctypedef struct GridWords "grid_words":
        uint32_t floor, rise
        uint32_t* start
        uint32_t* change
        uint32_t cap, limit, limit_flip, over, over_flip, infinity, infinity_flip, nan_and, nan_or, minus_zero
        uint32_t flush_below, least, no_zero, nothing, no_sign, negative
    ctypedef struct GridWords64 "grid_words64":
        uint64_t floor, rise
        uint64_t* start
        uint64_t* change
        uint64_t cap, limit, limit_flip, over, over_flip, infinity, infinity_flip, nan_and, nan_or, minus_zero
        uint64_t flush_below, least, no_zero, nothing, no_sign, negative
    ctypedef struct GridRules "grid_rules":
        int path
        int mode
        int ends
        GridWords words
        GridWords64 words64
        uint32_t drop, low, add, flip, even, odd
