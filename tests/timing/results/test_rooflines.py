"""Points of a roofline: operations against counts by hand, bytes against what moved, no roof above the time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels import run_op
from ascendtile.simulator.timing import estimate


@sim.jit
def polynomial(x_ptr, out_ptr, iterations, BLOCK: tl.constexpr):
    start = tl.program_id(0) * iterations * BLOCK
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(iterations):
        x = tl.load(x_ptr + start + k * BLOCK + tl.arange(0, BLOCK))
        total += x * x
    tl.store(out_ptr + tl.program_id(0), helper(total))


@sim.jit
def helper(total):
    return tl.sum(total, axis=0)


def timed(programs: int, iterations: int, block: int) -> sim.Run:
    n = programs * iterations * block
    return polynomial.time(
        (programs,), sim.shape((n,), "float32"), sim.shape((programs,), "float32"), iterations, BLOCK=block
    )


@given(st.integers(1, 60), st.integers(1, 40), st.sampled_from([64, 256, 1000]))
def test_operations_are_those_of_every_program_and_iteration(
    programs: int, iterations: int, block: int
) -> None:
    roofs = timed(programs, iterations, block).launches[0].roofs
    assert roofs["Vector fp32"].amount == programs * (2 * iterations * block + block)
    assert roofs["GM to UB"].amount >= 4 * programs * iterations * block


def test_iterations_one_by_one_count_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    together = timed(7, 20, 256).launches[0].roofs
    lower, called = estimate._estimate, []
    monkeypatch.setattr(
        estimate, "_estimate", lambda call, *_: (called.append(call), lower(call, False, False))[1]
    )
    monkeypatch.setattr("ascendtile.simulator.launch.recall", lambda *_: None)
    assert timed(7, 20, 256).launches[0].roofs == together
    assert len(called) == 1


def test_a_product_is_two_operations_for_each_pair() -> None:
    launch = run_op("matmul", case={"m": 256, "n": 512, "k": 384}, dtype="float16", values=False).launches[0]
    assert launch.roofs["Cube fp16"].amount == 2 * 256 * 512 * 384
    assert "Vector fp32" not in launch.roofs  # the cast to float16 happens on the way out of L0C
    assert launch.roofs["L1 to L0A"].amount >= 256 * 384 * 2


@pytest.mark.parametrize("product", ["ascend910b3", "ascend910a", "ascend310p"])
def test_no_roof_is_above_what_the_run_took(product: str) -> None:
    launch = run_op("matmul", case="1024", dtype="float16", product=product, values=False).launches[0]
    for name, roof in launch.roofs.items():
        assert roof.amount / roof.per_us <= launch.time_us, name


def test_memory_is_what_the_bounds_say() -> None:
    with sim.device(l2="cold"):
        launch = run_op("rms_norm_grad", case="tiny", values=False).launches[-1]
    for name in ("HBM", "L2"):
        assert launch.roofs[name].amount == launch.resources[name]
        assert launch.roofs[name].amount / launch.roofs[name].per_us == pytest.approx(launch.bounds[name])


def test_the_record_holds_the_text_of_kernel_and_helper() -> None:
    launch = timed(2, 3, 64).launches[0]
    kernel, inner = launch.sources
    assert kernel.text.splitlines()[0] == "@sim.jit"
    assert "def polynomial(" in kernel.text
    assert inner.text.startswith("def helper(total):")
    for cost in launch.lines:
        text = next(
            x for x in launch.sources if x.first_line <= cost.line <= x.first_line + x.text.count("\n")
        )
        assert text.text.splitlines()[cost.line - text.first_line].strip() == cost.source


def test_without_a_timeline_no_text_is_kept() -> None:
    with sim.device(timeline=0):
        assert timed(2, 3, 64).launches[0].sources == ()
