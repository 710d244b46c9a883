"""Rules that Triton has, too: a message has Triton's words for them, which suites match, beside ours."""

from __future__ import annotations

from pathlib import Path

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError
from ascendtile.simulator.ir.types import BlockType, PointerType
from ascendtile.simulator.precision import dtypes as ty

from .sources import compile_body

WORDS = {
    "float bits": ("x = f & 1", "invalid operands of type"),
    "float shift": ("x = f << 1", "unexpected type fp32"),
    "invert a float": ("x = ~f", "unexpected type fp32"),
    "not of a float": ("x = not f", "unexpected type fp32"),
    "not of a float tile": ("x = not tl.zeros((8,), tl.float16)", "unexpected type fp16"),
    "sign of a boolean": ("x = -(n > 1)", "unexpected type int1"),
    "sine of integers": ("x = tl.sin(n)", "Expected dtype fp16/fp32/bf16, but got int32"),
    "upper half of int16": ("x = tl.umulhi(n.to(tl.int16), n)", "Expected dtype"),
    "mixed signs": ("x = n % n.to(tl.uint32)", "because they have different signedness"),
    "slice of a pointer": ("p[10:]", "unsupported tensor index"),
    "axis beyond": ("x = tl.expand_dims(tl.arange(0, 8), 2)", "invalid axis 2"),
    "axis of a scalar": ("x = tl.expand_dims(n, 1)", "invalid axis 1"),
    "one axis twice": (
        "x = tl.expand_dims(tl.arange(0, 8), (0, -3))",
        "duplicate axes, normalized axes = [0, 0]",
    ),
    "axis of the grid": ("x = tl.program_id(20)", "program_id axis must be 0, 1, or 2 but got 20"),
    "programs of an axis": ("x = tl.num_programs(3)", "num_programs axis must be 0, 1, or 2 but got 3"),
    "bits of a float in memory": ("tl.atomic_and(p, f)", "must be signless-integer-like"),
    "order of an atomic": ("tl.atomic_add(p, f, sem='test')", "Memory semantic test not supported"),
    "type without axes": ("x = tl.block_type(tl.float32, [])", "0d block_type is forbidden"),
    "row of a descriptor": (
        "d = tl.make_tensor_descriptor(p, [8, 8], [8, 1], [8, 2])",
        "Descriptor block shape must have at least 16 bytes",
    ),
    "ternary of two types": (
        "x = f if n > 1 else tl.arange(0, 8)",
        "Ternary expression with dynamic condition",
    ),
    "rank of what is stored": (
        "i = tl.arange(0, 8)\ntl.store(p + i[:, None] + i[None, :], i)",
        "Cannot broadcast, rank mismatch: [8], [8, 8]",
    ),
    "size of what is stored": (
        "tl.store(p + tl.arange(0, 1), tl.zeros((8,), tl.float32))",
        "Cannot broadcast, the expanded size of the tensor (1) must match the existing size (8)",
    ),
    "fp8 with integers": (
        "x = tl.zeros((8,), tl.float8e5) + tl.arange(0, 8)",
        "unexpected type fp8e5 and int32",
    ),
    "void": ("x = tl.zeros((8,), tl.void)", "unexpected type void"),
    "if of two types": ("x = f\nif n > 1:\n    x = tl.arange(0, 8)", "Mismatched type for x"),
}


@pytest.mark.parametrize("name", WORDS)
def test_a_rule_of_triton_is_told_in_its_words_too(name: str, tmp_path: Path) -> None:
    body, words = WORDS[name]
    with pytest.raises(CompileError) as caught:
        compile_body(tmp_path, body)
    assert words in caught.value.error_message.split(" (Triton: ")[1]
    assert caught.value.error_message in str(caught.value)
    assert "\n" not in caught.value.error_message


@sim.jit
def chosen(a, b, second):
    if second:
        return b
    else:
        return a


@sim.jit
def write(x, y: tl.const, out, second, MODE: tl.constexpr):
    to = out
    if MODE == "const":
        to = y
    elif MODE == "sum":
        to = out
        tl.atomic_add(y + tl.arange(0, 8), 1.0)
    elif MODE == "if":
        if second:
            to = y
    elif MODE == "ternary":
        to = y if second else out
    elif MODE == "call":
        to = chosen(out, y, second)
    at = tl.arange(0, 8)
    tl.store(to + at, tl.load(x + at) + tl.load(y + at))


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("const", "Cannot store to a constant pointer"),
        ("sum", "Cannot store to a constant pointer"),
        ("if", "Mismatched type for to"),
        ("ternary", "inconsistent type"),
        ("call", "Inconsistent return types"),
    ],
)
def test_a_pointer_annotated_const_is_read_only(mode: str, words: str) -> None:
    x = sim.shape((8,), "float32")
    assert write.time((1,), x, x, x, 1, MODE="").cycles > 0
    with pytest.raises(CompileError, match=words):
        write.time((1,), x, x, x, 1, MODE=mode)


def test_a_type_of_a_tile_has_axes_and_a_const_pointer_is_a_type_of_its_own() -> None:
    assert BlockType(ty.float32, (8,)).numel == 8
    with pytest.raises(ValueError, match="0d block_type is forbidden"):
        BlockType(ty.float32, ())
    assert PointerType(ty.float32, const=True) != PointerType(ty.float32)


@sim.jit(noinline=True)
def apart(x, n):
    return x * n


@sim.jit
def calls_apart(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, apart(tl.load(x + i), 2))


def test_a_function_apart_takes_scalars() -> None:
    x = sim.shape((8,), "float32")
    assert calls_apart.time((1,), x, x, B=1).cycles > 0
    with pytest.raises(CompileError, match="is marked noinline, but was called with non-scalar argument"):
        calls_apart.time((1,), x, x, B=8)
