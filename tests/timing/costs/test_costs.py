"""Costs of operations: from the product's rows, by hand; and never zero for want of a row."""

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.ir.operations import OPERATIONS
from ascendtile.simulator.products.spec import OPS
from ascendtile.simulator.timing.costs.model import CostModel

P = sim.load_product("ascend910b3")
MASK = P.number("vector.partial_mask_penalty_cycles")


def fixed(op):
    return P.number(f"vector.op.{op}.fixed_cycles")


def per_repeat(op, dtype="fp32", table="per_repeat"):
    return P.number(f"vector.op.{op}.{table}.{dtype}")


def met(op, dtype="fp32"):
    """Cycles per repeat where both sources lie in the same groups of banks."""
    return per_repeat(op, dtype, "per_repeat_conflict")


@sim.jit
def binary(x_ptr, y_ptr, out_ptr, OP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets)
    if OP == "add":
        x = x + y
    elif OP == "mul":
        x = x * y
    elif OP == "div":
        x = x / y
    elif OP == "exp":
        x = tl.exp(x)
    elif OP == "twice":
        x = x * 2.0
    elif OP == "from":
        x = 2.0 - x
    elif OP == "max":
        x = tl.maximum(x, y)
    tl.store(out_ptr + offsets, x.to(out_ptr.dtype.element_ty))


def busy(op, dtype, block=4096, kernel=binary, product="ascend910b3"):
    """V cycles of an operation, those of a plain load and store taken away."""
    s = sim.shape(block, dtype)
    with sim.device(product):

        def one(name):
            return kernel.time((1,), s, s, s, OP=name, BLOCK=block).launches[0].pipes["AIV.V"].busy_cycles

        return one(op) - one("nothing")


@pytest.mark.parametrize(
    ("op", "row", "dtype", "lanes"),
    [
        ("add", "add", "fp32", 64),
        ("add", "add", "fp16", 128),
        ("mul", "mul", "fp32", 64),
        ("div", "div", "fp32", 64),
        ("exp", "exp", "fp32", 64),
        ("exp", "exp", "fp16", 128),
        ("twice", "muls", "fp16", 128),
        ("max", "max", "fp32", 64),
    ],
)
def test_an_elementwise_operation_takes_its_row(op, row, dtype, lanes):
    name = {"fp32": "float32", "fp16": "float16"}[dtype]
    cycles = per_repeat(row, dtype) if op in ("exp", "twice") else met(row, dtype)
    assert busy(op, name) == 4096 / lanes * cycles


def test_tiles_half_a_round_of_the_banks_apart_do_not_meet():
    """4096 floats are 32 rounds of 512 bytes: y starts in x's group. With 64 more it starts 8 groups further."""
    assert busy("add", "float32", 4096) == 64 * met("add")
    with sim.device(overrides={"ub_banks.read_write_conflict": "none"}):
        assert busy("add", "float32", 4096 + 64, product=None) == pytest.approx(65 * per_repeat("add"))
        # 4 groups: every repeat shares four; the last one is half full
        assert busy("add", "float32", 4096 + 32, product=None) == pytest.approx(65 * met("add") + MASK)
    with sim.device(overrides={"ub_banks.read_read_conflict": "none"}):
        assert busy("add", "float32", 4096, product=None) == 64 * per_repeat("add")


def test_a_number_minus_a_tile_is_a_negation_and_an_addition():
    assert busy("from", "float32") == 64 * per_repeat("muls") + fixed("muls") + 64 * per_repeat("adds")


def test_bf16_is_widened_computed_and_narrowed():
    widen, narrow = per_repeat("cast_bf16_f32", "any"), per_repeat("cast_f32_bf16", "any")
    parts = 64 * widen + fixed("cast_bf16_f32")
    expected = 2 * parts + 64 * met("add") + fixed("add") + 64 * narrow
    assert busy("add", "bfloat16") == expected


def test_a_short_instruction_takes_the_minimum():
    assert busy("add", "float32", block=64) == pytest.approx(P.number("vector.min_instruction_cycles"))


def test_a_repeat_that_is_not_full_is_masked():
    short = P.number("vector.min_instruction_cycles") + MASK
    assert busy("add", "float32", block=8) == pytest.approx(short)
    assert busy("exp", "float32", block=4096 - 8) == 64 * per_repeat("exp") + MASK


def test_more_than_255_repeats_are_more_instructions():
    s = sim.shape(300 * 64, "float32")
    with sim.device("ascend910b3", multibuffer=1):
        few = binary.time((1,), s, s, s, OP="nothing", BLOCK=255 * 64).launches[0].instructions
        one = binary.time((1,), s, s, s, OP="add", BLOCK=255 * 64).launches[0].instructions
        two = binary.time((1,), s, s, s, OP="add", BLOCK=256 * 64).launches[0].instructions
    assert (one - few, two - few) == (1, 2)


@sim.jit
def sums(x_ptr, out_ptr, ROWS: tl.constexpr, COLS: tl.constexpr, AXIS: tl.constexpr):
    offsets = tl.arange(0, ROWS)[:, None] * COLS + tl.arange(0, COLS)[None, :]
    x = tl.load(x_ptr + offsets)
    if AXIS == 1:
        tl.store(out_ptr + tl.arange(0, ROWS), tl.sum(x, axis=1))
    else:
        tl.store(out_ptr + tl.arange(0, COLS), tl.sum(x, axis=0))


def sum_busy(rows, cols, axis, compiler=None):
    with sim.device("ascend910b3", compiler=compiler):
        launch = sums.time(
            (1,),
            sim.shape(rows * cols, "float32"),
            sim.shape(rows * cols, "float32"),
            ROWS=rows,
            COLS=cols,
            AXIS=axis,
        ).launches[0]
    return launch.pipes["AIV.V"].busy_cycles


def test_a_row_sum_by_hand_is_one_instruction_per_level():
    sum_fixed, cycles = fixed("reduce_repeat_sum"), per_repeat("reduce_repeat_sum")
    assert sum_busy(8, 64, 1, "ascendc") == pytest.approx(8 * cycles)
    assert sum_busy(1, 4096, 1, "ascendc") == 64 * cycles + sum_fixed + 1 * cycles


def test_the_compiler_folds_a_row_to_one_repeat_before_it_sums_it():
    add, cycles = fixed("add"), per_repeat("reduce_repeat_sum")
    assert sum_busy(8, 64, 1) == pytest.approx(8 * cycles)
    last = P.number("vector.min_instruction_cycles")  # halves of 256 bytes lie in different groups
    folds = [met("add") * n for n in (32, 16, 8, 4, 2)]
    assert sum_busy(1, 4096, 1) == pytest.approx(sum(folds) + last + 6 * add + cycles)


def test_a_column_sum_folds_the_upper_half_onto_the_lower():
    add = fixed("add")
    assert met("add") == 2  # halves of 16, 8 and 4 KiB start in the same group
    assert sum_busy(8, 1024, 0) == (2 * 64 + add) + (2 * 32 + add) + 2 * 16


@sim.jit
def odd_words(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.load(x_ptr + BLOCK + offsets)
    wide = x.to(tl.int64) * 3 + y
    x, y = x.to(tl.uint32), y.to(tl.uint32)
    tl.store(out_ptr + offsets, tl.where(x < y, wide, wide // 7).to(tl.int32))


def test_what_has_no_vector_instruction_is_named_with_its_line_and_costs_scalar_time():
    with sim.device("ascend910b3"):
        launch = odd_words.time((1,), sim.shape(256, "int32"), sim.shape(128, "int32"), BLOCK=128).launches[0]
    text = "\n".join(launch.warnings)
    assert "uint32 comparison has no vector instruction" in text
    assert "int64 arithmetic has no vector instruction" in text
    assert ".py:" in text
    element = P.number("scalar.ub_half_add_cycles_per_element")
    assert launch.pipes["AIV.S"].busy_cycles == pytest.approx(
        4 * 128 * element
    )  # three int64 operations and a comparison


@sim.jit
def gather(x_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + tl.load(index_ptr + offsets)))


@sim.jit
def columns(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets * 64))


def test_discrete_and_strided_accesses_are_named_and_cost_each_element():
    """Addresses without a pattern by the scalar unit (fgv816 in `ascendtile validate`); by hand, a transfer each."""
    interval, by_scalar = (
        P.number("path.gm_to_ub.issue_interval_cycles"),
        P.number("scalar.discrete_element_cycles"),
    )
    with sim.device("ascend910b3"):
        s = sim.shape(64 * 128, "float32")
        one = gather.time((1,), s, sim.shape(128, "int32"), s, BLOCK=128).launches[0]
        two = columns.time((1,), s, s, BLOCK=128).launches[0]
    with sim.device("ascend910b3", compiler="ascendc"):
        by_hand = gather.time((1,), s, sim.shape(128, "int32"), s, BLOCK=128).launches[0]
    assert any("discrete load: 128 elements, one by one on the scalar unit" in w for w in one.warnings)
    assert one.pipes["AIV.S"].busy_cycles == 128 * by_scalar
    assert any("discrete load: 128 elements, one transfer of 32 bytes each" in w for w in by_hand.warnings)
    assert by_hand.pipes["AIV.MTE2"].busy_cycles > 128 * interval
    assert any("strided: 128 elements move as 128 blocks of 32 bytes" in w for w in two.warnings)
    assert two.resources["L2"] == 128 * 32 + 512


@pytest.mark.drawn(3)
@pytest.mark.parametrize("product", sim.product_names())
def test_no_operation_on_any_dtype_is_free(product):
    model = CostModel(sim.load_product(product))
    ops = [*OPS, *(name for name, entry in OPERATIONS.items() if entry.row)]
    for op in ops:
        for dtype in ("fp16", "fp32", "int8", "int16", "int32", "int64", "uint8", "uint32", "int1", "fp64"):
            cost = model.vector(op, dtype, 1, 32)
            assert cost.occupancy > 0, (op, dtype)
            assert cost.latency > 0, (op, dtype)
    assert any(note.startswith("mod: no figure is published") for note in model.notes)
    for source in ("fp16", "bf16", "fp32", "int8", "int32", "int64", "uint8"):
        for target in ("fp16", "bf16", "fp32", "int8", "int32", "int64", "uint8"):
            if source != target:
                assert model.cast(source, target, 64, 32).occupancy > 0


def test_a_row_that_stands_in_for_another_is_listed_in_the_run():
    x = np.ones(64, np.float32)
    with sim.device("ascend910b3"):
        run = modulo[(1,)](x, np.empty_like(x), BLOCK=64)
    assert any(
        note.startswith("mod: no figure is published; costed as the nearest documented row, div")
        for note in run.notes
    )


@sim.jit
def modulo(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, x % x)


@sim.jit
def branches(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    if pid < n:  # noqa: SIM108 - the `if` statement is what is tested
        y = x * 2.0
    else:
        y = x
    tl.store(out_ptr + offsets, y)


def test_programs_pay_for_the_branch_they_take():
    s = sim.shape(4 * 4096, "float32")
    with sim.device("ascend910b3"):
        busy_cycles = [branches.time((4,), s, s, n, BLOCK=4096).pipes["AIV.V"].busy_cycles for n in (4, 2, 0)]
    double, same = 64 * per_repeat("muls"), 64 * per_repeat("copy")
    # But for rounding: cores start one after the other, at no whole cycle.
    assert busy_cycles == pytest.approx([double, (double + same) / 2, same], rel=1e-12)


def test_figures_that_nobody_published_are_named_in_the_run():
    s = sim.shape(1 << 16, "float32")
    with sim.device("ascend910a"):
        one = binary.time((1,), s, s, s, OP="add", BLOCK=1024).notes[-1]
        many = strided.time((64,), s, s, BLOCK=1024).notes[-1]
    assert "launch.dispatch_cycles_per_program" not in one
    assert "grade D" in many
    assert "launch.dispatch_cycles_per_program" in many
    with sim.device("ascend310p"):
        assert "path.gm_to_ub.fixed_cycles" in binary.time((1,), s, s, s, OP="add", BLOCK=1024).notes[-1]


@sim.jit
def strided(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * 2.0)
