"""In which type an operation computes (8; AscendNPU-IR, lib/Dialect/HFusion/Transforms/Normalize.cpp)."""

from __future__ import annotations

from ....ir.program import Op, Value
from ....ir.types import PointerType
from ....precision.dtypes import named

BOOL = "int1"
BYTES = ("int8", "uint8")
INTEGERS = (*BYTES, "int16", "int32", "int64", "uint16", "uint32", "uint64")
IN_FP32 = ("log", "rsqrt", "pow", "log2", "log1p")  # of fp16
SUMS = ("sum", "prod", "cumsum", "cumprod")  # of fp16
DIVISIONS = ("floordiv", "div", "mod")
ORDERS = ("lt", "gt", "le", "ge")
BITS = {BOOL: 1, "bf16": 16, "fp16": 16, "fp32": 32, "int64": 64, "uint64": 64}


def element_of(v: Value) -> str:
    """Name of the type of an element; a tile of pointers holds offsets of 64 bits."""
    return "int64" if isinstance(v.dtype, PointerType) else str(v.dtype)


def bits_of(element: str) -> int:
    """Bits of an element, a bool as one (3.1)."""
    if element in BITS:
        return BITS[element]
    return named(element).bits


def computed_in(op: Op, element: str) -> str:
    """The type of an element-wise operation on elements of a type."""
    if element == "bf16" or (element == "fp16" and op.name in IN_FP32):
        return "fp32"
    if element in BYTES:
        return "fp16"
    if element in ("int16", "int32", "uint32") and op.kind == "binary" and op.name in DIVISIONS:
        return "fp32"
    return element


def compared_in(element: str) -> str:
    """The type in which tiles are compared; unsigned ones by scalar code on 64 bits."""
    if element in ("uint16", "uint32"):
        return "int64"
    return {"bf16": "fp32", **dict.fromkeys(BYTES, "fp16")}.get(element, element)


def summed_in(name: str, element: str) -> str:
    """The type of a reduction or a scan."""
    if element == BOOL:
        return "fp16"
    return "fp32" if element == "bf16" or (element == "fp16" and name in SUMS) else element


# What a cast is compared with 0 in (castSrcTypeToI1ByVCmp).
NUMBERS_OF_BOOLS = {**dict.fromkeys((*BYTES, "int16", "uint16"), "fp16"), "bf16": "fp32"}


def through(source: str, target: str) -> str:
    """The type by way of which a cast goes, "" if straight (NormalizeCastLoweringOp)."""
    if target == BOOL:
        return NUMBERS_OF_BOOLS.get(source, "fp32" if source in INTEGERS else "")
    if source == BOOL:
        return "fp32" if target == "int64" else "fp16" if target in INTEGERS else ""
    if (source == "fp32" and target in BYTES) or (source == "int64" and target in (*BYTES, "int16")):
        return "int32"  # whose low bits are kept
    if source in BYTES and target in ("int16", "int32", "fp32"):
        return "fp16"
    if (source == "int64" and target == "fp16") or (source in INTEGERS and target == "bf16"):
        return "fp32"
    floats = (("int32", "fp16"), ("int8", "int64"), ("int16", "int64"), ("int16", "int32"))
    return "fp32" if (source, target) in floats else ""
