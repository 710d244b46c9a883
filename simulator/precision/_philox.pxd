# Random words of a seed and an index, in C: one definition, and a loop of wider vectors that gives the same
# bits.

from libc.stdint cimport uint32_t, uint64_t

cdef extern from *:
    """
    #ifndef ASCENDTILE_PHILOX
    #define ASCENDTILE_PHILOX
    #include <stddef.h>
    #include <stdint.h>
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    #endif

    typedef void (*philox_row)(uint32_t *out, ptrdiff_t n, uint64_t seed, uint64_t first);

    #define PHILOX_A 0xD2511F53u  /* multipliers */
    #define PHILOX_B 0xCD9E8D57u
    #define PHILOX_K0 0x9E3779B9u  /* what the key grows by from round to round */
    #define PHILOX_K1 0xBB67AE85u
    #define PHILOX_ROUNDS 10

    /* Philox 4x32-10 (Salmon and others, SC 2011): word 0 of counter (i, 0, 0, 0), i of 64 bits, and a key of
       64. What tl.randint(seed, i) gives. */
    static inline uint32_t philox(uint64_t i, uint64_t seed)
    {
        uint32_t c0 = (uint32_t)i, c1 = (uint32_t)(i >> 32), c2 = 0, c3 = 0;
        uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
        for (int round = 0; round < PHILOX_ROUNDS; round++) {
            const uint64_t a = (uint64_t)c0 * PHILOX_A, b = (uint64_t)c2 * PHILOX_B;
            c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
            c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
            c1 = (uint32_t)b;
            c3 = (uint32_t)a;
            k0 += PHILOX_K0;
            k1 += PHILOX_K1;
        }
        return c0;
    }
    static void philox_plain(uint32_t *out, ptrdiff_t n, uint64_t seed, uint64_t first)
    {
        for (ptrdiff_t i = 0; i < n; i++) out[i] = philox(first + (uint64_t)i, seed);
    }

    #if defined(__x86_64__) && defined(__GNUC__)
    #define PHILOX_WIDER __attribute__((target("avx2")))
    #define PHILOX_WIDER_VALUE PHILOX_WIDER __attribute__((always_inline)) static inline
    #define PHILOX_EACH_HALF for (int h = 0; h < 2; h++)

    /* Words in lanes of 64 bits, where products need no shuffling: gcc's loop of philox takes four times as
       long. Upper halves of lanes hold what nobody reads. */
    typedef struct { __m256i a, b, k0[PHILOX_ROUNDS], k1[PHILOX_ROUNDS]; } philox_keys;

    /* In round 1 c2 is 0, so that c0 is the same in round 2 for all counters with these upper words: its
       product stands for words of the key. */
    PHILOX_WIDER_VALUE philox_keys philox_keys_of(uint64_t seed, uint32_t upper)
    {
        const uint64_t a = (uint64_t)(upper ^ (uint32_t)seed) * PHILOX_A;
        uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
        philox_keys keys;
        for (int round = 0; round < PHILOX_ROUNDS; round++, k0 += PHILOX_K0, k1 += PHILOX_K1) {
            const uint32_t more = round == 1 ? (uint32_t)(a >> 32) : round == 2 ? (uint32_t)a : 0;
            keys.k0[round] = _mm256_set1_epi64x(k0);
            keys.k1[round] = _mm256_set1_epi64x(k1 ^ more);
        }
        keys.a = _mm256_set1_epi64x(PHILOX_A);
        keys.b = _mm256_set1_epi64x(PHILOX_B);
        return keys;
    }

    /* y and z are there before x. The empty statement keeps gcc from taking x first: a round would take a
       cycle more. */
    PHILOX_WIDER_VALUE __m256i philox_xor(__m256i x, __m256i y, __m256i z)
    {
        __m256i before = _mm256_xor_si256(y, z);
        __asm__("" : "+x"(before));
        return _mm256_xor_si256(x, before);
    }
    PHILOX_WIDER_VALUE __m256i philox_high(__m256i x) { return _mm256_srli_epi64(x, 32); }

    /* Eight words from the first round's products of their counters; both halves in one loop, since a round
       waits for the one before. The last round makes c0 alone. */
    PHILOX_WIDER_VALUE void philox_words(const __m256i *products, const philox_keys *keys, __m256i *words)
    {
        const __m256i none = _mm256_setzero_si256();
        __m256i c0[2], c1[2], c2[2], c3[2];
        PHILOX_EACH_HALF {
            c2[h] = _mm256_xor_si256(philox_high(products[h]), keys->k1[0]);
            c1[h] = _mm256_mul_epu32(c2[h], keys->b);
            c0[h] = _mm256_xor_si256(philox_high(c1[h]), keys->k0[1]);
            c2[h] = _mm256_xor_si256(products[h], keys->k1[1]);
            c3[h] = none;
        }
        for (int round = 2; round < PHILOX_ROUNDS - 1; round++)
            PHILOX_EACH_HALF {
                const __m256i a = _mm256_mul_epu32(c0[h], keys->a), b = _mm256_mul_epu32(c2[h], keys->b);
                c0[h] = philox_xor(philox_high(b), c1[h], keys->k0[round]);
                c2[h] = philox_xor(philox_high(a), c3[h], keys->k1[round]);
                c1[h] = b;
                c3[h] = a;
            }
        PHILOX_EACH_HALF {
            const __m256i b = _mm256_mul_epu32(c2[h], keys->b);
            words[h] = philox_xor(philox_high(b), c1[h], keys->k0[PHILOX_ROUNDS - 1]);
        }
    }

    /* One half has the counters with even i, one those with odd. The first products of the next eight are
       those of these and a constant. */
    PHILOX_WIDER static void philox_wider(uint32_t *out, ptrdiff_t n, uint64_t seed, uint64_t first)
    {
        const uint64_t lower = (uint32_t)first, a = PHILOX_A;
        const philox_keys keys = philox_keys_of(seed, (uint32_t)(first >> 32));
        const __m256i step = _mm256_set1_epi64x((long long)(8 * a));
        __m256i words[2], products[2];
        ptrdiff_t i = 0;
        products[0] = _mm256_setr_epi64x(
            (long long)(lower * a), (long long)((lower + 2) * a), (long long)((lower + 4) * a),
            (long long)((lower + 6) * a));
        products[1] = _mm256_add_epi64(products[0], keys.a);
        for (; i + 8 <= n && lower + (uint64_t)i + 8 <= (uint64_t)1 << 32; i += 8) {
            philox_words(products, &keys, words);
            _mm256_storeu_si256(
                (__m256i *)(out + i), _mm256_blend_epi32(words[0], _mm256_slli_epi64(words[1], 32), 0xAA));
            PHILOX_EACH_HALF products[h] = _mm256_add_epi64(products[h], step);
        }
        philox_plain(out + i, n - i, seed, first + (uint64_t)i);
    }
    #endif
    #endif
    """
    ctypedef void (*words_t "philox_row")(
        uint32_t* out, Py_ssize_t n, uint64_t seed, uint64_t first) noexcept nogil
