# The loops over one register tile, in C: several vector widths of one definition, chosen at run time.
#
# All widths give the same bits: each element has its own chain of additions in ascending k whatever the width
# is, and the product of two 24-bit significands is exact in a double, so that a fused multiply-add rounds
# where an addition does.
# A tile is MR x NR accumulators. Panel `a` is MR rows of lda doubles, panel `b` is (k, NR), both contiguous.

cdef extern from *:
    """
    #include <float.h>
    #include <math.h>
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    #define CUBE_MR 8
    #define CUBE_NR 16
    #define CUBE_NEAREST 1
    #define CUBE_FLUSH 2
    #define CUBE_SATURATE 4
    #define CUBE_GRID 8

    /* Accumulators from `acc` to `acc`, not brought to FP32 in between, or if that is NULL from `start`
       (NULL: zeros), settled as they are after a block, to `c`. One NaN stands for all: which payload wins
       depends on the compiler. */
    typedef void (*cube_tile)(
        const double *a, Py_ssize_t lda, const double *b, Py_ssize_t k, Py_ssize_t kb, int settle,
        double *acc, const float *start, float *c, Py_ssize_t ldc);

    /* `rows` rows of `n` float32 as doubles. Gives the smallest of their words without sign, less 1; zeros do
       not count. */
    typedef int32_t (*cube_widen)(
        const float *x, Py_ssize_t ldx, Py_ssize_t rows, Py_ssize_t n, double *dst);

    static inline double cube_settle(double s, int settle) {
        if (settle & CUBE_SATURATE) s = fabs(s) > FLT_MAX ? copysign(FLT_MAX, s) : s;
        if (settle & CUBE_NEAREST) s = (double)(float)s;
        if (settle & CUBE_FLUSH) s = fabs(s) < FLT_MIN ? copysign(0.0, s) : s;
        return s;
    }

    /* The definition, one element at a time; also the path of other compilers. */
    static void cube_scalar(
        const double *a, Py_ssize_t lda, const double *b, Py_ssize_t k, Py_ssize_t kb, int settle,
        double *acc, const float *start, float *c, Py_ssize_t ldc)
    {
        for (int e = 0; e < CUBE_MR * CUBE_NR; e++) {
            const Py_ssize_t at = e / CUBE_NR * ldc + e % CUBE_NR;
            const double *x = a + e / CUBE_NR * lda, *y = b + e % CUBE_NR;
            double s = acc ? acc[e] : start ? cube_settle((double)start[at], settle) : 0.0;
            for (Py_ssize_t k0 = 0; k0 < k; k0 += kb) {
                Py_ssize_t end = k - k0 < kb ? k : k0 + kb;
                for (Py_ssize_t i = k0; i < end; i++) s += x[i] * y[i * CUBE_NR];
                s = cube_settle(s, settle);
            }
            if (acc) acc[e] = s;
            else c[at] = s == s ? (float)s : (float)NAN;
        }
    }

    static inline int32_t cube_size(float x) {
        int32_t word;
        memcpy(&word, &x, sizeof word);
        return ((word & 0x7FFFFFFF) - 1) & 0x7FFFFFFF;
    }
    static int32_t cube_widen_scalar(
        const float *x, Py_ssize_t ldx, Py_ssize_t rows, Py_ssize_t n, double *dst)
    {
        int32_t least = 0x7FFFFFFF;
        for (Py_ssize_t r = 0; r < rows; r++) for (Py_ssize_t j = 0; j < n; j++) {
            const int32_t size = cube_size(x[r * ldx + j]);
            least = size < least ? size : least;
            dst[r * n + j] = x[r * ldx + j];
        }
        return least;
    }

    #if defined(__GNUC__)
    #define CUBE_SIZE(x) ((I)(x) & magnitude)
    #define CUBE_ZERO(x) ((V)((I)(x) & ~(((V)CUBE_SIZE(x) < least) & magnitude)))
    #define CUBE_BOUND(x)                                                                                   \\
        ((V)(((I)(x) & ~(((V)CUBE_SIZE(x) > most) & magnitude)) | ((I)most & ((V)CUBE_SIZE(x) > most))))
    #define CUBE_NUMBER(x) ((V)(((I)(x) & ((x) == (x))) | ((I)nan & ~((x) == (x)))))

    /* ROWS x 2 vectors of sums: chains of additions that hide the latency of one. A macro, because the vector
       type and the target cannot be parameters of a function. A comparison gives all ones or zero. */
    #define CUBE_LOOPS(NAME, TARGET, BYTES, ROWS)                                                           \\
    TARGET static inline __attribute__((always_inline)) void cube_block_##NAME(                             \\
        const double *a, Py_ssize_t lda, const double *b, Py_ssize_t k, Py_ssize_t kb, const int settle,    \\
        double *sums)                                                                                       \\
    {                                                                                                       \\
        CUBE_TYPES(BYTES)                                                                                   \\
        V s[ROWS][2];                                                                                       \\
        for (int i = 0; i < ROWS; i++) for (int h = 0; h < 2; h++)                                          \\
            s[i][h] = *(const U *)(sums + (i * 2 + h) * LANES);                                             \\
        for (Py_ssize_t k0 = 0; k0 < k; k0 += kb) {                                                         \\
            const Py_ssize_t end = k - k0 < kb ? k : k0 + kb;                                               \\
            for (Py_ssize_t t = k0; t < end; t++) {                                                         \\
                const V b0 = *(const U *)(b + t * CUBE_NR), b1 = *(const U *)(b + t * CUBE_NR + LANES);     \\
                for (int i = 0; i < ROWS; i++) {                                                            \\
                    s[i][0] = CUBE_MADD##BYTES(a[i * lda + t], b0, s[i][0]);                                \\
                    s[i][1] = CUBE_MADD##BYTES(a[i * lda + t], b1, s[i][1]);                                \\
                }                                                                                           \\
            }                                                                                               \\
            if (!settle) continue;                                                                          \\
            for (int i = 0; i < ROWS; i++) for (int h = 0; h < 2; h++) {                                    \\
                if (settle & CUBE_SATURATE) s[i][h] = CUBE_BOUND(s[i][h]);                                  \\
                if (settle & CUBE_NEAREST) s[i][h] = CUBE_WIDE##BYTES(CUBE_NARROW##BYTES(s[i][h]));         \\
                if (settle & CUBE_FLUSH) s[i][h] = CUBE_ZERO##BYTES(s[i][h]);                               \\
            }                                                                                               \\
        }                                                                                                   \\
        for (int i = 0; i < ROWS; i++) for (int h = 0; h < 2; h++)                                          \\
            *(U *)(sums + (i * 2 + h) * LANES) = s[i][h];                                                   \\
    }                                                                                                       \\
    /* Sums to begin with; whether none of them is so small that its last place could become subnormal. */  \\
    TARGET static inline __attribute__((always_inline)) int cube_begin_##NAME(                              \\
        const double *acc, const float *start, Py_ssize_t ldc, int settle, double *sums)                    \\
    {                                                                                                       \\
        CUBE_TYPES(BYTES)                                                                                   \\
        const V small = (V)zero + 0x1p-103;                                                                 \\
        I found = zero;                                                                                     \\
        for (int i = 0; i < ROWS; i++) for (int h = 0; h < 2; h++) {                                        \\
            V x = (V)zero;                                                                                  \\
            if (acc) x = *(const U *)(acc + i * CUBE_NR + h * LANES);                                       \\
            else if (start) {                                                                               \\
                x = CUBE_WIDE##BYTES(*(const G *)(start + i * ldc + h * LANES));                            \\
                if (settle & CUBE_SATURATE) x = CUBE_BOUND(x);                                              \\
                if (settle & CUBE_FLUSH) x = CUBE_ZERO##BYTES(x);                                           \\
                found |= ((V)CUBE_SIZE(x) < small) & (x != (V)zero);                                        \\
            }                                                                                               \\
            *(U *)(sums + (i * 2 + h) * LANES) = x;                                                         \\
        }                                                                                                   \\
        long long any = 0;                                                                                  \\
        for (int e = 0; e < LANES; e++) any |= found[e];                                                    \\
        return !any;                                                                                        \\
    }                                                                                                       \\
    TARGET static inline __attribute__((always_inline)) void cube_end_##NAME(                               \\
        const double *sums, double *acc, float *c, Py_ssize_t ldc)                                          \\
    {                                                                                                       \\
        CUBE_TYPES(BYTES)                                                                                   \\
        for (int i = 0; i < ROWS; i++) for (int h = 0; h < 2; h++) {                                        \\
            const V x = *(const U *)(sums + (i * 2 + h) * LANES);                                           \\
            if (acc) *(U *)(acc + i * CUBE_NR + h * LANES) = x;                                             \\
            else *(G *)(c + i * ldc + h * LANES) = (G)CUBE_NARROW##BYTES(CUBE_NUMBER(x));                   \\
        }                                                                                                   \\
    }                                                                                                       \\
    TARGET static void cube_##NAME(                                                                         \\
        const double *a, Py_ssize_t lda, const double *b, Py_ssize_t k, Py_ssize_t kb, int settle,          \\
        double *acc, const float *start, float *c, Py_ssize_t ldc)                                          \\
    {                                                                                                       \\
        enum { LANES = BYTES / 8 };                                                                         \\
        double sums[ROWS * 2 * LANES];                                                                      \\
        for (int i = 0; i < CUBE_MR; i += ROWS) for (int j = 0; j < CUBE_NR; j += 2 * LANES) {              \\
            double *old = acc ? acc + i * CUBE_NR + j : NULL;                                               \\
            float *to = c ? c + i * ldc + j : NULL;                                                         \\
            const int grid = cube_begin_##NAME(old, start ? start + i * ldc + j : NULL, ldc, settle, sums)  \\
                && settle & CUBE_GRID;                                                                      \\
            const int how = settle & (grid ? ~(CUBE_GRID | CUBE_FLUSH) : ~CUBE_GRID);                       \\
            if (how == CUBE_NEAREST)                                                                        \\
                cube_block_##NAME(a + i * lda, lda, b + j, k, kb, CUBE_NEAREST, sums);                      \\
            else if (how == (CUBE_NEAREST | CUBE_FLUSH))                                                    \\
                cube_block_##NAME(a + i * lda, lda, b + j, k, kb, CUBE_NEAREST | CUBE_FLUSH, sums);         \\
            else cube_block_##NAME(a + i * lda, lda, b + j, k, kb, how, sums);                              \\
            cube_end_##NAME(sums, old, to, ldc);                                                            \\
        }                                                                                                   \\
    }                                                                                                       \\
    TARGET static int32_t cube_widen_##NAME(                                                                \\
        const float *x, Py_ssize_t ldx, Py_ssize_t rows, Py_ssize_t n, double *dst)                         \\
    {                                                                                                       \\
        CUBE_TYPES(BYTES)                                                                                   \\
        const W size = (W){0} + 0x7FFFFFFF;                                                                 \\
        const Py_ssize_t whole = n / LANES * LANES;                                                         \\
        W low = size;                                                                                       \\
        int32_t lowest = 0x7FFFFFFF;                                                                        \\
        for (Py_ssize_t r = 0; r < rows; r++, x += ldx, dst += n) {                                         \\
            for (Py_ssize_t j = 0; j < whole; j += LANES) {                                                 \\
                const G y = *(const G *)(x + j);                                                            \\
                const W m = (((W)y & size) - 1) & size;                                                     \\
                const W less = m < low;                                                                     \\
                low = (m & less) | (low & ~less);                                                           \\
                *(U *)(dst + j) = CUBE_WIDE##BYTES(y);                                                      \\
            }                                                                                               \\
            if (whole == n) continue;                                                                       \\
            const int32_t rest = cube_widen_scalar(x + whole, 0, 1, n - whole, dst + whole);                \\
            lowest = rest < lowest ? rest : lowest;                                                         \\
        }                                                                                                   \\
        for (int e = 0; e < LANES; e++) lowest = low[e] < lowest ? low[e] : lowest;                         \\
        return lowest;                                                                                      \\
    }
    #define CUBE_TYPES(BYTES)                                                                               \\
        typedef double V __attribute__((vector_size(BYTES), unused));                                       \\
        typedef double U __attribute__((vector_size(BYTES), aligned(8), unused));                           \\
        typedef float F __attribute__((vector_size(BYTES / 2), unused));                                    \\
        typedef float G __attribute__((vector_size(BYTES / 2), aligned(4), unused));                        \\
        typedef int32_t W __attribute__((vector_size(BYTES / 2), unused));                                  \\
        typedef long long I __attribute__((vector_size(BYTES), unused));                                    \\
        enum { LANES = BYTES / 8 };                                                                         \\
        const I zero __attribute__((unused)) = {0};                                                         \\
        const I magnitude __attribute__((unused)) = zero + 0x7FFFFFFFFFFFFFFFLL;                            \\
        const V most __attribute__((unused)) = (V)zero + (double)FLT_MAX;                                   \\
        const V least __attribute__((unused)) = (V)zero + (double)FLT_MIN;                                  \\
        const V nan __attribute__((unused)) = (V)zero + (double)(float)NAN;

    #define CUBE_MADD16(x, y, s) ((s) + (x) * (y))
    #define CUBE_NARROW16(x) __builtin_convertvector(x, F)
    #define CUBE_WIDE16(x) __builtin_convertvector(x, V)
    #define CUBE_ZERO16 CUBE_ZERO
    CUBE_LOOPS(vector16, , 16, 4)
    #else
    #define cube_vector16 cube_scalar
    #define cube_widen_vector16 cube_widen_scalar
    #endif

    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    /* gcc 12 makes halves of what a conversion of vectors does in one instruction. */
    #define CUBE_MADD32(x, y, s) ((V)_mm256_fmadd_pd(_mm256_set1_pd(x), (__m256d)(y), (__m256d)(s)))
    #define CUBE_MADD64(x, y, s) ((V)_mm512_fmadd_pd(_mm512_set1_pd(x), (__m512d)(y), (__m512d)(s)))
    #define CUBE_NARROW32(x) ((F)_mm256_cvtpd_ps((__m256d)(x)))
    #define CUBE_NARROW64(x) ((F)_mm512_cvtpd_ps((__m512d)(x)))
    #define CUBE_WIDE32(x) ((V)_mm256_cvtps_pd((__m128)(x)))
    #define CUBE_WIDE64(x) ((V)_mm512_cvtps_pd((__m256)(x)))
    #define CUBE_ZERO32 CUBE_ZERO
    #define CUBE_ZERO64(x)                                                                                  \\
        ((V)_mm512_mask_andnot_epi64((__m512i)(x), _mm512_cmp_pd_mask((__m512d)CUBE_SIZE(x), (__m512d)least,\\
         _CMP_LT_OQ), (__m512i)magnitude, (__m512i)(x)))
    CUBE_LOOPS(vector32, __attribute__((target("avx2,fma"))), 32, 4)
    CUBE_LOOPS(vector64, __attribute__((target("avx512f"))), 64, 8)
    static cube_tile cube_path(int path) {
        __builtin_cpu_init();
        if (path == 3) return __builtin_cpu_supports("avx512f") ? cube_vector64 : NULL;
        if (path == 2)
            return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? cube_vector32 : NULL;
        return path == 1 ? cube_vector16 : cube_scalar;
    }
    static cube_widen cube_widen_path(int path) {
        return path == 3 ? cube_widen_vector64 : path == 2 ? cube_widen_vector32
            : path == 1 ? cube_widen_vector16 : cube_widen_scalar;
    }
    #else
    static cube_tile cube_path(int path) {
        return path > 1 ? NULL : path == 1 ? cube_vector16 : cube_scalar;
    }
    static cube_widen cube_widen_path(int path) {
        return path ? cube_widen_vector16 : cube_widen_scalar;
    }
    #endif
    """
    ctypedef void (*Tile "cube_tile")(
        const double* a, Py_ssize_t lda, const double* b, Py_ssize_t k, Py_ssize_t kb, int settle,
        double* acc, const float* start, float* c, Py_ssize_t ldc
    ) noexcept nogil
    ctypedef int (*Widen "cube_widen")(
        const float* x, Py_ssize_t ldx, Py_ssize_t rows, Py_ssize_t n, double* dst
    ) noexcept nogil
    Tile cube_path(int path) noexcept nogil
    Widen cube_widen_path(int path) noexcept nogil
