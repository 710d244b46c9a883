"""What is varied of a launch, what it leaves behind, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.launch import prepare
from ascendtile.simulator.observers import watch_calls
from ascendtile.simulator.orders.varying import (
    ANY_CORES,
    ANY_ORDER,
    Asked,
    _Varied,
    _works_alike,
    compare_launch,
)
from ascendtile.simulator.orders.verdict import DIFFERS, NOT_PROVEN, SAME

from . import meeting, others, sums


def call_of(kernel, grid, **given):
    """A launch that can be made again."""
    with sim.device(explain=True):
        return prepare(kernel, grid, (), given)


@sim.jit
def by_a_table(x, table, y, n, B: tl.constexpr):
    t = tl.load(table + tl.arange(0, B))
    for first in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        at = first + tl.arange(0, B)
        tl.store(y + at, tl.load(x + at) * t)


def rows(count=4, n=64):
    return np.random.default_rng(n).standard_normal((count, n), np.float32)


def row_sums(n=64, kernel=sums.chunks_one_by_one, grid=(4,), **constants):
    x = rows(n=n)
    return call_of(kernel, grid, x=x, out=np.zeros(4, np.float32), n=n, **(constants or {"BLOCK": 64}))


def test_each_axis_has_its_configurations_and_its_laws():
    verdict = compare_launch(row_sums(128), tries=1)
    assert verdict.configurations == ["as launched", "batch=1", "batch=2", "BLOCK=128", "BLOCK=32"]
    assert verdict.laws == [ANY_CORES, ANY_ORDER]
    assert verdict.differing[0] == ("as launched", "BLOCK=32")
    assert verdict.advice == ["fix BLOCK for all launches: it cuts a sum, or the order of one"]


def test_more_programs_that_each_load_a_table_do_the_same_work():
    shapes = {
        "x": sim.shape(512, "float32"),
        "table": sim.shape(64, "float32"),
        "y": sim.shape(512, "float32"),
    }
    few, many = (call_of(by_a_table, (programs,), **shapes, n=512, B=64) for programs in (2, 4))
    assert _works_alike(few, many)
    assert not _works_alike(few, call_of(by_a_table, (2,), **shapes, n=256, B=64))


def test_the_batch_is_cut_from_tensors_numbers_and_grid():
    call = call_of(meeting.persistent, (2,), x=rows(), out=np.zeros(4, np.float32), rows=4, n=64, BLOCK=64)
    verdict = compare_launch(call, Asked(["batch"], batch=[1, 3]))
    assert verdict.configurations == ["as launched", "rows=1", "rows=3"]
    assert verdict.same


def square(**more):
    return call_of(
        others.scaled_by_mean,
        (4,),
        x=rows(4, 4),
        gain=rows(1, 4)[0],
        out=np.zeros((4, 4), np.float32),
        n=4,
        **more,
    )


def test_the_length_of_rows_is_not_taken_for_the_batch():
    with pytest.raises(
        UsageError, match=r"4 is the length of the first axis and of a later one, .* \(--batch-name"
    ):
        compare_launch(square(), Asked(["batch"], batch=[2]))
    verdict = compare_launch(square(), Asked(["batch"], batch_name="grid"))
    assert verdict.configurations == ["as launched", "batch=1", "batch=2"]
    assert verdict.same
    named = compare_launch(square(), Asked(["batch"], batch=[2], batch_name="n"), tries=4)
    assert named.kind == DIFFERS  # n really is the number of columns here, but that was said


def test_a_grid_of_blocks_is_no_batch():
    x = rows(1, 256)[0]
    call = call_of(others.elementwise, (4,), x=x, out=np.zeros(256, np.float32), n=256, BLOCK=64)
    with pytest.raises(UsageError, match="the grid has 4 programs, and no input and output are as long"):
        compare_launch(call, Asked(["batch"], batch_name="grid"))


def test_a_maximum_in_memory_has_no_order():
    """The Vector unit flushes what it compares, memory does not: both are one maximum."""
    call = call_of(
        meeting.atomic_largest, (4,), x=rows(1, 256)[0], out=np.zeros(1, np.float32), n=256, BLOCK=64
    )
    verdict = compare_launch(call, Asked(["tiling", "order"], tilings={"BLOCK": [128]}, seeds=2))
    assert verdict.configurations[1] == "BLOCK=128, grid 2"
    assert verdict.same


def test_a_size_of_zero_is_compared_where_another_is_asked_for():
    call = call_of(others.either, (1,), x=rows(1, 16)[0], out=np.zeros(16, np.float32), HOW=0)
    assert compare_launch(call, Asked(["tiling"], tilings={"HOW": [1]}), tries=4).kind == DIFFERS
    with pytest.raises(UsageError, match="there is one configuration to compare"):
        compare_launch(call, Asked(["tiling"]))


def test_a_size_that_cuts_no_tile_is_run_where_the_work_goes_by_data():
    call = call_of(others.branching, (1,), x=rows(1, 16)[0], out=np.zeros(16, np.float32), HOW=1)
    verdict = compare_launch(call, Asked(["tiling"], tilings={"HOW": [2]}), tries=4)
    assert verdict.configurations == ["as launched", "HOW=2"]
    assert verdict.kind != SAME


def test_integers_are_drawn_up_to_the_ends_of_their_type():
    x = np.arange(16, dtype=np.int8)
    call = call_of(others.sum_of_bytes, (1,), x=x, out=np.zeros(16, np.int32), HOW=1)
    assert (
        compare_launch(call, Asked(["tiling"], tilings={"HOW": [2]})).kind == DIFFERS
    )  # 127 + 127 wraps in one


def test_only_sizes_that_matter_are_advised():
    advice = _Varied(row_sums(128), Asked())._advice
    assert advice([("as launched", "batch=1"), ("batch=1", "BLOCK=32")]) == []  # BLOCK is as launched
    assert advice([("as launched", "BLOCK=32")])[0].startswith("fix BLOCK for all launches")


def test_a_grid_that_is_a_function_follows_the_batch_and_the_tile():
    call = call_of(
        others.elementwise, lambda meta: (-(-meta["n"] // meta["BLOCK"]),), x=rows(1, 256)[0], out=np.zeros(256, np.float32),
        n=256, BLOCK=64,
    )  # fmt: skip
    verdict = compare_launch(call, Asked(["batch", "tiling"]))
    assert [c.partition(",")[0] for c in verdict.configurations] == [
        "as launched",
        "n=1",
        "n=128",
        "BLOCK=128",
        "BLOCK=32",
    ]
    assert verdict.same


def test_programs_that_go_on_by_their_number_are_more_and_fewer():
    call = call_of(
        meeting.persistent_total, (2,), x=rows(), out=np.zeros(1, np.float32), rows=4, n=64, BLOCK=64
    )
    verdict = compare_launch(call, Asked(["cores"]))
    assert verdict.configurations == ["as launched", "grid 1", "grid 3"]
    assert verdict.kind == DIFFERS
    assert verdict.advice == ["fix the number of programs: it decides which of them adds what"]


def test_orders_are_drawn_where_the_result_depends_on_one():
    call = call_of(meeting.atomic_sum, (4,), x=rows(1, 256), out=np.zeros(1, np.float32), n=256, BLOCK=64)
    verdict = compare_launch(call, Asked(["order"], seeds=2))
    assert verdict.configurations == ["as launched", "order of seed 0", "order of seed 1"]
    assert verdict.kind == DIFFERS
    assert "meeting.py" in verdict.advice[0]


def test_products_with_the_same_numerics_are_one():
    verdict = compare_launch(row_sums(), Asked(["product"]))
    assert len(verdict.configurations) < 4
    assert verdict.kind == DIFFERS  # one of them stops at the largest finite value
    assert {"inf", "-inf"} & {o.value for o in verdict.counterexample.orders}


def test_products_that_cannot_overflow_are_the_same_whether_they_saturate_or_not():
    """65504 * 65504 * 32 is far from the largest FP32 number."""
    a, b = (np.ones(shape, np.float16) for shape in ((16, 32), (32, 16)))
    call = call_of(
        meeting.product, (1,), a=a, b=b, out=np.zeros((16, 16), np.float32), K=32, N=16, BLOCK_M=16, BLOCK_K=16
    )  # fmt: skip
    verdict = compare_launch(call, Asked(["product"], products=["ascend910b3", "ascend310p"]))
    assert verdict.configurations == ["as launched", "ascend310p"]
    assert verdict.same


def test_a_comparison_leaves_the_tensors_as_they_were():
    call = row_sums(128)
    x, out = (call.tensors[n].source for n in ("x", "out"))
    out[...] = 7
    before = x.copy()
    compare_launch(call, Asked(["tiling"], {"BLOCK": [32]}), tries=2)
    assert (x == before).all()
    assert (out == 7).all()


def test_strided_and_overlapping_tensors_are_what_they_are():
    whole = rows(4, 128)
    x, out = whole[:, :64], whole[:, 64]
    call = call_of(sums.whole_row, (4,), x=x, out=np.zeros(4, np.float32), n=128, BLOCK=64)
    assert compare_launch(call, Asked(["batch"])).same
    assert out.shape == (4,)


@sim.jit
def doubled(x, n, BLOCK: sums.tl.constexpr):
    i = sums.tl.program_id(0) * BLOCK + sums.tl.arange(0, BLOCK)
    v = sums.tl.load(x + i, mask=i < n, other=0.0)
    sums.tl.store(x + i, v + v, mask=i < n)


def test_what_is_changed_in_place_is_an_input_too():
    grid = call_of(doubled, lambda meta: (-(-meta["n"] // meta["BLOCK"]),), x=rows(1, 64)[0], n=64, BLOCK=16)
    assert compare_launch(grid, Asked(["tiling"])).kind == SAME


def looked_up():
    index = np.array([2, 0, 1, 1], np.int32)
    return call_of(
        meeting.looked_up, (4,), table=rows(5), index=index, out=np.zeros(4, np.float32), n=64, BLOCK=64
    )


def test_a_course_by_data_is_not_proven_unless_the_data_is_given():
    open_ = compare_launch(looked_up(), Asked(["batch"], batch=[2], batch_name="grid"))
    assert open_.kind == NOT_PROVEN
    assert [names for names in open_.depends.values()] == [["index"]]
    assert "goes by index" in open_.words
    assert compare_launch(looked_up(), Asked(["batch"], batch=[2], batch_name="grid", given=["index"])).same


def test_a_branch_by_data_is_told_with_its_line():
    call = call_of(meeting.branching, (4,), x=rows(), out=np.zeros(4, np.float32), n=64, BLOCK=64)
    verdict = compare_launch(call, Asked(["batch"]))
    assert verdict.kind == NOT_PROVEN
    assert all("meeting.py" in place for place in verdict.depends)


def test_infinities_among_the_inputs_are_asked_for():
    """Masked with -inf a row of infinities is NaN, with or without masked lanes; only the proof needs finite inputs."""
    call = call_of(others.softmax, (4,), x=rows(4, 50), out=np.zeros((4, 50), np.float32), n=50, BLOCK=64)
    asked = Asked(["tiling"], {"BLOCK": [128]})
    assert compare_launch(call, asked).same
    assert not compare_launch(call, asked, finite=False, tries=3).same


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan")])
def test_a_time_to_look_for_inputs_is_above_zero(seconds):
    with pytest.raises(UsageError, match="in a number of seconds above 0, got"):
        compare_launch(row_sums(64, sums.whole_row), seconds=seconds)


def test_signs_of_zeros_count_if_they_are_asked_for():
    call = row_sums(64, sums.whole_row, BLOCK=64)
    asked = Asked(["tiling"], {"BLOCK": [128]})
    assert compare_launch(call, asked).zero_signs
    signed = compare_launch(call, asked, signed_zeros=True)
    assert signed.kind == DIFFERS
    assert {o.bits for o in signed.counterexample.orders} == {"0x00000000", "0x80000000"}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"vary": ["colour"]},
            "cannot vary 'colour'; what can be varied is batch, tiling, cores, order, product",
        ),
        ({"batch": [0]}, "a batch is at least 1, got 0"),
        ({"seeds": 0}, "seeds is 0; at least one order"),
        ({"tilings": {"WIDTH": [4]}}, "no compile-time size 'WIDTH'; it has BLOCK"),
        ({"given": ["y"]}, "has no tensor 'y'; it has x, out"),
        ({"batch_name": "m", "vary": ["batch"]}, "no integer argument 'm'; it has n, and grid"),
        (
            {"batch": [9], "vary": ["batch"]},
            "the launch has a batch of 4, 9 is asked for; launch it with the largest",
        ),
        (
            {"tilings": {"BLOCK": [32]}, "vary": ["tiling"]},
            "BLOCK=32 cannot be compared: a length that is reduced",
        ),
        ({"vary": ["order"]}, "there is one configuration to compare"),
        ({"products": ["ascend1"], "vary": ["product"]}, "ascend1"),
        (
            {"products": ["ascend910b1"], "vary": ["order"]},
            "products is given, but product is not varied; vary order, product",
        ),
        ({"tilings": {"BLOCK": [32]}, "vary": ["order"]}, "tilings is given, but tiling is not varied"),
        ({"batch": [2], "vary": ["order"]}, "batch is given, but batch is not varied"),
        ({"batch_name": "n", "vary": ["order"]}, "batch_name is given, but batch is not varied"),
    ],
)
def test_what_cannot_be_varied_is_refused_with_the_way_out(asked, message):
    with pytest.raises(UsageError, match="(?s).*" + message.replace("(", r"\(")):
        compare_launch(row_sums(64, sums.whole_row), Asked(**asked))


def test_those_who_watch_calls_are_told_before_the_launch():
    x, out = rows(), np.zeros(4, np.float32)
    seen = []
    with watch_calls(lambda call: seen.append((call.kernel.name, out.copy(), call.again is not None))):
        sums.whole_row[(4,)](x, out, 64, BLOCK=64)
    assert [(name, before.any(), again) for name, before, again in seen] == [("whole_row", False, True)]
    assert out.any()
