"""Index tiles and box masks: every operation on the symbolic form gives the elements that dense arithmetic gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.interpreter import symbolic
from ascendtile.simulator.interpreter.merging import merge
from ascendtile.simulator.interpreter.scalars import stretch_box
from ascendtile.simulator.interpreter.values import Affine, Box, take

PROGRAMS = 3
shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
small = st.integers(-9, 9)
edges = st.sampled_from([-(2**63), -(2**31), -1, 0, 1, 5, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1])


def per_program(numbers: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    """A number that is the same in all programs, or one for each."""
    arrays = st.lists(numbers, min_size=PROGRAMS, max_size=PROGRAMS).map(lambda x: np.array(x, np.int64))
    return numbers | arrays


@st.composite
def affines(
    draw: Callable[[Any], Any], shape: tuple[int, ...], numbers: Any = small, flat: bool = False
) -> Affine:
    strides = tuple(0 if flat else draw(per_program(numbers)) for _ in shape)
    return Affine(draw(per_program(numbers)), strides, shape)


@st.composite
def boxes(draw: Callable[[Any], Any], shape: tuple[int, ...]) -> Box:
    ends = per_program(st.integers(-3, 6))
    return Box(tuple(draw(ends) for _ in shape), tuple(draw(ends) for _ in shape), shape)


def full(x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x, (PROGRAMS, *x.shape[1:]))


def same(symbolic_tile: Affine | Box, dense: np.ndarray) -> None:
    mine = symbolic_tile.elements() if isinstance(symbolic_tile, Affine) else symbolic_tile.dense()
    np.testing.assert_array_equal(full(mine), full(dense))


OPERATIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


@given(st.data(), shapes, st.sampled_from(sorted(OPERATIONS)), st.sampled_from([small, edges]))
def test_arithmetic_is_exact_modulo_2_64(data: Any, shape: Any, name: str, numbers: Any) -> None:
    a = data.draw(affines(shape, numbers))
    b = data.draw(affines(shape, numbers, flat=name == "mul"))
    if data.draw(st.booleans()):
        a, b = b, a
    out = symbolic.affine_binary(name, a, b)
    assert out is not None
    same(out, OPERATIONS[name](full(a.elements()), full(b.elements())))


@given(st.data(), shapes)
def test_a_product_of_two_tiles_that_vary_leaves_the_form(data: Any, shape: Any) -> None:
    varying = Affine(0, (1,) * len(shape), shape)
    assert symbolic.affine_binary("mul", varying, varying) is None
    assert symbolic.affine_binary("floordiv", varying, Affine(2, (0,) * len(shape), shape)) is None


@given(st.data(), shapes, st.sampled_from(sorted(symbolic.COMPARE)))
def test_comparison_gives_the_box_of_the_true_elements(data: Any, shape: Any, name: str) -> None:
    a, b = data.draw(affines(shape)), data.draw(affines(shape))
    out = symbolic.affine_compare(name, a, b)
    if out is not None:
        same(out, symbolic.COMPARE[name](full(a.elements()), full(b.elements())))


@given(
    st.data(), st.integers(1, 9), small, per_program(small), st.sampled_from(["lt", "le", "gt", "ge", "eq"])
)
def test_an_index_against_a_number_is_always_a_box(data: Any, n: int, s: int, base: Any, name: str) -> None:
    a, b = Affine(base, (s,), (n,)), data.draw(affines((n,), flat=True))
    out = symbolic.affine_compare(name, a, b)
    assert out is not None
    same(out, symbolic.COMPARE[name](full(a.elements()), full(b.elements())))


@given(st.data(), shapes)
def test_intersection_of_boxes(data: Any, shape: Any) -> None:
    a, b = data.draw(boxes(shape)), data.draw(boxes(shape))
    same(symbolic.box_and(a, b), full(a.dense()) & full(b.dense()))


@given(st.data(), shapes)
def test_counts_of_a_box(data: Any, shape: Any) -> None:
    box = data.draw(boxes(shape))
    count = np.ones(PROGRAMS, np.int64)
    for c in box.counts():
        count = count * c
    np.testing.assert_array_equal(count, full(box.dense()).reshape(PROGRAMS, -1).sum(axis=1))


@given(st.data(), shapes)
def test_a_stretched_box_repeats_what_held_for_its_only_index(data: Any, shape: Any) -> None:
    narrow = tuple(1 if data.draw(st.booleans()) else n for n in shape)
    box = data.draw(boxes(narrow))
    same(stretch_box(box, narrow, shape), np.broadcast_to(full(box.dense()), (PROGRAMS, *shape)))


@given(per_program(st.booleans().map(int)), shapes)
def test_a_mask_of_one_truth_value_per_program(truth: Any, shape: Any) -> None:
    truth = truth.astype(bool) if isinstance(truth, np.ndarray) else bool(truth)
    column = np.reshape(truth, (-1, *(1,) * len(shape)))
    same(symbolic.constant_box(truth, shape), np.broadcast_to(column, (PROGRAMS, *shape)))


@given(st.data(), shapes, st.lists(st.integers(0, PROGRAMS - 1), min_size=1, unique=True).map(sorted))
def test_a_subset_of_the_programs(data: Any, shape: Any, index: list[int]) -> None:
    for x in (data.draw(affines(shape)), data.draw(boxes(shape))):
        dense = full(x.elements() if isinstance(x, Affine) else x.dense())[index]
        part = take(x, np.array(index))
        mine = part.elements() if isinstance(part, Affine) else part.dense()
        np.testing.assert_array_equal(np.broadcast_to(mine, dense.shape), dense)


@given(st.data(), shapes, st.booleans(), st.booleans())
def test_merging_groups_of_programs(data: Any, shape: Any, of_boxes: bool, one_dense: bool) -> None:
    groups = [np.array([0, 2]), np.array([1])]
    parts: list[Any] = []
    want = np.zeros((PROGRAMS, *shape), bool if of_boxes else np.int64)
    for index in groups:
        x = take(data.draw(boxes(shape) if of_boxes else affines(shape)), index)
        dense = x.elements() if isinstance(x, Affine) else x.dense()
        want[index] = dense
        parts.append((index, np.array(dense) if one_dense and len(index) == 1 else x))
    if data.draw(st.booleans()):
        parts.reverse()
    out = merge(parts, PROGRAMS)
    mine = out.elements() if isinstance(out, Affine) else out.dense() if isinstance(out, Box) else out
    np.testing.assert_array_equal(full(mine), want)


@given(st.data(), shapes, st.sampled_from([small, edges]), st.sampled_from([8, 16, 32, 64]), st.booleans())
def test_inside_tells_whether_an_element_would_wrap(
    data: Any, shape: Any, numbers: Any, bits: int, signed: bool
) -> None:
    a = data.draw(affines(shape, numbers))
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    exact = np.asarray(take_object(a.base)).reshape(-1, *(1,) * len(shape))
    for axis, (s, n) in enumerate(zip(a.strides, shape, strict=True)):
        steps = np.arange(n).astype(object).reshape(n, *(1,) * (len(shape) - axis - 1))
        exact = exact + np.asarray(take_object(s)).reshape(-1, *(1,) * len(shape)) * steps
    if symbolic.inside(a, low, high):
        assert exact.min() >= low
        assert exact.max() <= high
    elif not any(isinstance(x, np.ndarray) for x in (a.base, *a.strides)):
        assert exact.min() < low or exact.max() > high  # per-program numbers are judged by their extremes


def take_object(x: Any) -> Any:
    return x.astype(object) if isinstance(x, np.ndarray) else np.array([x], object)


TYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32]
SCALAR_OPERATIONS: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "mod": np.fmod,
    "floordiv": lambda a, b: np.array([int(abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1))
                                       & (2**64 - 1) for x, y in zip(a, b, strict=True)], np.uint64).astype(a.dtype),
}  # fmt: skip


@given(
    st.data(),
    st.sampled_from(TYPES),
    st.sampled_from(sorted(SCALAR_OPERATIONS)),
    st.booleans(),
    st.booleans(),
)
def test_scalars_wrap_as_the_register_of_their_type(
    data: Any, dtype: Any, name: str, uniform_a: bool, uniform_b: bool
) -> None:
    info = np.iinfo(dtype)
    special = st.sampled_from([int(info.min), int(info.max), 0, 1, int(info.max) // 2])
    numbers = st.integers(int(info.min), int(info.max)) | special
    a = np.array(
        [data.draw(numbers)] * PROGRAMS if uniform_a else [data.draw(numbers) for _ in range(PROGRAMS)]
    )
    b = np.array(
        [data.draw(numbers)] * PROGRAMS if uniform_b else [data.draw(numbers) for _ in range(PROGRAMS)]
    )
    if name in ("floordiv", "mod"):
        b = np.where(b == 0, 1, b)
    if name in ("shl", "shr"):
        b = np.abs(b) % 70
    with np.errstate(all="ignore"):
        want = SCALAR_OPERATIONS[name](a.astype(dtype), b.astype(dtype))
    x, y = (int(v[0]) if uniform else v for v, uniform in ((a, uniform_a), (b, uniform_b)))
    out = symbolic.INTEGER[name](x, y)
    got = symbolic.fit_in(out, info.bits, info.kind == "i")
    np.testing.assert_array_equal(np.broadcast_to(np.asarray(got), PROGRAMS), want.astype(np.int64))
