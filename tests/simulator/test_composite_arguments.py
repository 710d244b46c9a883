"""Descriptors made by the host and tuples with tensors reach a kernel as one name."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.triton_shim.tensor_descriptor import TensorDescriptor


@sim.jit
def as_descriptor(x, shape, strides, block: tl.constexpr):
    if isinstance(x, tl.tensor_descriptor):
        return x
    return tl.make_tensor_descriptor(x, shape, strides, block)


@sim.jit
def double(x, out, n0, n1, B: tl.constexpr):
    d = as_descriptor(x, [n0, n1], [n1, 1], [B, B])
    o = as_descriptor(out, [n0, n1], [n1, 1], [B, B])
    at = [tl.program_id(0) * B, tl.program_id(1) * B]
    o.store(at, d.load(at) * 2)


@pytest.mark.parametrize("host", [False, True])
def test_a_host_descriptor_is_one_that_the_kernel_makes(host: bool) -> None:
    x = np.random.default_rng(0).standard_normal((9, 13)).astype(np.float32)
    out = np.zeros_like(x)
    given: Any = [TensorDescriptor.from_tensor(a, [4, 4]) if host else a for a in (x, out)]
    double[(3, 4)](*given, 9, 13, B=4)
    assert np.array_equal(out, x * 2)


@sim.jit
def padded(x, out, B: tl.constexpr):
    tl.store(out + tl.arange(0, B), x.load([tl.program_id(0) + 2]))


def test_a_host_descriptor_pads_and_serves_time_only() -> None:
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    padded[(1,)](TensorDescriptor(x, [4], [1], [4], "nan"), out, B=4)
    assert np.array_equal(out, [2, 3, np.nan, np.nan], equal_nan=True)
    shape = sim.shape(4, "float32")
    assert padded.time((1,), TensorDescriptor(shape, [4], [1], [4]), shape, B=4).time_us > 0


@pytest.mark.extra("torch")
def test_descriptors_of_torch() -> None:
    import torch

    x, out = torch.arange(12.0).reshape(3, 4), torch.zeros(3, 4)
    double[(1, 1)](
        TensorDescriptor.from_tensor(x, [4, 4]), TensorDescriptor.from_tensor(out, [4, 4]), 3, 4, B=4
    )
    assert torch.equal(out, x * 2)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ({"strides": [1, 4]}, "last axis must be contiguous"),
        ({"block_shape": [4]}, "block_shape 1"),
        ({"block_shape": [0, 4]}, "at least 1"),
        ({"padding": "one"}, "'zero' or 'nan'"),
    ],
)
def test_wrong_descriptors(what: dict[str, Any], words: str) -> None:
    fields: dict[str, Any] = {"shape": [4, 4], "strides": [4, 1], "block_shape": [2, 2], **what}
    with pytest.raises(sim.UsageError, match=words):
        TensorDescriptor(np.zeros((4, 4), np.float32), **fields)


@sim.jit
def total(parts, out, n):
    s = n * 0.0
    for p, k in parts:
        s += tl.load(p + k)
    tl.store(out, s)


def test_a_tuple_of_tensors_and_numbers() -> None:
    a, b, out = np.arange(5, dtype=np.float32), np.arange(7, dtype=np.float32) * 10, np.zeros(1, np.float32)
    total[(1,)](((a, 3), (b, 6)), out, 1)
    assert out[0] == 63
    total[(1,)](((a, 1), (b, 2)), out, 1)
    assert out[0] == 21
    with pytest.raises(sim.RunError, match=r"element 5 of 'parts\[0\]\[0\]'"):
        total[(1,)](((a, 5), (b, 2)), out, 1)


class Pair(NamedTuple):
    x: Any
    y: Any


@sim.jit
def swap_pair(p, out):
    tl.store(out, tl.load(p[1]))
    tl.store(out + 1, tl.load(p.x))


def test_a_named_tuple_keeps_its_names() -> None:
    out = np.zeros(2, np.float32)
    swap_pair[(1,)](Pair(np.ones(1, np.float32), np.full(1, 2, np.float32)), out)
    assert out.tolist() == [2, 1]


class Tile(NamedTuple):
    rows: int
    dtype: str
    shape: tuple[int, ...]


@sim.jit
def fill(out, FIRST: tl.constexpr, SECOND: tl.constexpr, VALUE: tl.constexpr):
    tl.store(out + tl.arange(0, FIRST.rows), VALUE)


def test_the_record_lists_the_fields_of_compile_time_named_tuples() -> None:
    out = sim.shape((4,), "float32")
    one, two = Tile(4, "float32", (1, 2)), Tile(2, "float16", (3,))
    alone = fill.time((1,), out, one, None, 3.0)
    assert alone.launches[0].constants == alone.tiling == {"ROWS": 4, "DTYPE": "float32", "VALUE": 3.0}
    assert fill.time((1,), out, one, two, 3.0).tiling == {
        **{"FIRST.ROWS": 4, "FIRST.DTYPE": "float32", "SECOND.ROWS": 2, "SECOND.DTYPE": "float16"},
        "VALUE": 3.0,
    }
