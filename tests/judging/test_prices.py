"""Prices of torch's operations: the floor is below every kernel, and each part of a reference says where it comes from."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.kernels import operators, run_op
from ascendtile.reports.judging.pricing.floors import floor_us, least_us
from ascendtile.reports.judging.pricing.operation import HostOp, HostTensor
from ascendtile.reports.judging.pricing.prices import FLOOR, MOST_SIMULATED, host_costs, price, reference
from ascendtile.simulator import load_product
from ascendtile.simulator.errors import RefusedError, UsageError
from ascendtile.simulator.products import product_names

NEEDS_TORCH = pytest.mark.extra("torch")
B3 = load_product("ascend910b3")
SIZE = {"float16": 2, "bfloat16": 2, "float32": 4, "int64": 8, "bool": 1}
# Input that has the shape and type of an output, of operators that have such a one.
MADE_ALIKE = {
    "bce_with_logits_backward": "x", "flash_attention": "q", "group_norm": "x", "group_norm_backward": "x",
    "layer_norm": "x", "rms_norm": "x", "rms_norm_grad": "x",
}  # fmt: skip
# A stride beyond the window leaves elements out; of quantised operands two share a byte.
OTHERS = {"convolution", "convolution_backward", "quant_matmul", "grouped_matmul"}
CASES = [
    (name, case, product, dtype)
    for name, op in operators().items()
    if name not in OTHERS
    for case in op.cases
    for product in ("ascend310p", "ascend910a", "ascend910b3", "ascend910b4")
    for dtype in ("float16", "float32")
]


def tensor(*shape, dtype="float32"):
    return HostTensor(shape, dtype)


def op(name, inputs, outputs, flops=0, options=(), line=0):
    moved = sum(t.elements * SIZE.get(t.dtype, 4) for t in (*inputs, *outputs))
    return HostOp(f"aten.{name}.default", tuple(inputs), tuple(outputs), flops, moved, line, options)


def mm(m, n, k, dtype="float32"):
    shapes = (m, k), (k, n), (m, n)
    a, b, out = (HostTensor(shape, dtype) for shape in shapes)
    return op("mm", (a, b), (out,), 2 * m * n * k)


def drawn_inputs(*tensors):
    return [op("randn", (), (t,)) for t in tensors]


def floor_of(*ops, made=None, product=B3, outputs=None):
    first = ops[0].inputs
    made = drawn_inputs(*first) if made is None else made
    return floor_us(first, ops[-1].outputs if outputs is None else outputs, ops, product, made)


def stand_in(name, inputs):
    """An operation of torch that reads and makes what an operator of ours does."""
    if name == "matmul":
        (m, k), (_, n) = inputs["a"].shape, inputs["b"].shape
        return mm(m, n, k, inputs["a"].dtype)
    read = [t for n, t in inputs.items() if n not in operators()[name].without_influence]
    return op("add", read, [inputs[n] for n in [MADE_ALIKE.get(name)] if n])


@pytest.mark.drawn(6)
@pytest.mark.parametrize(("name", "case", "product", "dtype"), CASES)
def test_no_operator_is_faster_than_the_floor(name, case, product, dtype):
    try:
        result = run_op(name, case, dtype, product=product, values=False)
    except (RefusedError, UsageError):
        return  # the product or the type is none of the operator
    found = {n: re.fullmatch(r"(\w+) \[(.*)\]", text) for n, text in result.run.inputs.items()}
    inputs = {n: HostTensor(tuple(map(int, filter(None, m[2].split(", ")))), m[1]) for n, m in found.items()}
    task = stand_in(name, inputs)
    floor = floor_us(task.inputs, task.outputs, [task], load_product(product), drawn_inputs(*task.inputs))
    assert 0 < floor <= result.time_us


@pytest.mark.drawn(2)
@pytest.mark.parametrize("mode", ["USE_FP16", "USE_HF32", "FP16X2", "BF16X2", "INT8X2", "INT8X3"])
@pytest.mark.parametrize("size", [256, 1024])
def test_no_precision_of_a_product_is_faster_than_the_floor(mode, size):
    sizes = dict.fromkeys("mnk", size)
    found = run_op("matmul", sizes, "float32", product="ascend910b3", cube_math_type=mode, values=False)
    assert floor_of(mm(size, size, size)) <= found.time_us


sizes = st.integers(0, 1 << 33)


@given(sizes, sizes, sizes, sizes, st.sampled_from(product_names()))
def test_more_work_never_has_a_lower_floor(read, written, flops, more, product):
    machine = load_product(product)
    least = least_us(machine, read, written, flops)
    assert 0 < least <= least_us(machine, read + more, written, flops)
    assert least <= least_us(machine, read, written + more, flops)
    assert least <= least_us(machine, read, written, flops + more)


X, ROW = tensor(4096, 4096), tensor(4096)
LAUNCH_ALONE = least_us(B3, 0, 0)


def test_inputs_count_only_where_all_of_them_are_needed():
    whole = floor_of(op("relu", (X,), (X,)))
    masked = floor_of(op("mul", (X, tensor(4096, 4096, dtype="bool")), (X,)))
    triangle = floor_of(op("relu", (X,), (X,)), op("triu", (X,), (X,)))
    picked = floor_of(op("index_select", (X,), (X,)))
    assert whole > masked == triangle == picked == least_us(B3, 0, 4 * 4096**2)


@pytest.mark.parametrize("kind", ["triu", "tril", "zeros", "diag", "where", "eye", "one_hot"])
def test_inputs_that_are_no_drawn_numbers_do_not_count(kind):
    made = [*drawn_inputs(X), op(kind, (X,), (X,))]
    known = floor_of(op("sum", (X,), (ROW,)))
    assert floor_of(op("sum", (X,), (ROW,)), made=made) < known
    assert floor_of(op("sum", (X,), (ROW,)), made=[]) < known
    assert floor_us([X], [ROW], [op("sum", (X,), (ROW,))], B3) < known


def test_a_symmetric_input_counts_not():
    made = [*drawn_inputs(X), op("t", (X,), (X,)), op("add", (X, X), (X,))]
    assert floor_of(mm(4096, 4096, 4096), made=made) < floor_of(mm(4096, 4096, 4096))


def test_products_count_where_no_sum_follows():
    product, square = mm(4096, 4096, 4096, "float16"), tensor(4096, 4096, dtype="float16")
    after = {n: op(n, (square,), (tensor(4096, dtype="float16"),)) for n in ("sum", "mean", "max")}
    whole = floor_of(product, op("relu", (square,), (square,)))
    assert whole == floor_of(product)
    assert all(floor_of(product, x, outputs=x.outputs) < whole for x in after.values())


def test_what_a_sum_of_one_element_may_leave_out_counts_not():
    column = tensor(4096, 1)
    kept = op("mean", (column,), (column,))
    assert floor_of(op("sum", (X,), (column,)), kept, outputs=(column,)) < floor_of(
        op("sum", (X,), (column,))
    )


def test_views_of_inputs_are_no_outputs():
    view = op("view", (X,), (tensor(4096**2),))
    assert floor_of(view) < floor_of(op("clone", (X,), (X,)))
    assert floor_us([ROW], [X], [op("expand", (ROW,), (X,))], B3, []) == LAUNCH_ALONE


def test_views_and_memory_that_nobody_writes_cost_nothing():
    view = HostOp("aten.view.default", (X,), (X,))
    assert price(view, B3).time_us == price(HostOp("aten.empty.default", (), (X,)), B3).time_us == 0
    assert reference([view], B3).parts == ()


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    "task",
    [
        op("relu", (tensor(512, 512),), (tensor(512, 512),)),
        op("add", (tensor(512, 512),) * 2, (tensor(512, 512),)),
        op("_to_copy", (tensor(512, 512),), (tensor(512, 512, dtype="float16"),)),
        op("zeros", (), (tensor(512, 512),)),
        op("sum", (tensor(512, 512),), (tensor(512),), options=((1,), False)),
        op("sum", (tensor(512, 512),), (tensor(512),), options=((0,), False)),
        op("mean", (tensor(512, 512),), (tensor(),)),
        op("amax", (tensor(40, 16, 64),), (tensor(40, 64),), options=((1,),)),
        op("cumsum", (tensor(64, 64),), (tensor(64, 64),), options=(1,)),
        op("_softmax", (tensor(64, 64),), (tensor(64, 64),), options=(-1, False)),
        op("native_layer_norm", (tensor(64, 64),), (tensor(64, 64),), options=((64,), None, None, 1e-5)),
        op("native_group_norm", (tensor(4, 8, 64),), (tensor(4, 8, 64), tensor(4, 2), tensor(4, 2))),
        mm(256, 256, 256),
        op("bmm", (tensor(4, 64, 64),) * 2, (tensor(4, 64, 64),), 2 * 4 * 64**3),
        op("scaled_dot_product_attention", (tensor(2, 128, 64, dtype="float16"),) * 3,
           (tensor(2, 128, 64, dtype="float16"),), 4 * 2 * 128 * 128 * 64),
        op("convolution", (tensor(1, 16, 16, 16), tensor(16, 16, 3, 3)), (tensor(1, 16, 14, 14),),
           2 * 16 * 14 * 14 * 16 * 9, ((1, 1), (0, 0), (1, 1), False, (0, 0), 1)),
    ],
    ids=lambda task: f"{task.base} {task.options[:1]}",
)  # fmt: skip
def test_a_vendor_kernel_is_told_and_is_above_the_floor(task):
    found = price(task, B3)
    assert found.kind == "vendor"
    assert price(task, B3, simulated=False).kind == "floor"
    assert floor_of(task) <= price(task, B3, simulated=False).time_us <= found.time_us


@pytest.mark.parametrize("planes", [1, 16])
def test_a_transposed_copy_is_priced_as_the_vendors_transpose(planes):
    x, out = tensor(planes, 1024, 512), tensor(planes, 512, 1024)
    plain = op("clone", (out,), (out,))
    found = price(replace(plain, transposed=(planes, 1024, 512)), B3)
    assert found.kind == "vendor"
    assert "transpose" in found.source
    assert found.time_us > price(plain, B3).time_us
    half = op("_to_copy", (x,), (tensor(planes, 512, 1024, dtype="float16"),))
    assert price(replace(half, transposed=(planes, 1024, 512)), B3) == replace(found, op=half.name)


def test_what_validation_does_not_know_has_its_floor_and_says_so():
    part = price(op("histc", (X,), (ROW,)), B3)
    assert (part.kind, part.source) == ("floor", FLOOR)
    assert part.time_us == least_us(B3, 4 * 4096**2, 4 * 4096)


def test_a_long_stream_is_extrapolated_beyond_the_rate_of_memory():
    x = tensor(4096, 393216)
    found = price(op("relu", (x,), (x,)), B3)
    memory_us = 2 * 4 * x.elements / (B3.hbm_bytes_per_cycle * B3.aicore_mhz)
    assert found.kind == "vendor"
    assert memory_us < found.time_us < 1.6 * memory_us


def test_a_reference_adds_up_and_names_each_operation():
    known, other = op("relu", (tensor(64, 64),), (tensor(64, 64),)), op("histc", (ROW,), (ROW,))
    found = reference([known, other, known], B3)
    assert {p.op: p.kind for p in found.parts} == {known.name: "vendor", other.name: "floor"}
    assert found.kind == "mixed"
    assert found.time_us == pytest.approx(2 * price(known, B3).time_us + price(other, B3).time_us)
    assert reference([known], B3).kind == "vendor"
    assert reference([other], B3).kind == reference([], B3).kind == "floor"


def test_of_many_operations_the_dearest_are_simulated():
    small = [op("histc", (tensor(8 * k),), (tensor(8),)) for k in range(1, MOST_SIMULATED + 1)]
    large = op("relu", (tensor(64, 512),), (tensor(64, 512),))
    kinds = {p.op: p.kind for p in reference([*small, large], B3).parts}
    assert kinds[large.name] == "vendor"


def test_costs_of_the_host_are_by_line():
    copy = op("clone", (ROW,), (ROW,), line=7)
    view = HostOp("aten.t.default", (X,), (X,), line=3)
    costs = {(c.op, c.line): c for c in host_costs([copy, view, copy], B3)}
    assert costs[copy.name, 7].count == 2
    assert costs[copy.name, 7].kind == "move"
    assert costs[copy.name, 7].time_us == pytest.approx(2 * price(copy, B3).time_us)
    assert (costs[view.name, 3].kind, costs[view.name, 3].time_us) == ("view", 0)
