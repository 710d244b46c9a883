"""Arithmetic and rounding in one pass, over every layout of operands, and the memory that tiles live on."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ascendtile.simulator.precision import dtypes as ty
from ascendtile.simulator.precision.rounding import round_to
from ascendtile.simulator.units import vector
from ascendtile.simulator.units._blocks import MemoryBlock, kept_now
from ascendtile.simulator.units.blocks import LEAST_BYTES, new_tile

from ..support.elementwise import binary

OPERATIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
SHAPES = hnp.mutually_broadcastable_shapes(num_shapes=2, min_dims=1, max_dims=4, max_side=5)


def laid_out(draw: st.DrawFn, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Numbers of all sizes as a plain array, a transposed one, every second element, reversed, or one for all."""
    wide = np.random.default_rng(seed).standard_normal([2 * n for n in shape]).astype(np.float32)
    wide *= np.float32(2) ** np.random.default_rng(seed + 1).integers(-70, 60, wide.shape).astype(np.float32)
    way = draw(st.sampled_from(["plain", "turned", "gaps", "back", "one"]))
    if way == "turned":
        return np.asfortranarray(wide)[tuple(slice(n) for n in shape)]
    if way == "gaps":
        return wide[(*(slice(None, None, 2) for _ in shape),)]
    if way == "back":
        return np.ascontiguousarray(wide[tuple(slice(n) for n in shape)])[..., ::-1]
    if way == "one":
        return np.broadcast_to(wide.reshape(-1)[:1], shape)
    return np.ascontiguousarray(wide[tuple(slice(n) for n in shape)])


@given(st.data(), SHAPES, st.sampled_from(list(OPERATIONS)), st.sampled_from(["fp32", "fp16", "bf16"]))
def test_any_layout_is_numpy_and_then_one_rounding(
    data: st.DataObject, shapes: hnp.BroadcastableShapes, op: str, name: str
) -> None:
    """Also where subnormal values are flushed and large ones saturate, which takes other loops."""
    a, b = (
        data.draw(st.composite(lambda draw, s=s, k=k: laid_out(draw, s, k))())
        for k, s in enumerate(shapes.input_shapes)
    )
    overflow, subnormals = (
        data.draw(st.sampled_from(["inf_nan", "saturate"])),
        data.draw(st.sampled_from(["keep", "flush"])),
    )
    numerics = vector.Numerics(overflow=overflow, fp32_subnormals=subnormals, fp16_subnormals=subnormals)
    dtype = {"fp32": ty.float32, "fp16": ty.float16, "bf16": ty.bfloat16}[name]
    got = binary(op, a, b, dtype, numerics)
    with np.errstate(all="ignore"):
        want = round_to(OPERATIONS[op](a, b), name, overflow=overflow, subnormals=subnormals)
    assert got.shape == shapes.result_shape
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_a_tile_keeps_its_memory_as_long_as_a_view_of_it_lives() -> None:
    """A block that came back is given out again; one that a view still shows is not."""
    tile = new_tile((LEAST_BYTES,), np.float32)
    tile.fill(7)
    view = tile[1::2]
    del tile
    others = [new_tile((LEAST_BYTES,), np.float32) for _ in range(4)]
    for other in others:
        other.fill(1)
    assert (view == 7).all()
    assert view.ctypes.data % 64 == 4


def test_memory_comes_back_and_only_so_much_is_kept() -> None:
    many = [MemoryBlock(1 << 20) for _ in range(100)]
    before = kept_now()
    del many
    assert before < kept_now() <= 32 << 20
    tile = new_tile((1 << 18,), np.float32)
    assert kept_now() <= (32 << 20) - tile.nbytes
