"""Which rounding modes a cast instruction of the Vector unit has, by architecture and pair of types.

    cast_modes(product, "fp32", "fp16")     # ("NONE", "ODD") on 910A and 310P, all seven on 910B, 910C and 310B

Source: Ascend C, Cast; Intrinsic_vconv entries of the platform configuration files of CANN 8.1.RC1 (documented).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from ..errors import UsageError
from .formats import get_format

_ALL = ("RINT", "FLOOR", "CEIL", "ROUND", "TRUNC", "ODD", "NONE")
_EXACT = ("NONE",)
_NO_BF16 = (1001, 2002)  # 910A, 310P

_COMMON: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType({("fp16", "fp32"): _EXACT})
_OLD = MappingProxyType({**_COMMON, ("fp32", "fp16"): ("NONE", "ODD")})
_NEW = MappingProxyType(
    {
        **_COMMON,
        ("fp32", "fp16"): _ALL,
        ("fp32", "bf16"): ("RINT", "FLOOR", "CEIL", "ROUND", "TRUNC"),
        ("bf16", "fp32"): _EXACT,
    }
)


class HasArchitecture(Protocol):
    """What this module needs of a Product."""

    @property
    def name(self) -> str:
        """Name in messages."""

    def integer(self, key: str) -> int:
        """A figure that is a whole number."""


def cast_modes(product: HasArchitecture, source: str, target: str) -> tuple[str, ...]:
    """Modes of the cast from `source` to `target` (fp16, bf16, fp32); empty where no instruction does it in one step."""
    pair = get_format(source).name, get_format(target).name
    table = _OLD if product.integer("product.npu_arch") in _NO_BF16 else _NEW
    return table.get(pair, ())


def check_cast(product: HasArchitecture, source: str, target: str, mode: str) -> None:
    """Raise `UsageError` unless the product has that cast in that mode."""
    have = cast_modes(product, source, target)
    if mode in have:
        return
    names = f"{get_format(source)} to {get_format(target)}"
    if not have:
        through = (
            "; go through fp32"
            if {get_format(source).name, get_format(target).name} == {"fp16", "bf16"}
            else ""
        )
        raise UsageError(f"{product.name} has no cast from {names}{through}")
    raise UsageError(f"{product.name} casts {names} with {', '.join(have)}, not {mode}")
