"""Element types of tiles, and Triton's promotion rules.

A `DType` names what is *stored*; `DType.host_dtype` says in which numpy dtype the simulator holds its values while a kernel
runs: floats up to FP32 are held in float32 arrays, always on the grid of their own format.

Every number format is an element type, too: `of_format("hif8")`. Those beside the vendor's own (`ALL`) are foreign: memory
holds their codes, and units that do not have them compute as they do with BF16, in FP32, rounded once.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import UsageError
from .formats import Format, get_format


@dataclass(frozen=True, eq=False)
class DType:
    """One element type. `bits` is the width in a buffer; `kind` is one of float, int, uint, bool.

    There is one object of each, those of this module: types are compared as objects. given: the format of one that is none
    of this module's names.
    """

    name: str
    kind: str
    bits: int
    given: Format | None = None

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        """As source that imports Triton names it."""
        return f"triton.language.{self.long_name}"

    def __reduce__(self) -> tuple[Callable[..., DType], tuple[str | Format]]:
        return (named, (self.name,)) if self.given is None else (of_format, (self.given,))

    @functools.cached_property
    def format(self) -> Format:
        """The format of its values."""
        return self.given or get_format(self.name)

    @functools.cached_property
    def is_foreign(self) -> bool:
        """Whether it is none of the vendor's element types, but a format that memory holds as codes."""
        return self not in ALL

    @property
    def long_name(self) -> str:
        """Its name in the language: float16 for "fp16"."""
        return re.sub("^(b?)f(p?)(?=[0-9])", r"\1float", self.name)

    @property
    def short_name(self) -> str:
        """Its name in the signature of a launch: i32, u8, i1; floats have no other."""
        return self.name.replace("uint", "u").replace("int", "i") if self.is_int() else self.name

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory (a bool, and what has less than eight bits, takes one)."""
        return max(1, self.bits // 8)

    @functools.cached_property
    def storage(self) -> np.dtype:
        """numpy dtype of the element in global memory."""
        return self.format.dtype

    @functools.cached_property
    def host_dtype(self) -> np.dtype:
        """numpy dtype in which a running kernel holds values of this type."""
        return _HOST.get(self.name) or np.dtype(np.float32 if self.is_floating() else np.int8)

    @functools.cached_property
    def is_coded(self) -> bool:
        """Whether memory holds codes that a running kernel does not: they are decoded and encoded on the way."""
        return self.is_foreign and self.storage != self.host_dtype

    @property
    def codes(self) -> DType:
        """The unsigned integers that the codes of a format are."""
        return integer(8 * self.itemsize, signed=False)

    @property
    def primitive_bitwidth(self) -> int:
        return self.bits

    int_bitwidth = primitive_bitwidth

    @property
    def scalar(self) -> DType:
        return self

    def is_floating(self) -> bool:
        return self.kind == "float"

    def is_int(self) -> bool:
        return self.kind in ("int", "uint", "bool")

    def is_bool(self) -> bool:
        return self.kind == "bool"

    def is_int_signed(self) -> bool:
        return self.kind == "int"

    def is_int_unsigned(self) -> bool:
        return self.kind == "uint"

    def is_fp8(self) -> bool:
        return self.kind == "float" and self.bits == 8

    def is_standard_floating(self) -> bool:
        return self.kind == "float" and self.bits >= 16

    def is_ptr(self) -> bool:
        return False

    def is_block(self) -> bool:
        return False

    @property
    def fp_mantissa_width(self) -> int:
        """Stored mantissa bits of a floating type."""
        return self.format.mantissa

    @property
    def exponent_bias(self) -> int:
        """What a floating type's exponent is stored with."""
        return self.format.bias


def _is_named(name: str) -> Callable[[DType], bool]:
    return lambda self: self.name == name


_FP8 = ("fp8e4nv", "fp8e4b8", "fp8e4b15", "fp8e5", "fp8e5b16")
_INTEGERS = ("int1", *(f"{k}{n}" for k in ("int", "uint") for n in (8, 16, 32, 64)))
for _name in (*_INTEGERS, "fp16", "bf16", "fp32", "fp64", *_FP8):
    setattr(DType, f"is_{_name}", _is_named(_name))  # is_int64() and the like


int1 = DType("int1", "bool", 1)
int8 = DType("int8", "int", 8)
int16 = DType("int16", "int", 16)
int32 = DType("int32", "int", 32)
int64 = DType("int64", "int", 64)
uint8 = DType("uint8", "uint", 8)
uint16 = DType("uint16", "uint", 16)
uint32 = DType("uint32", "uint", 32)
uint64 = DType("uint64", "uint", 64)
float16 = DType("fp16", "float", 16)
bfloat16 = DType("bf16", "float", 16)
float32 = DType("fp32", "float", 32)
float64 = DType("fp64", "float", 64)
# Triton's names of formats that no product here has.
float8e4nv = DType("fp8e4nv", "float", 8)
float8e4b8 = DType("fp8e4b8", "float", 8)
float8e4b15 = DType("fp8e4b15", "float", 8)
float8e5 = DType("fp8e5", "float", 8)
float8e5b16 = DType("fp8e5b16", "float", 8)
void = DType("void", "void", 0)

ALL = (int1, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64)

EVERY = {t.name: t for t in (*ALL, float8e4nv, float8e4b8, float8e4b15, float8e5, float8e5b16, void)}
BY_SHORT_NAME = {t.short_name: t for t in EVERY.values()}
_HOST = {t.name: t.format.dtype for t in ALL if t.name not in ("fp16", "bf16")}
_FROM_STORAGE = {t.storage: t for t in ALL}
_BY_NAME = {name: t for t in ALL for f in [t.format] for name in (t.name, f.name, *f.aliases)}
_OF_FORMAT: dict[str, DType] = {}  # by the format's name; those that were asked for, and Triton's


def of_format(which: object) -> DType:
    """The element type of a number format: a `Format`, or what `get_format` finds one by. Raises `UsageError`."""
    fmt = get_format(which)
    if not _OF_FORMAT:
        _OF_FORMAT.update({t.format.name: t for t in EVERY.values() if t is not void})
    found = _OF_FORMAT.get(fmt.name)
    if found is None:
        kind = "float" if not fmt.is_integer else "int" if fmt.signed else "uint"
        width = next(n for n in (4, 8, 16, 32) if fmt.bits <= n)
        found = _OF_FORMAT[fmt.name] = DType(fmt.name, kind, width, fmt)
    return found


def element_type(which: object) -> DType:
    """An element type for kernels: `sim.element_type("hif8")`.

    which: a name of an element type or of a number format, one line that describes a format, a `Format`, a numpy,
    ml_dtypes or torch dtype. Raises `UsageError`.
    """
    if isinstance(which, DType):
        return which
    return EVERY.get(which) or of_format(which) if isinstance(which, str) else of_format(which)


def named(name: str) -> DType:
    """The element type of that name, which was made before."""
    return EVERY.get(name) or _OF_FORMAT[name]


def from_name(name: str) -> DType | None:
    """The element type of that name ("float16" and "fp16" are one), or None."""
    return _BY_NAME.get(name)


def types_of_kind(*kinds: str) -> list[str]:
    """Names of the types of these kinds, those of 8-bit floats first."""
    return sorted((n for n, t in EVERY.items() if t.kind in kinds), key=lambda n: not n.startswith("fp8"))


def is_floating(name: str) -> bool:
    """Whether that name is one of a floating type."""
    t = from_name(name)
    return t is not None and t.is_floating()


def integer(bits: int, signed: bool) -> DType:
    """The integer type of that width; `KeyError` if there is none."""
    return _BY_NAME[f"{'int' if signed else 'uint'}{bits}"]


def from_numpy(dtype: np.dtype) -> DType | None:
    """The element type stored as that numpy dtype, or None."""
    dtype = np.dtype(dtype)
    found = _FROM_STORAGE.get(dtype) or _OF_FORMAT.get(dtype.names[0] if dtype.names else "")
    if found is not None:
        return found if found.storage == dtype else None
    try:
        found = of_format(dtype)
    except UsageError:
        return None
    return found if found.storage == dtype else None  # another byte order has the same name


def of_constant(value: bool | int | float) -> DType:
    """Type of a Python number in a kernel: int1, the first of int32, uint32, int64, uint64 that holds it, fp32."""
    if not isinstance(value, bool | float) and 2**31 <= value < 2**32:
        return uint32
    return of_argument(value)


def of_argument(value: bool | int | float) -> DType:
    """Type of a Python number given to a kernel at its launch, as Triton chooses it; integers up to 64 bits."""
    if isinstance(value, bool):
        return int1
    if isinstance(value, float):
        return float32
    if -(2**31) <= value < 2**31:
        return int32
    if not -(2**63) <= value < 2**64:
        raise OverflowError(f"the integer {value} does not fit into 64 bits")
    return int64 if value < 2**63 else uint64


_KIND_RANK = {"bool": 0, "int": 1, "uint": 1, "float": 2}


def _promote_ints(a: DType, b: DType) -> DType:
    """The wider wins; of equal width the unsigned one. A bool is an unsigned integer of one bit."""
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return b if a.kind == "int" else a


def promote(a: DType, b: DType, division: bool = False) -> DType:
    """Type in which an operation on `a` and `b` is computed (Triton's rules for two tensors).

    `division` is for / and %, which widen halves to fp32.
    """
    if a.kind != "float" and b.kind != "float":
        return _promote_ints(a, b)
    if float64 in (a, b):
        return float64
    if float32 in (a, b):
        return float32
    if float16 in (a, b):
        return float32 if division else float16
    if bfloat16 in (a, b):
        return bfloat16 if a is b and not division else float32
    return a if a is b else _promote_foreign(a, b)


def _promote_foreign(a: DType, b: DType) -> DType:
    """Triton's rule for two types of FP8, and for others like them: FP16, where that holds both."""
    if a.kind == b.kind == "float":
        return float16 if max(a.bits, b.bits) <= 8 else float32
    integer = a if a.kind != "float" else b
    raise TypeError(f"{a} and {b} have no common type; cast the {integer} operand")


def promote_with_constant(tensor: DType, value: bool | int | float, division: bool = False) -> DType:
    """Type of `tensor op python_number`: the number takes the tensor's type unless its kind is higher."""
    const = of_constant(value)
    if _KIND_RANK[const.kind] > _KIND_RANK[tensor.kind]:
        return promote(tensor, const, division)
    return promote(tensor, tensor, division)


def limits(t: DType) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    return (-(2 ** (t.bits - 1)), 2 ** (t.bits - 1) - 1) if t.kind == "int" else (0, 2**t.bits - 1)


def poison(t: DType) -> float | int:
    """What stands for an element that nobody gave a value: NaN, or the smallest integer."""
    if t.is_int():
        return limits(t)[0]
    return np.nan if t.format.nan != "none" else t.format.min


def wrapped(value: int, t: DType) -> int:
    """`value` as an integer of that type: what does not fit wraps, as in the register."""
    value &= (1 << t.bits) - 1
    return value - (1 << t.bits) if t.kind == "int" and value >> (t.bits - 1) else value
