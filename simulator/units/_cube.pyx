"""The Cube's order of summation: exact products of a block and the accumulator, added up, rounded once.

Loops only; formats, defaults and checks are in cube.py, register tiles in _cube_loops.pxd. Sums are doubles.
A product of two 24-bit significands is exact there and cannot overflow or underflow, so the only roundings
are those of the additions (2^-53) and the one of the model.
"""

from libc.math cimport NAN
from libc.string cimport memcpy, memset

from ascendtile.simulator.precision._grid_rules cimport AS_IS, RINT, WIDE, GridRules
from ascendtile.simulator.precision._rounding cimport Rounding, flush_row, round_double_row
from ascendtile.simulator.units._cube_loops cimport Tile, Widen, cube_path, cube_widen_path

cdef enum:
    NOTHING = 0x7FFFFFFF  # the smallest word, less 1, where all are zeros

_WIDTHS = ("scalar", "vector16", "vector32", "vector64")  # bytes of a vector
PATHS = tuple([name for path, name in enumerate(_WIDTHS) if cube_path(path) != NULL])


cdef struct Path:  # the loops of one vector width
    Tile tile
    Widen widen


cdef Rule make_rule(const GridRules* grid, bint flush) noexcept nogil:
    """FP32 to nearest is what the loops do by themselves."""
    cdef Rule rule
    cdef bint saturate = grid.path == WIDE and grid.drop == 0 and grid.words.limit == 0x7F800000
    rule.settle = LEAVE
    if grid.mode == RINT and (saturate or grid.path == AS_IS):
        rule.settle = NEAREST | (FLUSH if flush else 0) | (SATURATE if saturate else 0)
    rule.grid = grid
    rule.flush = flush
    return rule


cdef int pack_a(
    const float* a, Py_ssize_t lda, Py_ssize_t rows, Py_ssize_t k, double* dst, Path* path
) noexcept nogil:
    """MR rows of `a` as doubles, (MR, k); rows that are not there are zero. Gives the smallest word."""
    cdef Py_ssize_t whole = min(rows, <Py_ssize_t>MR)
    memset(dst + whole * k, 0, (MR - whole) * k * sizeof(double))
    return path.widen(a, lda, whole, k, dst)


cdef int pack_b(
    const float* b, Py_ssize_t ldb, Py_ssize_t cols, Py_ssize_t k, double* dst, Path* path
) noexcept nogil:
    """Columns of `b` as doubles in panels of (k, NR); columns that are not there are zero."""
    cdef float[NR] whole
    cdef int least = NOTHING
    cdef Py_ssize_t t
    while cols > 0:
        if cols >= NR:
            least = min(least, path.widen(b, ldb, k, NR, dst))
        else:
            memset(whole, 0, sizeof(whole))
            for t in range(k):
                memcpy(whole, b + t * ldb, cols * sizeof(float))
                least = min(least, path.widen(whole, NR, 1, NR, dst + t * NR))
        dst += k * NR
        b += NR
        cols -= NR
    return least


cdef int on_grid(int a, int b) noexcept nogil:
    """GRID where sums of products cannot become subnormal; a, b: smallest words of the operands, less 1.

    Products of normal numbers are multiples of 2^(exponents - 2 * 23); so are their sums, rounded or not.
    """
    cdef unsigned int first = (<unsigned int>a + 1) >> 23
    cdef unsigned int second = (<unsigned int>b + 1) >> 23
    return GRID if first > 0 and second > 0 and first + second >= 2 * (127 + 23) - 126 else 0


cdef void settle_tile(double* acc, Rule* rule) noexcept nogil:
    """One rounding of a tile by the general rules."""
    cdef float[MR * NR] rounded
    cdef Py_ssize_t e
    round_double_row(acc, rounded, MR * NR, rule.grid)
    if rule.flush:
        flush_row(rounded, MR * NR)
    for e in range(MR * NR):
        acc[e] = rounded[e]


cdef void round_blocks(
    Path* path, const double* a, const double* b, const float* start, float* c, Py_ssize_t k, Py_ssize_t kb,
    Rule* rule
) noexcept nogil:
    """A whole tile by the general rules, `start` and `c` contiguous: one call for each block."""
    cdef double[MR * NR] acc
    cdef Py_ssize_t e
    cdef Py_ssize_t begin = 0
    for e in range(MR * NR):
        acc[e] = start[e]
    while begin < k:
        path.tile(a + begin, k, b + begin * NR, min(kb, k - begin), kb, LEAVE, acc, NULL, NULL, NR)
        settle_tile(acc, rule)
        begin += kb
    for e in range(MR * NR):
        c[e] = <float>acc[e] if acc[e] == acc[e] else <float>NAN


cdef void cut_tile(
    Path* path, const double* a, const double* b, const float* start, float* c, Py_ssize_t ldc,
    Py_ssize_t rows, Py_ssize_t cols, Py_ssize_t k, Py_ssize_t kb, Rule* rule, int settle
) noexcept nogil:
    """A tile of which not all rows and columns are there, or which is not rounded by the loops themselves."""
    cdef float[MR * NR] whole
    cdef Py_ssize_t i
    memset(whole, 0, sizeof(whole))
    if start != NULL:
        for i in range(rows):
            memcpy(whole + i * NR, start + i * ldc, cols * sizeof(float))
    if rule.settle == LEAVE:
        round_blocks(path, a, b, whole, whole, k, kb, rule)
    else:
        path.tile(a, k, b, k, kb, settle, NULL, whole, whole, NR)
    for i in range(rows):
        memcpy(c + i * ldc, whole + i * NR, cols * sizeof(float))


cdef void panel_product(
    Path* path, const float* a, Py_ssize_t lda, const double* b, int least, const float* start, float* c,
    Py_ssize_t ldc, Py_ssize_t rows, Py_ssize_t cols, Py_ssize_t k, Py_ssize_t kb, Rule* rule, double* panel
) noexcept nogil:
    """c = start + a @ b for one chunk of k and packed `b`, smallest word `least`; panel: room for an `a`."""
    cdef const float* here
    cdef Py_ssize_t height, n, width
    cdef int settle
    while rows > 0:
        height = min(rows, <Py_ssize_t>MR)
        settle = rule.settle | on_grid(pack_a(a, lda, height, k, panel, path), least)
        n = 0
        while n < cols:
            width = min(cols - n, <Py_ssize_t>NR)
            here = NULL
            if start != NULL:
                here = start + n
            if height == MR and width == NR and rule.settle != LEAVE:
                path.tile(panel, k, b + n * k, k, kb, settle, NULL, here, c + n, ldc)
            else:
                cut_tile(path, panel, b + n * k, here, c + n, ldc, height, width, k, kb, rule, settle)
            n += NR
        a += MR * lda
        c += MR * ldc
        if start != NULL:
            start += MR * ldc
        rows -= MR


cdef void matrix_product(
    Path* path, const float* a, const float* b, const float* start, float* c, Py_ssize_t rows,
    Py_ssize_t cols, Py_ssize_t k, Py_ssize_t kb, Py_ssize_t chunk, Rule* rule, double* scratch
) noexcept nogil:
    """c = start + a @ b; the first chunk of k goes on from `start`, the others from `c`."""
    cdef double* panels = scratch + MR * chunk
    cdef const float* old
    cdef Py_ssize_t n = 0
    cdef Py_ssize_t t, depth, width
    cdef int least
    while n < cols:
        width = min(cols - n, <Py_ssize_t>NC)
        t = 0
        while t < k:
            depth = min(k - t, chunk)
            least = pack_b(b + t * cols + n, cols, width, depth, panels, path)
            old = NULL
            if t > 0:
                old = c + n
            elif start != NULL:
                old = start + n
            panel_product(
                path, a + t, k, panels, least, old, c + n, cols, rows, width, depth, kb, rule, scratch
            )
            t += chunk
        n += NC


def chunk_of(Py_ssize_t kb):
    """k of a packed panel: whole blocks, so that an accumulator leaves the registers only when rounded."""
    return max(<Py_ssize_t>1, KC // kb) * kb


def scratch_doubles(Py_ssize_t kb):
    """Doubles of scratch that `multiply` needs."""
    return (MR + NC) * chunk_of(kb)


def multiply(
    const float[:, :, ::1] a, const float[:, :, ::1] b, const float[:, :, ::1] start, float[:, :, ::1] c,
    double[::1] scratch, Py_ssize_t kb, Rounding rounding, bint flush, int path
):
    """c[p] = start[p] + a[p] @ b[p], blocks of kb in ascending k, each rounded once.

    a: (P or 1, M, K), b: (P or 1, K, N), c: (P, M, N), none empty; start: as c, c itself, or None for zeros.
    flush: FP32 subnormals among sums become zero. `path`: index of a name in PATHS.
    """
    cdef Rule rule = make_rule(&rounding.rules, flush)
    cdef Path chosen
    cdef Py_ssize_t chunk = chunk_of(kb)
    cdef bint fresh = start is None
    cdef const float* first
    cdef Py_ssize_t p, pa, pb
    chosen.tile, chosen.widen = cube_path(path), cube_widen_path(path)
    with nogil:
        for p in range(c.shape[0]):
            pa = p if a.shape[0] > 1 else 0
            pb = p if b.shape[0] > 1 else 0
            first = NULL
            if not fresh:
                first = &start[p, 0, 0]
            matrix_product(
                &chosen, &a[pa, 0, 0], &b[pb, 0, 0], first, &c[p, 0, 0],
                c.shape[1], c.shape[2], a.shape[2], kb, chunk, &rule, &scratch[0]
            )
