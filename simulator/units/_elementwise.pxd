"""What other loops of the Vector unit take from `_elementwise`."""

cdef extern from *:
    """
    #ifndef ASCENDTILE_ODD
    #define ASCENDTILE_ODD
    #include <stdint.h>
    #include <string.h>

    /* Inlined also into functions that are compiled for wider vectors than their surroundings. */
    #if defined(__GNUC__)
    #define ASCENDTILE_INLINE static inline __attribute__((always_inline))
    #else
    #define ASCENDTILE_INLINE static inline
    #endif

    /* float32 of y, rounded to odd: a later rounding to fewer bits is then the only one that counts.
       Where it is not exact and even, the neighbour on the other side of y. Words in place of conditions:
       magnitudes compare as integers, and a loop without jumps becomes one of vectors. */
    ASCENDTILE_INLINE float ascendtile_odd(double y)
    {
        float f = (float)y;
        const double back = f;
        uint32_t bits;
        uint64_t found, exact;
        memcpy(&bits, &f, 4);
        memcpy(&found, &back, 8);
        memcpy(&exact, &y, 8);
        const uint32_t number = (exact & 0x7FFFFFFFFFFFFFFFULL) <= 0x7FF0000000000000ULL;
        const uint32_t outward = found < exact, inward = found > exact;
        bits += (outward - inward) * ((outward | inward) & number & ~bits & 1);
        memcpy(&f, &bits, 4);
        return f;
    }
    #endif
    """
    float to_odd "ascendtile_odd"(double y) noexcept nogil
