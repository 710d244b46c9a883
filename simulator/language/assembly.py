"""`inline_asm_elementwise`: instructions of the scalar unit, element by element, as Triton-Ascend compiles them.

Triton-Ascend, docs/zh/triton_api/Inline_Assembly: registers of 64 bits under the constraint `l`, as s64 or f32; each element
is taken out of its tile and put back (third_party/ascend/lib/TritonToLLVM). The instructions are those of MindStudio's
profiler for Atlas A2 (msopprof, ScalarInstrTableA2.h) that compute one register from two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.building import rearrange
from ..ir.building.promotion import KernelError, Operand, describe
from ..ir.building.registry import Builder, builtin, unwrap
from ..ir.operations import binary, by_element, define_all, unary
from ..ir.program import Value
from ..precision import dtypes as ty
from ..precision.dtypes import DType
from ..units import vector
from .creation import element_type

__all__ = ["inline_asm_elementwise"]

ARITHMETIC = {
    "ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "MAX": np.maximum, "MIN": np.minimum,
}  # fmt: skip
BITS = {"AND": np.bitwise_and, "OR": np.bitwise_or, "XOR": np.bitwise_xor}
READ_AS = {"s64": ty.int64, "u64": ty.uint64, "b64": ty.int64, "f32": ty.float32}
GIVEN = ("int8", "int16", "int32", "int64", "fp32")
CLOCK = "SYS_CNT"
INSTRUCTION = re.compile(r"(\w+)(?:\.(\w+))?\s+(.+)")
KNOWN = f"{', '.join(ARITHMETIC)} of .s64, .u64 or .f32, {', '.join(BITS)} of .b64, and MOV (also MOV $0, {CLOCK})"
GPU = (
    "assembly of one GPU cannot run on Ascend: write it with builtins of tl, or take a function of libdevice"
)

define_all(
    {
        f"assembly {name}": binary(
            value=vector.rounded(function), fallback=by_element(f"{name} of inline assembly")
        )
        for name, function in {**ARITHMETIC, **BITS}.items()
    },
    Builder.binary,
)
define_all(
    {
        CLOCK: unary(
            value=vector.rounded(np.zeros_like),
            fallback=by_element(CLOCK),
            coarse=f"{CLOCK} reads 0: values are computed apart from time; see the run's timeline and lines for times",
        )
    },
    Builder.unary,
)


@builtin
def inline_asm_elementwise(
    b: Builder, asm: str, constraints: str, args: Sequence[Operand], dtype: Any, is_pure: bool, pack: int
) -> Any:
    """Instructions of the scalar unit on each element, one or more lines such as "ADD.s64 $0, $1, $2".

    constraints: "=l" for each result, then "l" for each of `args`, which broadcast: int8 to int64 (read as 64 bits) or fp32.
    dtype: of the result, or of each in a tuple. $0 is the first result, the arguments follow. Known are ADD, SUB,
    MUL, MAX and MIN of .s64, .u64 and .f32, AND, OR and XOR of .b64, and MOV; MOV $0, SYS_CNT gives 0 and says so.
    pack: 1. is_pure: without effect. Each element costs a turn of the scalar unit's loop for each line.
    """
    asm, constraints, dtype, pack = (unwrap(x) for x in (asm, constraints, dtype, pack))
    types = [element_type(t) for t in (dtype if isinstance(dtype, tuple | list) else (dtype,))]
    operands = [_operand(b, x) for x in args]
    _check(constraints, len(types), len(operands), pack)
    registers: list[Value | None] = [*[None] * len(types), *_of_one_shape(b, operands)]
    for line in filter(None, (part.strip() for part in re.split(r"[\n;]", asm))):
        _step(b, line, registers, len(types))
    made = [_result(b, k, v, t) for k, (v, t) in enumerate(zip(registers, types, strict=False))]
    return tuple(made) if isinstance(dtype, tuple | list) else made[0]


def _operand(b: Builder, x: Operand) -> Value:
    v = b.to_value(x)
    if v.is_pointer or str(v.dtype) not in GIVEN:
        raise KernelError(f"inline_asm_elementwise takes {', '.join(GIVEN)}, got {describe(v)}; cast it")
    return v


def _check(constraints: str, results: int, operands: int, pack: Any) -> None:
    """The registers of Ascend's assembly: of kind `l`, one for each element."""
    found = [c.strip() for c in constraints.split(",")]
    if found != ["=l"] * results + ["l"] * operands:
        want = ",".join(["=l"] * results + ["l"] * operands)
        raise KernelError(
            f"inline_asm_elementwise: constraints are {constraints!r}; Ascend's assembly has registers of kind l only, and "
            f"{results} result{'s' * (results > 1)} of {operands} argument{'s' * (operands != 1)} need {want!r}; {GPU}"
        )
    if pack != 1:
        raise KernelError(
            f"inline_asm_elementwise: pack is {pack}; it must be 1, as a register holds one element"
        )


def _of_one_shape(b: Builder, operands: list[Value]) -> list[Value]:
    for k, v in enumerate(operands[1:], 1):
        operands[0], operands[k] = b.same_shape(operands[0], v)
    return [b.same_shape(operands[0], v)[1] for v in operands]


def _step(b: Builder, line: str, registers: list[Value | None], results: int) -> None:
    """One instruction."""
    found = INSTRUCTION.fullmatch(line)
    name, kind, operands = found.groups() if found else ("", None, "")
    target, *sources = (x.strip() for x in operands.split(","))
    if (name, kind) == ("MOV", None) and len(sources) == 1:
        made = _clock(b) if sources[0] == CLOCK else _read(line, sources[0], registers)
    elif len(sources) == 2 and kind in _kinds(name):
        x, y = (_as(b, line, _read(line, s, registers), kind) for s in sources)
        made = b.to_value(b.binary(f"assembly {name}", *b.same_shape(x, y)))
    else:
        raise KernelError(
            f"inline_asm_elementwise: {line!r} is none of the instructions of Ascend's scalar unit that are known here: "
            f"{KNOWN}; {GPU}"
        )
    if target not in {f"${k}" for k in range(results)}:
        raise KernelError(f"inline_asm_elementwise: {line!r} writes to {target}, which is no result")
    registers[int(target[1:])] = made


def _kinds(name: str) -> tuple[str, ...]:
    return ("s64", "u64", "f32") if name in ARITHMETIC else ("b64",) if name in BITS else ()


def _clock(b: Builder) -> Value:
    return rearrange.element(b, b.unary(CLOCK, b.full((1,), 0, ty.int64)))


def _read(line: str, source: str, registers: list[Value | None]) -> Value:
    number = source[1:]
    known = source[:1] == "$" and number.isdecimal() and int(number) < len(registers)
    v = registers[int(number)] if known else None
    if v is None:
        what = "was not written before" if known else f"must be $0 to ${len(registers) - 1}"
        raise KernelError(f"inline_asm_elementwise: {line!r} reads {source}, which {what}")
    return v


def _as(b: Builder, line: str, v: Value, kind: str) -> Value:
    """A register as an instruction reads it."""
    if v.dtype.is_floating() != (kind == "f32"):
        raise KernelError(f"inline_asm_elementwise: {line!r} reads {describe(v)} as {kind}; cast it")
    return b.cast(v, READ_AS[kind])


def _result(b: Builder, number: int, v: Value | None, t: DType) -> Value:
    if v is None:
        raise KernelError(f"inline_asm_elementwise: nothing writes to ${number}, which is a result")
    if v.dtype.is_floating() != t.is_floating() or t == ty.int1:
        raise KernelError(f"inline_asm_elementwise: ${number} is {describe(v)}, it cannot be read as {t}")
    return b.cast(v, t)
