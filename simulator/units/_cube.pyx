"""The Cube's order of summation: exact products of a block and the accumulator, added up, rounded once.

Loops only; formats, defaults and checks are in cube.py. Sums are doubles. A product of two 24-bit
significands is exact there and cannot overflow or underflow, so the only roundings are those of the
additions (2^-53) and the one of the model.

The same loop exists in several vector widths, chosen at run time. All give the same bits: each element has
its own chain of additions in ascending k whatever the width is. (A fused multiply-add would change nothing
either, as the product is exact.)
"""

from libc.math cimport NAN

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

    #if defined(__GNUC__)
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
    #endif

    #if defined(__x86_64__) && defined(__GNUC__)
    CUBE_BLOCKS(cube_vector32, __attribute__((target("avx2"))), 32)
    CUBE_BLOCKS(cube_vector64, __attribute__((target("avx512f"))), 64)
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
    #endif
    """
    Blocks cube_path(int path) noexcept nogil

_WIDTHS = ("scalar", "vector16", "vector32", "vector64")  # bytes of a vector
PATHS = tuple([name for path, name in enumerate(_WIDTHS) if cube_path(path) != NULL])


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
    for i in range(MR):
        for t in range(k):
            dst[t * MR + i] = a[i * lda + t] if i < rows else 0.0


cdef void pack_b(const float* b, Py_ssize_t ldb, Py_ssize_t cols, Py_ssize_t k, double* dst) noexcept nogil:
    """Columns of `b` as doubles in panels of (k, NR); columns that are not there are zero."""
    cdef Py_ssize_t j, t, width
    while cols > 0:
        width = min(cols, <Py_ssize_t>NR)
        for t in range(k):
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
    const float* c, Py_ssize_t ldc, Py_ssize_t rows, Py_ssize_t cols, double* acc
) noexcept nogil:
    cdef Py_ssize_t i, j
    for i in range(MR):
        for j in range(NR):
            acc[i * NR + j] = c[i * ldc + j] if i < rows and j < cols else 0.0


cdef void store_tile(
    const double* acc, float* c, Py_ssize_t ldc, Py_ssize_t rows, Py_ssize_t cols
) noexcept nogil:
    """Back to float32, exactly. One NaN stands for all: which payload wins depends on the compiler."""
    cdef Py_ssize_t i, j
    cdef double x
    for i in range(rows):
        for j in range(cols):
            x = acc[i * NR + j]
            c[i * ldc + j] = <float>x if x == x else <float>NAN


cdef void panel_product(
    Blocks blocks, const float* a, Py_ssize_t lda, const double* b, float* c, Py_ssize_t ldc,
    Py_ssize_t rows, Py_ssize_t cols, Py_ssize_t k, Py_ssize_t kb, Rule* rule, double* scratch
) noexcept nogil:
    """c += a @ b for k of one chunk and the columns of packed `b`; scratch: a tile, then a panel of `a`."""
    cdef double* panel = scratch + MR * NR
    cdef Py_ssize_t n
    while rows > 0:
        pack_a(a, lda, min(rows, <Py_ssize_t>MR), k, panel)
        n = 0
        while n < cols:
            load_tile(c + n, ldc, min(rows, <Py_ssize_t>MR), min(cols - n, <Py_ssize_t>NR), scratch)
            tile_blocks(blocks, panel, b + n * k, scratch, k, kb, rule)
            store_tile(scratch, c + n, ldc, min(rows, <Py_ssize_t>MR), min(cols - n, <Py_ssize_t>NR))
            n += NR
        a += MR * lda
        c += MR * ldc
        rows -= MR


cdef void matrix_product(
    Blocks blocks, const float* a, const float* b, float* c, Py_ssize_t rows, Py_ssize_t cols, Py_ssize_t k,
    Py_ssize_t kb, Py_ssize_t chunk, Rule* rule, double* scratch
) noexcept nogil:
    cdef double* panels = scratch + MR * NR + MR * chunk
    cdef Py_ssize_t n = 0
    cdef Py_ssize_t t, depth, width
    while n < cols:
        width = min(cols - n, <Py_ssize_t>NC)
        t = 0
        while t < k:
            depth = min(k - t, chunk)
            pack_b(b + t * cols + n, cols, width, depth, panels)
            panel_product(blocks, a + t, k, panels, c + n, cols, rows, width, depth, kb, rule, scratch)
            t += chunk
        n += NC


def chunk_of(Py_ssize_t kb):
    """k of a packed panel: whole blocks, so that an accumulator leaves the registers only when rounded."""
    return max(<Py_ssize_t>1, KC // kb) * kb


def scratch_doubles(Py_ssize_t kb):
    """Doubles of scratch that `multiply` needs."""
    return MR * NR + (MR + NC) * chunk_of(kb)


def multiply(
    const float[:, :, ::1] a, const float[:, :, ::1] b, float[:, :, ::1] c, double[::1] scratch,
    Py_ssize_t kb, Target target, Mode mode, bint saturate, bint flush, int path
):
    """c[p] += a[p] @ b[p] in place, blocks of kb in ascending k, each rounded once to `target` by `mode`.

    a: (P or 1, M, K), b: (P or 1, K, N), c: (P, M, N); none empty. `path`: index of a name in PATHS.
    """
    cdef Rule rule = make_rule(target, mode, saturate, flush)
    cdef Blocks blocks = cube_path(path)
    cdef Py_ssize_t chunk = chunk_of(kb)
    cdef Py_ssize_t p, pa, pb
    with nogil:
        for p in range(c.shape[0]):
            pa = p if a.shape[0] > 1 else 0
            pb = p if b.shape[0] > 1 else 0
            matrix_product(
                blocks, &a[pa, 0, 0], &b[pb, 0, 0], &c[p, 0, 0], c.shape[1], c.shape[2], a.shape[2],
                kb, chunk, &rule, &scratch[0]
            )
