"""The Cube's order of summation: exact products of a block and the accumulator, added up, rounded once.

Loops only; formats, defaults and checks are in cube.py. Sums are doubles. A product of two 24-bit
significands is exact there and cannot overflow or underflow, so the only roundings are those of the
additions (2^-53) and the one of the model.

The same loop exists in several vector widths, chosen at run time. All give the same bits: each element has
its own chain of additions in ascending k whatever the width is. (A fused multiply-add would change nothing
either, as the product is exact.)
"""

from libc.string cimport memcpy, memset

from ascendtile.simulator.precision._rounding cimport (
    Mode, Target, TO_FP32, RINT, flush_row, make_cut, make_ends, round_double_row, stored_bits
)

cdef extern from *:
    """
    #include <float.h>
    #include <math.h>
    #include <stddef.h>

    #define CUBE_MR 4
    #define CUBE_NR 16
    #define CUBE_NEAREST 1
    #define CUBE_FLUSH 2
    #define CUBE_SATURATE 4

    typedef void (*cube_blocks)(
        const double *a, const double *b, double *acc, Py_ssize_t k, Py_ssize_t kb, int settle);

    static inline double cube_settle(double s, int settle) {
        if (settle & CUBE_SATURATE) s = fabs(s) > FLT_MAX ? copysign(FLT_MAX, s) : s;
        if (settle & CUBE_NEAREST) s = (double)(float)s;
        if (settle & CUBE_FLUSH) s = fabs(s) < FLT_MIN ? copysign(0.0, s) : s;
        return s;
    }

    /* The definition, one element at a time; also the path of other compilers. */
    static void cube_scalar(
        const double *a, const double *b, double *acc, Py_ssize_t k, Py_ssize_t kb, int settle)
    {
        for (int e = 0; e < CUBE_MR * CUBE_NR; e++) {
            const double *x = a + e / CUBE_NR, *y = b + e % CUBE_NR;
            double s = acc[e];
            for (Py_ssize_t k0 = 0; k0 < k; k0 += kb) {
                Py_ssize_t end = k - k0 < kb ? k : k0 + kb;
                for (Py_ssize_t i = k0; i < end; i++) s += x[i * CUBE_MR] * y[i * CUBE_NR];
                s = cube_settle(s, settle);
            }
            acc[e] = s;
        }
    }

    typedef void (*cube_load)(const float *c, Py_ssize_t ldc, double *acc, int settle);
    typedef void (*cube_store)(const double *acc, float *c, Py_ssize_t ldc);

    /* A whole tile of float32 as accumulators, settled as they are after a block; and back, exactly.
       One NaN stands for all: which payload wins depends on the compiler. */
    static void cube_load_scalar(const float *c, Py_ssize_t ldc, double *acc, int settle)
    {
        for (int e = 0; e < CUBE_MR * CUBE_NR; e++)
            acc[e] = cube_settle((double)c[e / CUBE_NR * ldc + e % CUBE_NR], settle);
    }
    static void cube_store_scalar(const double *acc, float *c, Py_ssize_t ldc)
    {
        for (int e = 0; e < CUBE_MR * CUBE_NR; e++)
            c[e / CUBE_NR * ldc + e % CUBE_NR] = acc[e] == acc[e] ? (float)acc[e] : (float)NAN;
    }

    #if defined(__GNUC__)
    #define CUBE_TILES(NAME, ATTRIBUTE, BYTES)                                                              \\
    ATTRIBUTE static void cube_load_##NAME(const float *c, Py_ssize_t ldc, double *acc, int settle)         \\
    {                                                                                                       \\
        typedef double U __attribute__((vector_size(BYTES), aligned(8)));                                   \\
        typedef double V __attribute__((vector_size(BYTES)));                                               \\
        typedef float F __attribute__((vector_size(BYTES / 2), aligned(4)));                                \\
        typedef long long I __attribute__((vector_size(BYTES)));                                            \\
        enum { LANES = BYTES / 8 };                                                                         \\
        const I zero = {0};                                                                                 \\
        const I magnitude = zero + 0x7FFFFFFFFFFFFFFFLL;                                                    \\
        const V most = (V)zero + (double)FLT_MAX, least = (V)zero + (double)FLT_MIN;                        \\
        for (int i = 0; i < CUBE_MR; i++) for (int j = 0; j < CUBE_NR; j += LANES) {                        \\
            V x = __builtin_convertvector(*(const F *)(c + i * ldc + j), V);                                \\
            if (settle & CUBE_SATURATE) {                                                                   \\
                I over = (V)((I)x & magnitude) > most;                                                      \\
                x = (V)(((I)x & ~(over & magnitude)) | ((I)most & over));                                   \\
            }                                                                                               \\
            if (settle & CUBE_FLUSH) {                                                                      \\
                I tiny = (V)((I)x & magnitude) < least;                                                     \\
                x = (V)((I)x & ~(tiny & magnitude));                                                        \\
            }                                                                                               \\
            *(U *)(acc + i * CUBE_NR + j) = x;                                                              \\
        }                                                                                                   \\
    }                                                                                                       \\
    ATTRIBUTE static void cube_store_##NAME(const double *acc, float *c, Py_ssize_t ldc)                    \\
    {                                                                                                       \\
        typedef double U __attribute__((vector_size(BYTES), aligned(8)));                                   \\
        typedef double V __attribute__((vector_size(BYTES)));                                               \\
        typedef float F __attribute__((vector_size(BYTES / 2), aligned(4)));                                \\
        typedef long long I __attribute__((vector_size(BYTES)));                                            \\
        const I zero = {0};                                                                                 \\
        const V nan = (V)zero + (double)(float)NAN;                                                         \\
        for (int i = 0; i < CUBE_MR; i++) for (int j = 0; j < CUBE_NR; j += BYTES / 8) {                    \\
            const V x = *(const U *)(acc + i * CUBE_NR + j);                                                \\
            const I number = x == x;                                                                        \\
            const V y = (V)(((I)x & number) | ((I)nan & ~number));                                          \\
            *(F *)(c + i * ldc + j) = __builtin_convertvector(y, F);                                        \\
        }                                                                                                   \\
    }
    CUBE_TILES(vector16, , 16)

    /* Four rows of two vectors: eight chains of additions hide the latency of one. A macro, because the
       vector type and the target cannot be parameters of a function. A comparison gives all ones or zero. */
    #define CUBE_BLOCKS(NAME, ATTRIBUTE, BYTES)                                                             \\
    ATTRIBUTE static void NAME(                                                                             \\
        const double *a, const double *b, double *acc, Py_ssize_t k, Py_ssize_t kb, int settle)             \\
    {                                                                                                       \\
        typedef double V __attribute__((vector_size(BYTES)));                                               \\
        typedef double U __attribute__((vector_size(BYTES), aligned(8)));                                   \\
        typedef float F __attribute__((vector_size(BYTES / 2)));                                            \\
        typedef long long I __attribute__((vector_size(BYTES)));                                            \\
        enum { LANES = BYTES / 8 };                                                                         \\
        const I zero = {0};                                                                                 \\
        const I magnitude = zero + 0x7FFFFFFFFFFFFFFFLL;                                                    \\
        const V most = (V)zero + (double)FLT_MAX, least = (V)zero + (double)FLT_MIN;                        \\
        for (int j = 0; j < CUBE_NR; j += 2 * LANES) {                                                      \\
            V s[CUBE_MR][2];                                                                                \\
            for (int i = 0; i < CUBE_MR; i++)                                                               \\
                for (int h = 0; h < 2; h++) s[i][h] = *(const U *)(acc + i * CUBE_NR + j + h * LANES);      \\
            for (Py_ssize_t k0 = 0; k0 < k; k0 += kb) {                                                     \\
                Py_ssize_t end = k - k0 < kb ? k : k0 + kb;                                                 \\
                for (Py_ssize_t t = k0; t < end; t++) {                                                     \\
                    const V b0 = *(const U *)(b + t * CUBE_NR + j);                                         \\
                    const V b1 = *(const U *)(b + t * CUBE_NR + j + LANES);                                 \\
                    for (int i = 0; i < CUBE_MR; i++) {                                                     \\
                        s[i][0] += a[t * CUBE_MR + i] * b0;                                                 \\
                        s[i][1] += a[t * CUBE_MR + i] * b1;                                                 \\
                    }                                                                                       \\
                }                                                                                           \\
                if (!settle) continue;                                                                      \\
                for (int i = 0; i < CUBE_MR; i++) for (int h = 0; h < 2; h++) {                             \\
                    V x = s[i][h];                                                                          \\
                    if (settle & CUBE_SATURATE) {                                                           \\
                        I over = (V)((I)x & magnitude) > most;                                              \\
                        x = (V)(((I)x & ~(over & magnitude)) | ((I)most & over));                           \\
                    }                                                                                       \\
                    if (settle & CUBE_NEAREST)                                                              \\
                        x = __builtin_convertvector(__builtin_convertvector(x, F), V);                      \\
                    if (settle & CUBE_FLUSH) {                                                              \\
                        I tiny = (V)((I)x & magnitude) < least;                                             \\
                        x = (V)((I)x & ~(tiny & magnitude));                                                \\
                    }                                                                                       \\
                    s[i][h] = x;                                                                            \\
                }                                                                                           \\
            }                                                                                               \\
            for (int i = 0; i < CUBE_MR; i++)                                                               \\
                for (int h = 0; h < 2; h++) *(U *)(acc + i * CUBE_NR + j + h * LANES) = s[i][h];            \\
        }                                                                                                   \\
    }
    CUBE_BLOCKS(cube_vector16, , 16)
    #else
    #define cube_vector16 cube_scalar
    #define cube_load_vector16 cube_load_scalar
    #define cube_store_vector16 cube_store_scalar
    #endif

    #if defined(__x86_64__) && defined(__GNUC__)
    CUBE_BLOCKS(cube_vector32, __attribute__((target("avx2"))), 32)
    CUBE_BLOCKS(cube_vector64, __attribute__((target("avx512f"))), 64)
    CUBE_TILES(vector32, __attribute__((target("avx2"))), 32)
    CUBE_TILES(vector64, __attribute__((target("avx512f"))), 64)
    static cube_load cube_load_path(int path) {
        return path == 3 ? cube_load_vector64 : path == 2 ? cube_load_vector32
            : path == 1 ? cube_load_vector16 : cube_load_scalar;
    }
    static cube_store cube_store_path(int path) {
        return path == 3 ? cube_store_vector64 : path == 2 ? cube_store_vector32
            : path == 1 ? cube_store_vector16 : cube_store_scalar;
    }
    static cube_blocks cube_path(int path) {
        __builtin_cpu_init();
        if (path == 3) return __builtin_cpu_supports("avx512f") ? cube_vector64 : NULL;
        if (path == 2) return __builtin_cpu_supports("avx2") ? cube_vector32 : NULL;
        return path == 1 ? cube_vector16 : cube_scalar;
    }
    #else
    static cube_blocks cube_path(int path) {
        return path > 1 ? NULL : path == 1 ? cube_vector16 : cube_scalar;
    }
    static cube_load cube_load_path(int path) { return path ? cube_load_vector16 : cube_load_scalar; }
    static cube_store cube_store_path(int path) { return path ? cube_store_vector16 : cube_store_scalar; }
    #endif
    """
    ctypedef void (*Load "cube_load")(
        const float* c, Py_ssize_t ldc, double* acc, int settle) noexcept nogil
    ctypedef void (*Store "cube_store")(const double* acc, float* c, Py_ssize_t ldc) noexcept nogil
    Blocks cube_path(int path) noexcept nogil
    Load cube_load_path(int path) noexcept nogil
    Store cube_store_path(int path) noexcept nogil

_WIDTHS = ("scalar", "vector16", "vector32", "vector64")  # bytes of a vector
PATHS = tuple([name for path, name in enumerate(_WIDTHS) if cube_path(path) != NULL])


cdef struct Path:  # the loops of one vector width
    Blocks blocks
    Load load
    Store store


cdef Rule make_rule(Target target, Mode mode, bint saturate, bint flush) noexcept nogil:
    cdef Rule rule
    rule.settle = LEAVE
    if target == TO_FP32 and mode == RINT:
        rule.settle = NEAREST | (FLUSH if flush else 0) | (SATURATE if saturate else 0)
    rule.target = target
    rule.cut = make_cut(mode, 52 - stored_bits(target))
    rule.ends = make_ends(target, mode, saturate, False)
    rule.flush = flush
    return rule


cdef void pack_a(const float* a, Py_ssize_t lda, Py_ssize_t rows, Py_ssize_t k, double* dst) noexcept nogil:
    """MR rows of `a` as doubles, (k, MR); rows that are not there are zero."""
    cdef Py_ssize_t i, t
    if rows == MR:
        for t in range(k):
            for i in range(MR):
                dst[t * MR + i] = a[i * lda + t]
        return
    for i in range(MR):
        for t in range(k):
            dst[t * MR + i] = a[i * lda + t] if i < rows else 0.0


cdef void pack_b(const float* b, Py_ssize_t ldb, Py_ssize_t cols, Py_ssize_t k, double* dst) noexcept nogil:
    """Columns of `b` as doubles in panels of (k, NR); columns that are not there are zero."""
    cdef Py_ssize_t j, t, width
    while cols > 0:
        width = min(cols, <Py_ssize_t>NR)
        for t in range(k):
            if width == NR:
                for j in range(NR):
                    dst[t * NR + j] = b[t * ldb + j]
                continue
            for j in range(width):
                dst[t * NR + j] = b[t * ldb + j]
            for j in range(width, NR):
                dst[t * NR + j] = 0.0
        dst += k * NR
        b += NR
        cols -= NR


cdef void settle_tile(double* acc, Rule* rule) noexcept nogil:
    """One rounding of a tile by the general rules."""
    cdef float[MR * NR] rounded
    cdef Py_ssize_t e
    round_double_row(acc, rounded, MR * NR, rule.target, rule.cut, rule.ends)
    if rule.flush:
        flush_row(rounded, MR * NR)
    for e in range(MR * NR):
        acc[e] = rounded[e]


cdef void tile_blocks(
    Blocks blocks, const double* a, const double* b, double* acc, Py_ssize_t k, Py_ssize_t kb, Rule* rule
) noexcept nogil:
    cdef Py_ssize_t start = 0
    cdef Py_ssize_t size
    if rule.settle != LEAVE:
        blocks(a, b, acc, k, kb, rule.settle)
        return
    while start < k:
        size = min(kb, k - start)
        blocks(a + start * MR, b + start * NR, acc, size, size, LEAVE)
        settle_tile(acc, rule)
        start += size


cdef void load_tile(
    const float* c, Py_ssize_t ldc, Py_ssize_t rows, Py_ssize_t cols, double* acc, Path* path, Rule* rule
) noexcept nogil:
    """Accumulators to start from, settled; zeros where `c` is NULL, and where a tile is cut short."""
    cdef float[MR * NR] whole
    cdef Py_ssize_t i, j
    if c == NULL:
        memset(acc, 0, MR * NR * sizeof(double))
        return
    if rows < MR or cols < NR:
        memset(whole, 0, MR * NR * sizeof(float))
        for i in range(min(rows, <Py_ssize_t>MR)):
            for j in range(min(cols, <Py_ssize_t>NR)):
                whole[i * NR + j] = c[i * ldc + j]
        c, ldc = whole, NR
    path.load(c, ldc, acc, rule.settle)


cdef void store_tile(
    const double* acc, float* c, Py_ssize_t ldc, Py_ssize_t rows, Py_ssize_t cols, Path* path
) noexcept nogil:
    cdef float[MR * NR] whole
    cdef Py_ssize_t i
    if rows >= MR and cols >= NR:
        path.store(acc, c, ldc)
        return
    path.store(acc, whole, NR)
    for i in range(min(rows, <Py_ssize_t>MR)):
        memcpy(c + i * ldc, whole + i * NR, min(cols, <Py_ssize_t>NR) * sizeof(float))


cdef void panel_product(
    Path* path, const float* a, Py_ssize_t lda, const double* b, const float* start, float* c,
    Py_ssize_t ldc, Py_ssize_t rows, Py_ssize_t cols, Py_ssize_t k, Py_ssize_t kb, Rule* rule, double* scratch
) noexcept nogil:
    """c = start + a @ b for one chunk of k and packed `b`; scratch: a tile, then a panel of `a`."""
    cdef double* panel = scratch + MR * NR
    cdef const float* here
    cdef Py_ssize_t n
    while rows > 0:
        pack_a(a, lda, min(rows, <Py_ssize_t>MR), k, panel)
        n = 0
        while n < cols:
            here = NULL
            if start != NULL:
                here = start + n
            load_tile(here, ldc, rows, cols - n, scratch, path, rule)
            tile_blocks(path.blocks, panel, b + n * k, scratch, k, kb, rule)
            store_tile(scratch, c + n, ldc, rows, cols - n, path)
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
    cdef double* panels = scratch + MR * NR + MR * chunk
    cdef const float* old
    cdef Py_ssize_t n = 0
    cdef Py_ssize_t t, depth, width
    while n < cols:
        width = min(cols - n, <Py_ssize_t>NC)
        t = 0
        while t < k:
            depth = min(k - t, chunk)
            pack_b(b + t * cols + n, cols, width, depth, panels)
            old = NULL
            if t > 0:
                old = c + n
            elif start != NULL:
                old = start + n
            panel_product(
                path, a + t, k, panels, old, c + n, cols, rows, width, depth, kb, rule, scratch
            )
            t += chunk
        n += NC


def chunk_of(Py_ssize_t kb):
    """k of a packed panel: whole blocks, so that an accumulator leaves the registers only when rounded."""
    return max(<Py_ssize_t>1, KC // kb) * kb


def scratch_doubles(Py_ssize_t kb):
    """Doubles of scratch that `multiply` needs."""
    return MR * NR + (MR + NC) * chunk_of(kb)


def multiply(
    const float[:, :, ::1] a, const float[:, :, ::1] b, const float[:, :, ::1] start, float[:, :, ::1] c,
    double[::1] scratch, Py_ssize_t kb, Target target, Mode mode, bint saturate, bint flush, int path
):
    """c[p] = start[p] + a[p] @ b[p], blocks of kb in ascending k, each rounded once to `target` by `mode`.

    a: (P or 1, M, K), b: (P or 1, K, N), c: (P, M, N), none empty; start: as c, c itself, or None for zeros.
    `path`: index of a name in PATHS.
    """
    cdef Rule rule = make_rule(target, mode, saturate, flush)
    cdef Path chosen
    cdef Py_ssize_t chunk = chunk_of(kb)
    cdef bint fresh = start is None
    cdef const float* first
    cdef Py_ssize_t p, pa, pb
    chosen.blocks, chosen.load, chosen.store = cube_path(path), cube_load_path(path), cube_store_path(path)
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
