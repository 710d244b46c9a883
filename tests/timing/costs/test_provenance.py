"""Which share of a time rests on figures of which grade, and products at the ends of what was published."""

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels import run_op
from ascendtile.simulator.products import load_product, product_names
from ascendtile.simulator.products.variants import fast_end, slow_end


@sim.jit
def add(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x + x, mask=at < n)


@sim.jit
def sines(x_ptr, y_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.sin(tl.load(x_ptr + at)))


@pytest.mark.parametrize(
    "case", [("rms_norm_grad", "tiny"), ("matmul", "tiny"), ("bce_with_logits_backward", None)]
)
@pytest.mark.parametrize("product", ["ascend910b3", "ascend310p"])
def test_the_shares_of_all_grades_are_the_whole_time(case, product):
    run = run_op(case[0], case=case[1], dtype="float16", product=product, values=False).run
    assert sum(run.grades.values()) == pytest.approx(run.time_us, rel=1e-9)
    assert set(run.grades) <= set("ABCD")


@pytest.mark.parametrize("name", product_names())
def test_every_product_has_two_ends_that_enclose_it(name):
    product = load_product(name)
    for key, figure in product.figures_by_key.items():
        ends = fast_end(product).value(key), slow_end(product).value(key)
        if figure.unit in ("text", "count", "bytes", "elements"):
            assert ends == (figure.value, figure.value)
        elif isinstance(figure.value, int | float):
            assert min(ends) <= figure.value <= max(ends)


def test_fast_is_more_bytes_and_fewer_cycles():
    product = load_product("ascend910b3")
    assert fast_end(product).number("memory.bandwidth_tb_per_s") == 1.75
    assert slow_end(product).number("memory.bandwidth_tb_per_s") == 1.3
    assert fast_end(product).number("path.gm_to_ub.fixed_cycles") == 151
    assert slow_end(product).number("path.gm_to_ub.fixed_cycles") == 264


def test_a_figure_of_the_user_has_no_range():
    product = load_product("ascend910b3", overrides={"memory.bandwidth_tb_per_s": 1.0})
    assert slow_end(product).number("memory.bandwidth_tb_per_s") == 1.0


def test_a_sequence_that_nobody_published_counts_as_assumed():
    shape = sim.shape(4096, "float32")
    with sim.device("ascend910b3"):
        plain = add.time((1,), shape, shape, 4096, BLOCK=4096).launches[0]
        assumed = sines.time((1,), shape, shape, BLOCK=4096).launches[0]
    assert assumed.grades["D"] > plain.grades.get("D", 0.0)
