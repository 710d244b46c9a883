# The contract of the Cube's loop: packed panels of doubles in, accumulators after every k-block out.
#
# A tile is MR x NR accumulators, row by row. Panel `a` is (MR, k), panel `b` is (k, NR), both contiguous.

from ascendtile.simulator.precision._grid_rules cimport GridRules

cdef enum:
    MR = 8    # rows of a register tile: with AVX-512 all of them at once, else four at a time
    NR = 16   # columns: two vectors of AVX-512, four of AVX2, eight of SSE2
    NC = 128  # columns whose packed panels stay in L2
    KC = 256  # k of a packed panel: a row of tiles reads 16 KiB of `a` again and again, from L1

cdef enum Settle:  # what happens to the sums after each k-block; flags
    LEAVE = 0      # nothing: the caller rounds
    NEAREST = 1    # to FP32, ties to even
    FLUSH = 2      # then FP32 subnormals become zero of their sign
    SATURATE = 4   # too large becomes the largest finite FP32
    GRID = 8       # no product has a place below 2^-126

cdef struct Rule:  # rounding after a block
    int settle     # flags, for the loop itself; LEAVE: the fields below say what to do
    const GridRules* grid
    bint flush     # FP32 subnormals become zero of their sign

cdef Rule make_rule(const GridRules* grid, bint flush) noexcept nogil
