"""Predictions of matrix products: sizes of any kind, tiles cut to them, operands that stay in L1, sums in parts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels.validation import matmul_kernels as kernels
from ascendtile.kernels.validation import predict, read_tables
from ascendtile.kernels.validation.matmuls import USUAL, RowProduct, Way
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.timing.engine.machine import start_cycles

ROWS = {r.id: r for r in read_tables() if r.table == "kernels"}
FREE, TOLD = ROWS["msi-qwen-matmul-5"], ROWS["catlass-11b2"]
SIZE = st.integers(1, 300) | st.sampled_from([1, 16, 17, 1000, 4096])
KINDS = ("fp16,fp16->fp16", "fp32,fp32->fp32", "bf16,bf16->bf16", "int8,int8->bf16")
STATES, TIMES = st.sampled_from(("cold", "warm", "loop")), st.sampled_from(("core", "task"))
LAYOUTS = ("", " a=T", " b=T", " a=T b=T", " a=NZ", " b=NZ", " a=NZT b=NZT")


@pytest.mark.parametrize("op", ["matmul", "grouped_matmul"])
@given(SIZE, SIZE, SIZE, st.sampled_from(KINDS), st.sampled_from(LAYOUTS), STATES, TIMES)
def test_any_sizes_have_a_time_above_the_peak_rates(op, m, n, k, kinds, layout, state, time):
    """In each state of L2, of the task and of its cores."""
    more = " groups=3" if op == "grouped_matmul" else layout
    kinds = kinds if op == "matmul" else KINDS[0]
    tiling = f"cores=20{more} time={time} l2={state}"
    found = predict(replace(FREE, op=op, shapes=f"{m}x{n}x{k}", dtypes=kinds, tiling=tiling))
    assert found.value > found.roofline > 0


@given(st.integers(1, 2000), st.integers(1, 2000), st.integers(1, 2000))
def test_tiles_are_no_larger_than_the_product_in_whole_fractals(m, n, k):
    product = RowProduct(replace(FREE, shapes=f"{m}x{n}x{k}"))
    for tile in USUAL:
        for cut, whole, size in zip(product.cut(tile), tile, (m, n, k), strict=True):
            assert cut == whole or cut - 16 < size <= cut < whole


@pytest.mark.drawn(4)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("keep", ["", "a", "b"])
def test_kernels_of_the_table_multiply(layout, keep):
    """Operands as they lie there, with tiles that are cut, give the product."""
    m, n, k = 40, 50, 70
    g = np.random.default_rng(0)
    a, b = (g.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    how = dict(x.split("=") for x in layout.split())
    out = np.zeros((m, n), np.float32)
    lie = [kernels.PLAIN, kernels.TRANSPOSED, kernels.FRACTALS, kernels.FRACTALS_TRANSPOSED]
    names = ["", "T", "NZ", "NZT"]
    layouts = [names.index(how.get(x, "")) for x in "ab"]
    stored = [stored_as(x, names[at]) for x, at in zip((a, b), layouts, strict=True)]
    named = {"BM": 32, "BN": 32, "BK": 32, "HOW": (*(lie[at] for at in layouts), 16, False, kernels.STORED)}
    given_, s = (*stored, out, np.zeros(64, np.float32), m, n, k), {}
    with sim.device("ascend910b3", compiler="ascendc", time=False):
        if keep:
            kernels.kept_in_l1[(2,)](*given_, k, 2, **named, PIECES=3, KEEP_A=keep == "a", **s)
        else:
            kernels.dealt_out[(2,)](*given_, k, 2, **named, BY_ROWS=layout == "", BACK=layout != " b=T")
    np.testing.assert_array_equal(out, np.float32(a) @ np.float32(b))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 5))
def test_tiles_in_groups_are_each_met_once_and_those_that_follow_each_other_are_near(lines, along, group):
    """Those in groups that come back are in neighbouring places; without it a group begins at the first place again."""
    for back in (False, True):
        met = np.zeros((lines * along, 2), np.int32)
        numbered[(1,)](met, lines, along, group, BACK=back)
        assert sorted(map(tuple, met)) == list(np.ndindex(lines, along))
        for one, other in pairwise(met):
            assert abs(one - other)[1] <= 1 or (not back and other[1] == 0)
            assert one[0] // group == other[0] // group or one[1] in (0, along - 1)


@sim.jit
def numbered(out_ptr, lines, along, group, BACK: tl.constexpr):
    for t in range(0, lines * along):
        line, place = kernels.place_in_groups(t, lines, along, group, BACK)
        tl.store(out_ptr + 2 * t, line)
        tl.store(out_ptr + 2 * t + 1, place)


def test_an_order_that_catlass_names_is_that_of_its_directions():
    """By columns of 3: tiles of 128 and 32 rows take turns, so that all cores have some of the long ones."""
    tiling, found = "cores=20 l1=128x256x256 l0=128x256x64 b=NZ", {}
    for order in ("group=3", "swizzle=3x0", "swizzle=3x1", "swizzle=4x1"):
        row = replace(TOLD, shapes="160x6144x2048", tiling=f"{tiling} {order}")
        found[order] = predict(row).value
    assert found["swizzle=4x1"] < found["swizzle=3x1"] < found["group=3"]
    with pytest.raises(UsageError, match="swizzle=3x2 is not"):
        predict(replace(TOLD, tiling=f"{tiling} swizzle=3x2"))


def stored_as(x, layout):
    """A matrix as it lies in memory; what is behind its edges in fractals is 0."""
    if layout in ("T", "NZT"):
        x = x.T
    if "NZ" not in layout:
        return np.ascontiguousarray(x)
    rows, columns = (-(-n // 16) * 16 for n in x.shape)
    whole = np.zeros((rows, columns), x.dtype)
    whole[: x.shape[0], : x.shape[1]] = x
    return np.ascontiguousarray(whole.reshape(rows, columns // 16, 16).transpose(1, 0, 2))


@pytest.mark.parametrize("sums", ["", " sums=atomic"])
def test_parts_of_a_sum_pay_where_tiles_are_fewer_than_cores(sums):
    row = replace(TOLD, shapes="128x256x16384")
    assert predict(replace(row, tiling=f"{row.tiling} parts=8{sums}")).value < 0.5 * predict(row).value


def test_an_operand_that_stays_saves_its_loads():
    row = replace(TOLD, shapes="128x16384x1024", tiling="cores=20 group=3 l1=128x256x128 l0=128x256x64")
    assert predict(replace(row, tiling=f"{row.tiling} keep=a")).value < 0.8 * predict(row).value


def test_results_of_int8_products_are_scaled_on_the_vector_cores():
    row = ROWS["catlass-52-128x256x1024-base"]
    run = RowProduct(row).run(Way((128, 256, 512)))
    assert {"AIV.V", "AIV.MTE3"} <= {n for n, p in run.pipes.items() if p.busy_cycles}
    assert run.pipes["AIC.FIXP"].busy_cycles > 0


def test_vector_cores_that_start_beside_cube_cores_cost_their_start_and_their_code():
    def us(tiling, **how):
        return predict(replace(TOLD, shapes="20x6144x512", tiling=f"{TOLD.tiling} {tiling}", **how)).value

    product = sim.load_product(TOLD.product)
    per_core, mixed = (product.number(f"launch.cold_{n}") for n in ("code_us_per_core", "mixed_code_us"))
    cores, start = 20, product.cycles_to_us(start_cycles(product))
    for each in (1, 2):
        code = cores * each * per_core + mixed
        assert us(f"aiv={each} time=core") - us("time=core") == pytest.approx(code)
        started = (cores - 1) * each * start
        assert us(f"aiv={each}") - us("") == pytest.approx(code + started)
        assert us(f"aiv={each} code=warm") - us("code=warm") == pytest.approx(started)
    scaled = {"op": "quant_matmul", "dtypes": "int8,int8->bf16"}
    assert us("aiv=2", **scaled) == us("", **scaled)  # they work there, and count anyway
    with pytest.raises(UsageError, match="aiv=3, but 2 Vector cores"):
        us("aiv=3")


def test_a_layout_that_there_is_not_is_refused():
    with pytest.raises(UsageError, match="a=Q is not one of T, NZ, NZT"):
        predict(replace(TOLD, tiling=f"{TOLD.tiling} a=Q"))


def us(op, shapes, tiling="cores=20", dtypes="fp16"):
    return predict(replace(FREE, op=op, shapes=shapes, tiling=tiling, dtypes=dtypes)).value


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 9))
def test_tiles_in_diagonals_are_each_met_once_and_a_diagonal_shares_no_line_and_no_place(lines, along, block):
    met = np.zeros((lines * along, 2), np.int32)
    in_diagonals[(1,)](met, lines, along, BLOCK=block)
    assert sorted(map(tuple, met)) == list(np.ndindex(lines, along))
    assert [tuple(x) for x in met // block] == sorted(tuple(x) for x in met // block)
    first = met[: min(lines, along, block)]
    assert len(set(first[:, 0])) == len(set(first[:, 1])) == len(first)


@sim.jit
def in_diagonals(out_ptr, lines, along, BLOCK: tl.constexpr):
    for t in range(0, lines * along):
        line, place = kernels.place_in_diagonals(t, lines, along, BLOCK)
        tl.store(out_ptr + 2 * t, line)
        tl.store(out_ptr + 2 * t + 1, place)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("n", "k"), [(2048, 1024), (4096, 512), (1000, 500)])
def test_groups_take_about_what_their_products_take(n, k):
    """One group as long as its product; several no longer than as many products one after the other."""
    one = us("matmul", f"2048x{n}x{k}")
    assert us("grouped_matmul", f"2048x{n}x{k}", "cores=20 groups=1") == pytest.approx(one, rel=0.1)
    assert 2 * one < us("grouped_matmul", f"8192x{n}x{k}", "cores=20 groups=4") < 4 * one


def test_sums_of_int8_products_that_stay_int32_are_not_scaled():
    row = replace(FREE, shapes="1024x512x512", tiling="cores=20", dtypes="int8,int8->int32")
    run = RowProduct(row).run(Way((128, 256, 512)))
    assert not [n for n in run.pipes if n.startswith("AIV")]
    assert "scaled" not in predict(row).note
    assert predict(row).value < us("matmul", row.shapes, dtypes="fp16,fp16->fp32")


def test_no_product_takes_less_than_a_tiny_one_on_the_same_cores():
    """But for loads of single lines of 32 bytes, which take a little longer than longer ones."""
    times = [us("matmul", f"{n}x{n}x{n}") for n in (1, 16, 64, 128)]
    assert all(larger > 0.99 * tiny for tiny, larger in pairwise(times))


def test_more_parts_than_rows_are_refused():
    row = replace(TOLD, shapes="10x1024x1024")
    assert predict(replace(row, tiling=f"{row.tiling} part=10")).value > 0
    with pytest.raises(UsageError, match="part=11, but there are 10 rows"):
        predict(replace(row, tiling=f"{row.tiling} part=11"))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("op", "shapes", "tiling"), [
    ("grouped_matmul", "140000x128x128", "groups=140000"),
    ("matmul", "65536x33000x16", "l1=128x256x16"),
    ("matmul", "33000x65536x16", "l1=128x256x16 swizzle=3x1"),
    ("matmul", "65536x33000x16", "l1=128x256x16 split=20x1 single=3328x33000"),
])  # fmt: skip
def test_tensors_of_more_elements_than_int32_counts_have_addresses(op, shapes, tiling):
    found = predict(replace(FREE, op=op, shapes=shapes, tiling=f"cores=20 {tiling}", dtypes="fp16"))
    assert found.value > found.roofline > 0
