"""What a number format is: fields, and the figures that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import UsageError
from .taper import Row, check_rows, tapered_magnitudes

NAN_KINDS = ("ieee", "one", "zero", "none")
# Of rounding, those that need no random bits.
MODES = ("RINT", "FLOOR", "CEIL", "ROUND", "TRUNC", "ODD", "RNZ")
MOST_EXPONENT, MOST_MANTISSA, LEAST_POWER = 8, 23, -149  # of float32, which values are held in
MOST_INTEGER = 64
MOST_BIAS = 1000  # beyond, powers of two leave float64, too
FLAGS = ("signed", "infinities", "subnormals", "zero", "saturates")
WHOLE = ("exponent", "mantissa", "bias")
TEXTS = ("name", "nan", "rounding", "source")
# eXmY that the catalogue gives other rules than IEEE 754's, and in which fields: a text says them in any case.
OWN_RULES: Mapping[tuple[int, int], tuple[str, ...]] = MappingProxyType(
    {
        (4, 3): ("infinities", "nan"),
        (8, 0): ("signed", "infinities", "nan", "subnormals", "zero"),
        **dict.fromkeys(((3, 2), (2, 3), (2, 1)), ("infinities", "nan", "saturates")),
    }
)
MOST_SPACINGS = 6  # STEPS of _grid_rules.pxd, and the first
MOST_TABLE_BITS = 16  # formats of which tables of all values are made


@dataclass(frozen=True, slots=True)
class Format:
    """A number format: 1 sign, `exponent` and `mantissa` bits. Integers have `exponent` 0; see `signed` and `bias`.

    bias: what is added to the exponent of 2 before it is stored, by default half of the range; of integers the number of
    bits behind the point, 0 by default. infinities, nan: codes that are no numbers, counted from the largest down. nan is
    "ieee" (every mantissa but 0 under the largest exponent), "one" (the largest code alone), "zero" (the code of minus
    zero, which then is no number) or "none"; infinity is the next code. subnormals: without them an exponent field of 0 is
    zero. zero: without it an exponent field of 0 is a power of two as others. saturates: whether too large values become
    the largest finite one where nothing else is asked for. rounding: the mode where nothing else is asked for. taper: rows
    (prefix, exponent bits) of a format whose exponent field varies; then `exponent` and `mantissa` are the most bits.
    stored: whether memory holds it; of HF32 and TF32 it holds FP32. signed: False for formats without a sign; signed
    integers are in two's complement, `mantissa` bits without the sign. dtype: numpy's dtype of the codes in memory; by
    default one field named as the format over unsigned codes of 1 or 2 bytes, float32 values of formats above 16 bits, and
    numpy's integers of integers. Raises `UsageError` for what float32 does not hold exactly.
    """

    exponent: int
    mantissa: int
    bias: int = None  # type: ignore[assignment]  # a number as soon as it is made
    signed: bool = field(default=True, kw_only=True)
    infinities: bool = field(default=True, kw_only=True)
    nan: str = field(default="ieee", kw_only=True)
    subnormals: bool = field(default=True, kw_only=True)
    zero: bool = field(default=True, kw_only=True)
    saturates: bool = field(default=False, kw_only=True)
    rounding: str = field(default="RINT", kw_only=True)
    taper: tuple[Row, ...] = field(default=(), kw_only=True)
    stored: bool = field(default=True, kw_only=True)
    name: str = field(default="", kw_only=True)
    aliases: tuple[str, ...] = field(default=(), kw_only=True, compare=False)
    source: str = field(default="", kw_only=True, compare=False)
    dtype: np.dtype[Any] = field(default=None, kw_only=True)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        _check_kinds(self)
        _check_bits(self)
        if self.bias is None:
            object.__setattr__(self, "bias", _half(self.exponent))
        if self.exponent == 0:  # every code is a number
            object.__setattr__(self, "infinities", False)
            object.__setattr__(self, "nan", "none")
        if not self.name:
            object.__setattr__(self, "name", self.text)
        object.__setattr__(self, "dtype", _storage(self) if self.dtype is None else _asked_dtype(self))
        _check(self)

    # ---- codes

    @property
    def is_float(self) -> bool:
        return self.exponent > 0

    @property
    def is_integer(self) -> bool:
        """Whether values are whole numbers in memory; with bits behind the point they are not."""
        return self.exponent == 0 and self.bias == 0

    @property
    def bits(self) -> int:
        """Bits that carry information: 20 for HF32, although memory spends 32 on it."""
        return int(self.signed) + self.exponent + self.mantissa

    @property
    def storage_bits(self) -> int:
        """Bits of an element in memory: 8 for formats of 4 or 6 bits, which `pack` packs."""
        return self.dtype.itemsize * 8

    @property
    def magnitude_bits(self) -> int:
        return self.exponent + self.mantissa

    @property
    def specials(self) -> int:
        """Codes above the largest finite magnitude, without sign: infinity and NaN."""
        nans = {"ieee": (1 << self.mantissa) - 1, "one": 1}.get(self.nan, 0)
        return nans + self.infinities

    @property
    def values(self) -> NDArray[np.float64]:
        """The value of every code from 0 on, (2^bits,) float64; for formats of at most 16 bits."""
        return _values(self)

    # ---- range

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal number."""
        if self.taper:
            return min(e for e, _ in self.spacing if e > self.spacing[0][0])
        if not self.is_float:
            return self.mantissa - self.bias if self.bias else 0
        return int(self.zero) - self.bias

    @property
    def spacing(self) -> tuple[tuple[int, int], ...]:
        """(exponent, mantissa bits from there on), ascending; below the first, spacing stays what it is there."""
        if self.taper:
            return _tapered_spacing(self)
        if not self.is_float:
            return ((self.mantissa - self.bias, self.mantissa),)
        if self.zero and not self.subnormals:  # nothing between zero and the smallest normal number
            return ((self.min_exponent - 1, -1), (self.min_exponent, self.mantissa))
        return ((self.min_exponent, self.mantissa),)

    @property
    def max(self) -> float | int:
        """The largest finite value."""
        if self.is_integer:
            return (1 << self.mantissa) - 1
        if not self.is_float:
            return ((1 << self.mantissa) - 1) * 2.0**-self.bias
        if self.taper:
            return float(np.sort(_nominal(self))[-1 - self.specials])
        code = (1 << self.magnitude_bits) - 1 - self.specials
        return _of_code(self, code)

    @property
    def min(self) -> float | int:
        """The lowest finite value."""
        if not self.signed:
            return self.min_subnormal if not self.zero else 0
        if self.is_float:
            return -self.max
        return -(1 << self.mantissa) if self.is_integer else -(2.0 ** (self.mantissa - self.bias))

    @property
    def min_normal(self) -> float:
        return 2.0**self.min_exponent if self.is_float else 2.0**-self.bias

    @property
    def min_subnormal(self) -> float:
        """The smallest positive value."""
        if not self.is_float:
            return 2.0**-self.bias
        if not self.subnormals:
            return self.min_normal
        exponent, mantissa = self.spacing[0]
        return 2.0 ** (exponent - mantissa)

    @property
    def unit_roundoff(self) -> float:
        """Largest relative error of rounding to nearest in the normal range; 0.5 for integers (absolute)."""
        if not self.is_float:
            return 0.5 * 2.0**-self.bias
        mantissa = min(m for e, m in self.spacing if e >= self.min_exponent)
        return 2.0 ** -(mantissa + 1)

    def ulp(self, x: ArrayLike) -> NDArray[np.float64]:
        """Spacing at x: 2^(max(floor(log2 abs x), emin) - mantissa); NaN where x is not finite."""
        values = np.asarray(x, dtype=np.float64)
        if not self.is_float:
            return np.where(np.isfinite(values), 2.0**-self.bias, np.nan)
        froms, mantissas = np.array(self.spacing).T
        exponents = np.where(values == 0, froms[0], np.frexp(values)[1] - 1)  # frexp has 0 for 0
        exponents = np.maximum(exponents, froms[0])
        mantissas = mantissas[np.searchsorted(froms, exponents, "right") - 1]
        return np.where(np.isfinite(values), np.ldexp(1.0, exponents - mantissas), np.nan)

    # ---- text

    @property
    def text(self) -> str:
        """One line that makes it again: e3m3:nan=one,infinities=no; a tapered format has none, and gives its name."""
        if self.taper:
            return self.name
        own = OWN_RULES.get((self.exponent, self.mantissa), ())
        said = {k: getattr(self, k) for k in self._usual if k in own or k in self.changes}
        changes = [f"{key}={_said(value)}" for key, value in said.items()]
        return f"e{self.exponent}m{self.mantissa}" + (":" + ",".join(changes) if changes else "")

    @property
    def changes(self) -> dict[str, object]:
        """The fields in which it is not as IEEE 754 would have it, in the order of the class."""
        return {key: getattr(self, key) for key, value in self._usual.items() if getattr(self, key) != value}

    @property
    def _usual(self) -> dict[str, object]:
        return {
            "bias": _half(self.exponent), "signed": True, "infinities": self.exponent > 0,
            "nan": "ieee" if self.exponent else "none", "subnormals": True, "zero": True, "saturates": False,
            "rounding": "RINT",
        }  # fmt: skip

    def __str__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self.name)  # quick: roundings are looked up by it


def _half(exponent: int) -> int:
    """The usual bias of so many exponent bits."""
    return (1 << exponent >> 1) - 1 if exponent > 0 else 0


def _said(value: object) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def _storage(fmt: Format) -> np.dtype[Any]:
    """One field that says whose codes they are: it stays with copies, slices and npz files, and needs no class."""
    if fmt.is_integer:
        size = next(n for n in (8, 16, 32, 64) if fmt.bits <= n)
        return np.dtype(f"{'int' if fmt.signed else 'uint'}{size}")
    if fmt.bits > MOST_TABLE_BITS:
        return np.dtype(np.float32)
    return np.dtype([(fmt.name, "u1" if fmt.bits <= 8 else "u2")])


def _asked_dtype(fmt: Format) -> np.dtype[Any]:
    try:
        dtype = np.dtype(fmt.dtype)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.hasobject or 8 * dtype.itemsize < fmt.bits:
        raise UsageError(
            f"format {fmt.name}: dtype is {fmt.dtype!r}; its codes take one of {fmt.bits} bits or more"
        )
    return dtype


# ---- tables


def _of_code(fmt: Format, code: int) -> float:
    """The magnitude that a code without sign has by its place, of an evenly made format."""
    field, mantissa = code >> fmt.mantissa, code & ((1 << fmt.mantissa) - 1)
    if field == 0 and fmt.zero:
        return mantissa * 2.0 ** (fmt.min_exponent - fmt.mantissa) if fmt.subnormals else 0.0
    return float((1 + mantissa / (1 << fmt.mantissa)) * 2.0 ** (field - fmt.bias))


@lru_cache(maxsize=256)
def _nominal(fmt: Format) -> NDArray[np.float64]:
    """Magnitudes by code, also of those codes that stand for infinity and NaN."""
    if fmt.taper:
        return tapered_magnitudes(fmt.taper, fmt.magnitude_bits)
    if not fmt.is_float:
        return np.asarray(np.arange(1 << fmt.mantissa) * 2.0**-fmt.bias, np.float64)
    return np.array([_of_code(fmt, code) for code in range(1 << fmt.magnitude_bits)])


@lru_cache(maxsize=256)
def _values(fmt: Format) -> NDArray[np.float64]:
    if fmt.bits > MOST_TABLE_BITS:
        raise UsageError(
            f"format {fmt}: a table of all values is made up to {MOST_TABLE_BITS} bits; it has {fmt.bits}"
        )
    magnitudes = _nominal(fmt).copy()
    if not fmt.is_float:
        return np.concatenate(
            [magnitudes, magnitudes - 2.0 ** (fmt.mantissa - fmt.bias)] if fmt.signed else [magnitudes]
        )
    order = np.argsort(magnitudes, kind="stable")
    above = order[len(order) - fmt.specials :]
    magnitudes[above] = np.nan
    if fmt.infinities:
        magnitudes[above[0]] = np.inf
    values = np.concatenate([magnitudes, -magnitudes]) if fmt.signed else magnitudes
    if fmt.nan == "zero":
        values[1 << fmt.magnitude_bits] = np.nan
    values.flags.writeable = False
    return values


@lru_cache(maxsize=256)
def _tapered_spacing(fmt: Format) -> tuple[tuple[int, int], ...]:
    magnitudes = _nominal(fmt)
    exponents, counts = np.unique(np.frexp(magnitudes[magnitudes > 0])[1] - 1, return_counts=True)
    rows = [(int(e), int(n).bit_length() - 1) for e, n in zip(exponents, counts, strict=True)]
    return tuple(row for i, row in enumerate(rows) if i == 0 or row[1] != rows[i - 1][1])


# ---- what cannot be


def check_kinds(where: str, fields: Mapping[str, object]) -> None:
    """Fields of the right kinds, or an error that says what each takes. where: what has them, for the error."""
    for key, value in fields.items():
        if key in FLAGS and not isinstance(value, bool):
            raise UsageError(f"{where}: {key} is {value!r}; say yes or no (in Python True or False)")
        if key in WHOLE and (isinstance(value, bool) or not isinstance(value, int | np.integer)):
            raise UsageError(f"{where}: {key} is {value!r}; it takes a whole number")
        if key in TEXTS and not isinstance(value, str):
            raise UsageError(f"{where}: {key} is {value!r}; it takes text")


def _check_kinds(fmt: Format) -> None:
    given = {key: getattr(fmt, key) for key in (*WHOLE, *FLAGS, *TEXTS)}
    if fmt.bias is None:
        del given["bias"]
    check_kinds(f"format {_provisional(fmt)}", given)
    if fmt.taper and not fmt.name:
        raise UsageError("a format with rows of taper needs a name: no line of text makes it again")


def _provisional(fmt: Format) -> str:
    """What an error calls a format that is not made yet."""
    return fmt.name or f"e{fmt.exponent}m{fmt.mantissa}"


def _check_bits(fmt: Format) -> None:
    said = f"format {_provisional(fmt)}: {fmt.exponent} exponent and {fmt.mantissa} mantissa bits"
    if fmt.exponent < 0 or fmt.mantissa < 0 or fmt.exponent + fmt.mantissa == 0:
        raise UsageError(f"{said}: there must be at least one bit of either, and no less than 0")
    wide = fmt.mantissa > MOST_MANTISSA if fmt.exponent else fmt.mantissa + fmt.signed > MOST_INTEGER
    if (fmt.exponent > MOST_EXPONENT or wide) and fmt.dtype != np.float64:
        raise UsageError(
            f"{said}; values are held in float32, which has {MOST_EXPONENT} and {MOST_MANTISSA} "
            f"(integers have up to {MOST_INTEGER})"
        )


def _check(fmt: Format) -> None:
    name = f"format {fmt.name}"
    if fmt.nan not in NAN_KINDS:
        raise UsageError(f"{name}: nan is {fmt.nan!r}: known are {', '.join(NAN_KINDS)}")
    if fmt.rounding not in MODES:
        raise UsageError(f"{name}: rounding {fmt.rounding!r}: known are {', '.join(MODES)}")
    if fmt.nan == "zero" and not (fmt.signed and fmt.zero):
        raise UsageError(f"{name}: nan=zero takes the code of minus zero, which needs a sign and a zero")
    if fmt.nan == "ieee" and fmt.mantissa == 0:
        raise UsageError(
            f"{name}: nan=ieee needs a mantissa bit; it has none: say nan=one, nan=zero or nan=none"
        )
    if not fmt.zero and fmt.subnormals:
        raise UsageError(f"{name}: zero=no leaves no place for subnormal numbers: say subnormals=no, too")
    if fmt.taper:
        check_rows(fmt.name, fmt.taper, fmt.magnitude_bits)
        _check_spacing(fmt)
    if not fmt.is_integer and fmt.dtype != np.float64:
        _check_range(fmt, name)


def _check_spacing(fmt: Format) -> None:
    """Every power of two from the least to the largest, once, and no more changes than the loops of rounding have."""
    magnitudes = np.sort(_nominal(fmt))[1:]
    exponents = np.frexp(magnitudes)[1] - 1
    holes = np.flatnonzero(np.diff(exponents) > 1)
    if holes.size:
        low, high = exponents[holes[0]], exponents[holes[0] + 1]
        raise UsageError(
            f"format {fmt.name}: it has no number between 2^{low + 1} and 2^{high}: a row is missing"
        )
    if (np.diff(magnitudes) == 0).any():
        twice = magnitudes[:-1][np.diff(magnitudes) == 0][0]
        raise UsageError(f"format {fmt.name}: two codes are {twice:g}: two rows have that exponent")
    if len(fmt.spacing) > MOST_SPACINGS:
        raise UsageError(
            f"format {fmt.name}: its spacing changes {len(fmt.spacing) - 1} times; at most {MOST_SPACINGS - 1}"
        )


def _check_range(fmt: Format, name: str) -> None:
    """Everything that float32 holds exactly can be a format."""
    if not -MOST_BIAS <= fmt.bias <= MOST_BIAS:
        raise UsageError(
            f"{name}: bias is {fmt.bias}; float32, which values are held in, has biases near 127"
        )
    if not fmt.taper and (1 << fmt.magnitude_bits) - fmt.specials <= int(fmt.zero):
        raise UsageError(
            f"{name}: all {1 << fmt.magnitude_bits} codes are zero, infinity or NaN: it has no numbers"
        )
    top, least = np.frexp(float(fmt.max))[1] - 1, np.frexp(fmt.min_subnormal)[1] - 1
    if top > 127 or least < LEAST_POWER:
        raise UsageError(
            f"{name}: with bias {fmt.bias} its numbers go from 2^{least} to 2^{top}; values are held in float32, "
            f"which goes from 2^{LEAST_POWER} to 2^127"
        )
