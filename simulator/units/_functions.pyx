"""Elementary and special functions in double precision, rounded once to their type.

What C's mathematics library has is taken from there: its doubles are good to about 2^-52, so the float32
nearest to them is the correctly rounded result in all but about one of 10^8 arguments; those few are where
two C libraries may differ. The inverse error functions, the scaled error function and the modified Bessel
functions are computed here. For a half-precision result the float32 is rounded to odd, so that the following
rounding to 11 or 8 bits is the only one.
"""

from libc.math cimport (
    INFINITY, NAN, acos, acosh, asin, asinh, atan, atan2, atanh, cbrt, cos, cosh, erf, erfc, exp, exp2, expm1,
    fabs, fdim, fma, fmod, frexp, hypot, lgamma, log, log10, log1p, log2, pow, remainder, rint, round, sin,
    sinh, sqrt, tan, tanh, tgamma, trunc
)
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from ascendtile.simulator.units._elementwise cimport to_odd

cdef extern from "math.h" nogil:  # of POSIX
    double j0(double)
    double j1(double)
    double y0(double)
    double y1(double)
    double jn(int, double)
    double yn(int, double)

cdef double PI = 3.14159265358979323846
cdef double SQRT_HALF = 0.70710678118654752440
cdef double HALF_SQRT_PI = 0.88622692545275801365
cdef double SQRT_PI = 1.77245385090551602730
cdef double TWO_OVER_SQRT_PI = 1.12837916709551257390
cdef double WINITZKI = 0.147  # S. Winitzki's approximation of the inverse error function, good to 2e-3
cdef int MOST_TERMS = 200
cdef double ASYMPTOTIC = 40.0  # from here on the asymptotic series of I_0 and I_1 is good to 2^-53


cdef double c_exp10(double x) noexcept nogil:
    return pow(10.0, x)


cdef double c_rcbrt(double x) noexcept nogil:
    return 1.0 / cbrt(x)


cdef double c_sinpi(double x) noexcept nogil:
    cdef double r = fmod(x, 2.0)  # exact, and so is the fold to [-1/2, 1/2] below
    if r > 0.5:
        r = 1.0 - r if r < 1.5 else r - 2.0
    elif r < -0.5:
        r = -1.0 - r if r > -1.5 else r + 2.0
    return sin(PI * r)


cdef double c_cospi(double x) noexcept nogil:
    cdef double r = fmod(fabs(x), 2.0)
    if r > 1.0:
        r = 2.0 - r
    return sin(PI * (0.5 - r))


cdef double c_logb(double x) noexcept nogil:
    cdef int exponent
    if x == 0:
        return -INFINITY
    if x != x or fabs(x) == INFINITY:
        return fabs(x)
    frexp(x, &exponent)
    return exponent - 1.0


cdef double c_erfcx(double x) noexcept nogil:
    """exp(x^2) erfc(x); its asymptotic series where erfc leaves the range of doubles."""
    cdef double z
    if x < 25.0:
        return exp(x * x) * erfc(x)
    z = 0.5 / (x * x)
    return (1.0 - z * (1.0 - 3.0 * z * (1.0 - 5.0 * z * (1.0 - 7.0 * z)))) / (x * SQRT_PI)


cdef double first_guess(double log_term) noexcept nogil:
    """Winitzki's y with erf(y) = x, from ln(1 - x^2), without cancellation for small x."""
    cdef double b = 2.0 / (PI * WINITZKI) + 0.5 * log_term
    return sqrt(-log_term / WINITZKI / (sqrt(b * b - log_term / WINITZKI) + b))


cdef double c_erfinv(double x) noexcept nogil:
    """y with erf(y) = x, by three steps of Halley's method."""
    cdef double y, u
    cdef int _i
    if fabs(x) > 0.5:
        if fabs(x) > 1 or x != x:
            return NAN
        return c_erfcinv(1.0 - x) if x > 0 else -c_erfcinv(1.0 + x)
    y = first_guess(log1p(-x * x))
    y = -y if x < 0 else y
    for _i in range(3):
        u = (erf(y) - x) / (TWO_OVER_SQRT_PI * exp(-y * y))
        y = y - u / (1.0 + y * u)
    return y


cdef double c_erfcinv(double q) noexcept nogil:
    """y with erfc(y) = q, by three steps of Halley's method on the tail that is not near 1."""
    cdef double y, u
    cdef int _i
    if not (q > 0 and q < 2):
        return INFINITY if q == 0 else -INFINITY if q == 2 else NAN
    if q > 1:
        return -c_erfcinv(2.0 - q) if q > 1.5 else -c_erfinv(q - 1.0)
    if q > 0.5:
        return c_erfinv(1.0 - q)
    y = first_guess(log(q * (2.0 - q)))
    for _i in range(3):
        u = (erfc(y) - q) / (-TWO_OVER_SQRT_PI * exp(-y * y))
        y = y - u / (1.0 + y * u)
    return y


cdef double c_normcdf(double x) noexcept nogil:
    return 0.5 * erfc(-x * SQRT_HALF)


cdef double c_normcdfinv(double p) noexcept nogil:
    return 0.0 - c_erfcinv(2.0 * p) / SQRT_HALF


cdef double modified_bessel(double x, int order) noexcept nogil:
    """I_0 or I_1 of |x|: the power series, of positive terms, or the asymptotic one."""
    cdef double z, term, total, mu, odd
    cdef int k
    x = fabs(x)
    if x == INFINITY or x != x:
        return x
    if x < ASYMPTOTIC:
        z = 0.25 * x * x
        term = 1.0 if order == 0 else 0.5 * x
        total = term
        for k in range(1, MOST_TERMS):
            term = term * z / (k * <double> (k + order))
            total = total + term
            if term <= total * 1e-18:
                break
        return total
    mu = 4.0 * order * order
    term = 1.0
    total = 1.0
    for k in range(1, 25):
        odd = 2.0 * k - 1.0
        term = -term * (mu - odd * odd) / (8.0 * k * x)
        total = total + term
    return exp(0.5 * x) * (exp(0.5 * x) * (total / sqrt(2.0 * PI * x)))  # in two steps: e^x overflows first


cdef double c_i0(double x) noexcept nogil:
    return modified_bessel(x, 0)


cdef double c_i1(double x) noexcept nogil:
    return -modified_bessel(x, 1) if x < 0 else modified_bessel(x, 1)


cdef double c_rhypot(double x, double y) noexcept nogil:
    return 1.0 / hypot(x, y)


cdef double c_jn_of(double n, double x) noexcept nogil:
    return jn(<int> n, x)


cdef double c_yn_of(double n, double x) noexcept nogil:
    return yn(<int> n, x)


ctypedef double (*One)(double) noexcept nogil
ctypedef double (*Two)(double, double) noexcept nogil

cdef dict ONE = {
    "acos": <size_t> <One> acos,
    "acosh": <size_t> <One> acosh,
    "asin": <size_t> <One> asin,
    "asinh": <size_t> <One> asinh,
    "atan": <size_t> <One> atan,
    "atanh": <size_t> <One> atanh,
    "cbrt": <size_t> <One> cbrt,
    "cos": <size_t> <One> cos,
    "cosh": <size_t> <One> cosh,
    "cospi": <size_t> <One> c_cospi,
    "cyl_bessel_i0": <size_t> <One> c_i0,
    "cyl_bessel_i1": <size_t> <One> c_i1,
    "erf": <size_t> <One> erf,
    "erfc": <size_t> <One> erfc,
    "erfcinv": <size_t> <One> c_erfcinv,
    "erfcx": <size_t> <One> c_erfcx,
    "erfinv": <size_t> <One> c_erfinv,
    "exp10": <size_t> <One> c_exp10,
    "exp2": <size_t> <One> exp2,
    "expm1": <size_t> <One> expm1,
    "j0": <size_t> <One> j0,
    "j1": <size_t> <One> j1,
    "lgamma": <size_t> <One> lgamma,
    "log10": <size_t> <One> log10,
    "log1p": <size_t> <One> log1p,
    "log2": <size_t> <One> log2,
    "logb": <size_t> <One> c_logb,
    "normcdf": <size_t> <One> c_normcdf,
    "normcdfinv": <size_t> <One> c_normcdfinv,
    "rcbrt": <size_t> <One> c_rcbrt,
    "rint": <size_t> <One> rint,
    "round": <size_t> <One> round,
    "sin": <size_t> <One> sin,
    "sinh": <size_t> <One> sinh,
    "sinpi": <size_t> <One> c_sinpi,
    "tan": <size_t> <One> tan,
    "tanh": <size_t> <One> tanh,
    "tgamma": <size_t> <One> tgamma,
    "trunc": <size_t> <One> trunc,
    "y0": <size_t> <One> y0,
    "y1": <size_t> <One> y1,
}
cdef dict TWO = {
    "atan2": <size_t> <Two> atan2,
    "fdim": <size_t> <Two> fdim,
    "fmod": <size_t> <Two> fmod,
    "hypot": <size_t> <Two> hypot,
    "jn": <size_t> <Two> c_jn_of,
    "pow": <size_t> <Two> pow,
    "remainder": <size_t> <Two> remainder,
    "rhypot": <size_t> <Two> c_rhypot,
    "yn": <size_t> <Two> c_yn_of,
}
UNARY = tuple(ONE)
BINARY = tuple(TWO)

ctypedef fused real:
    float
    double


cdef inline real settled(double y, bint odd, real kind) noexcept nogil:
    """y in the result's type: to nearest, or to odd where a half will be made of the float32."""
    if real is float:
        return to_odd(y) if odd else <float> y
    else:
        return y


def unary(str name, const real[::1] x, real[::1] out, bint odd):
    """out = name(x), each rounded once; `odd` (float32 only) rounds to odd."""
    cdef One f = <One> <size_t> ONE[name]
    cdef Py_ssize_t i
    with nogil:
        for i in range(x.shape[0]):
            out[i] = settled(f(x[i]), odd, x[i])


def binary(str name, const real[::1] x, const real[::1] y, real[::1] out, bint odd):
    """out = name(x, y), each rounded once; `odd` (float32 only) rounds to odd."""
    cdef Two f = <Two> <size_t> TWO[name]
    cdef Py_ssize_t i
    with nogil:
        for i in range(x.shape[0]):
            out[i] = settled(f(x[i], y[i]), odd, x[i])


def fma_f64(const double[::1] x, const double[::1] y, const double[::1] z, double[::1] out):
    """out = x * y + z with one rounding."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(x.shape[0]):
            out[i] = fma(x[i], y[i], z[i])


def fma_f32(const float[::1] x, const float[::1] y, const float[::1] z, float[::1] out, bint odd):
    """out = x * y + z with one rounding.

    The product of two float32 is exact in double, and the sum is rounded to odd.
    """
    cdef Py_ssize_t i
    cdef double product, total, back, error
    cdef uint64_t bits
    with nogil:
        for i in range(x.shape[0]):
            product = <double> x[i] * y[i]
            total = product + z[i]
            back = total - product
            error = (product - (total - back)) + (z[i] - back)  # of the sum, exact (two-sum)
            if error != 0 and error == error:
                memcpy(&bits, &total, 8)
                if not bits & 1:  # round the double to odd: toward the true sum
                    bits = bits + 1 if (error > 0) == (total > 0) else bits - 1
                    memcpy(&total, &bits, 8)
            out[i] = to_odd(total) if odd else <float> total
