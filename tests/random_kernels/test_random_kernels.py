"""Laws of random kernels: the usual run draws 200, `-m long` ten thousand, other ones each time.

What is drawn: elementwise operations, Triton's promotion, casts, integer and bit operations, where, reductions and scans
(sums, extremes and their places, bits, functions of the author's, from either end), histograms, sorts, gathers from
memory and within a tile, other shapes and orders of axes, joins, slices of tiles; helpers; loops over constants,
constexpr and other arguments and data, with variables that change places; branches, `while`; grids of one and two axes;
pointers, block pointers and descriptors; products of four types with tails; atomics, and what they found. All that in the
number formats, eight of integers and three of floating point, that the drawn product has. Every operation rounds at most
once and sums are exact, so values are those of numpy to the bit.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.simulator.errors import AscendtileError, BufferOverflowError
from ascendtile.simulator.record.loading import run_from_bytes
from ascendtile.simulator.record.run import Run
from ascendtile.simulator.record.saving import run_bytes

from ..execution.runs import run as run_values
from ..support.sample_runs import same as same_runs
from .blocks import Kernel
from .illegal import with_a_wrong_call, with_a_wrong_statement, with_changed_tokens
from .kernels import kernels

SLACK = 1e-9  # of rounding; a bound is exact
# How much slower more may be. Of bandwidth: other orders of transfers are other schedules of the cores; of 1300 pairs none
# was slower. Of room: tiles lie on other addresses, where Vector instructions may meet in a bank that they did not meet in
# before; of 1800 pairs the worst, with twice the UB, was 0.16 % slower, as its Vector unit was busy 2 % longer.
WORSE = {
    "memory.bandwidth_tb_per_s": 1e-4,
    "l2.bandwidth_tb_per_s": 1e-4,
    "buffers.ub": 5e-3,
    "copies of buffers": 5e-3,
}
CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def usual(count: int) -> Any:
    """So many in the usual run, seven times as many in the exhaustive one."""
    more = max(1, settings.default.max_examples // 20)
    return settings(max_examples=count * more, suppress_health_check=CHECKS)


def thousands(count: int) -> Any:
    """New ones each time; a failing one is printed with what draws it again."""
    more: dict[str, Any] = {"derandomize": False, "print_blob": True}
    return settings(max_examples=count, suppress_health_check=CHECKS, **more)


def launched(kernel: Kernel, function: Any, **options: Any) -> tuple[Run, dict[str, Any]]:
    """The run, and the tensors after it."""
    arguments = kernel.arguments()
    with sim.device(kernel.product, **{"timeline": 0, **options}):
        return function[kernel.grid](**arguments), arguments


def holds_for(kernel: Kernel) -> None:
    """Values of numpy, together and program by program; no time below a bound; the record comes back."""
    note(kernel.source)
    function, expected = kernel.compiled(), kernel.expected()
    run, found = launched(kernel, function, timeline=50)
    with sim.device(kernel.product):
        one_by_one = run_values(function, kernel.grid, *kernel.arguments().values(), chunk=1)
    for name, alone in zip(found, one_by_one, strict=True):
        if name in expected:
            assert np.array_equal(found[name], expected[name]), name
            assert found[name].tobytes() == alone.tobytes(), name
    for name, bound_us in run.launches[0].bounds.items():
        assert run.time_us >= bound_us * (1 - SLACK), name
    assert same_runs(run_from_bytes(run_bytes(run)), run)


@usual(30)
@given(kernels())
def test_a_random_kernel_has_the_values_of_numpy_and_no_time_below_its_bounds(kernel):
    holds_for(kernel)


@pytest.mark.long
@thousands(5000)
@given(kernels())
def test_thousands_of_random_kernels(kernel):
    holds_for(kernel)


def time_of(kernel: Kernel, function: Any, **options: Any) -> float:
    """Without end where it does not fit: more room must not bring that about."""
    try:
        return launched(kernel, function, l2="cold", **options)[0].time_us
    except BufferOverflowError:
        return inf


def more_never_hurts(kernel: Kernel, of: str) -> None:
    """Of what there is less and more of, the less the longer, but for `WORSE`."""
    note(kernel.source)
    function = kernel.compiled()
    if of == "copies of buffers":
        cases: list[dict[str, Any]] = [{"multibuffer": n} for n in (1, 2, 3)]
    else:
        figure, parts = sim.load_product(kernel.product).number(of), (1, 2) if "ub" in of else (0.02, 0.3, 1)
        cases = [{"overrides": {of: figure * part}} for part in parts]
    times = [time_of(kernel, function, **case) for case in cases]
    assert all(more <= less * (1 + WORSE[of]) for less, more in pairwise(times)), times


@usual(8)
@given(kernels(large=True), st.sampled_from([*WORSE]))
def test_no_random_kernel_is_slower_with_more_bandwidth_or_buffers(kernel, of):
    more_never_hurts(kernel, of)


@pytest.mark.long
@thousands(1000)
@given(kernels(large=True), st.sampled_from([*WORSE]))
def test_thousands_of_random_kernels_are_not_slower_with_more(kernel, of):
    more_never_hurts(kernel, of)


def refused(kernel: Kernel, given: dict[str, Any], grid: Any) -> str:
    """The message of our error; empty where all went well. Any other exception is a fault of ours."""
    note(kernel.source)
    with sim.device(kernel.product, step_limit=2000, timeline=0):
        try:
            kernel.compiled()[grid](**given)
        except AscendtileError as e:
            return str(e) or "an error without a word"
    return ""


@usual(16)
@given(with_a_wrong_statement())
def test_a_wrong_statement_is_refused_with_its_line(drawn):
    kernel, wrong = drawn
    assert "<drawn " in refused(kernel, kernel.arguments(), kernel.grid), wrong


@usual(16)
@given(with_changed_tokens())
def test_changed_tokens_are_refused_in_words_or_run(kernel):
    if is_python(kernel.source):
        refused(kernel, kernel.arguments(), kernel.grid)


@usual(16)
@given(with_a_wrong_call())
def test_a_wrong_call_is_refused_in_words(drawn):
    """Or it runs, where the wrong argument is one that the kernel does not read."""
    kernel, given, grid = drawn
    wrong = given.keys() != kernel.arguments().keys() or grid != kernel.grid
    assert refused(kernel, given, grid) or not wrong


def is_python(source: str) -> bool:
    try:
        compile(source, "<drawn>", "exec")
    except SyntaxError:
        return False
    return True


@pytest.mark.long
@thousands(4000)
@given(st.one_of(with_a_wrong_statement(), with_changed_tokens(), with_a_wrong_call()))
def test_thousands_of_illegal_kernels(drawn):
    if isinstance(drawn, Kernel):
        if is_python(drawn.source):
            refused(drawn, drawn.arguments(), drawn.grid)
    elif len(drawn) == 2:
        assert refused(drawn[0], drawn[0].arguments(), drawn[0].grid), drawn[1]
    else:
        refused(*drawn)
