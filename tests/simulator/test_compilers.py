"""Two authors of code: Triton-Ascend of users' kernels, a hand of the operators; either can be asked for any kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import run_op
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.record.run import ASSUMED_FIGURES
from ascendtile.simulator.record.saving import run_bytes

from ..support.kernels import copy_iterations
from ..support.sample_runs import launch, run

TILE = {"iterations": 4, "BLOCK": 32768}  # one copy fits in UB, two do not
SHAPE = sim.shape(4 * 32768, "float32")
TAKEN_BACK = "taken back to fit"


def taken(**more: Any) -> Any:
    return copy_iterations.time((1,), SHAPE, SHAPE, **TILE, **more)


def made(found: Any) -> tuple[str, str]:
    return found.launches[0].compiler, found.options["compiler"]


def test_a_users_kernel_is_made_by_triton_ascend_and_an_operator_by_hand() -> None:
    assert made(taken()) == ("triton-ascend 9.0", "triton-ascend 9.0")
    by_hand = run_op("rms_norm_grad", "tiny", values=False).run
    assert {x.compiler for x in by_hand.launches} == {"ascendc"}
    assert by_hand.options["compiler"] == "ascendc"


@pytest.mark.parametrize(
    ("asked", "author"),
    [
        ({"compiler": "ascendc"}, "ascendc"),
        ({"compiler": "triton-ascend"}, "triton-ascend 9.0"),
        ({"compiler": "triton-ascend", "compiler_version": "8.5"}, "triton-ascend 8.5"),
    ],
    ids=str,
)
def test_either_can_be_asked_for_any_kernel_and_the_record_says_so(asked: Any, author: str) -> None:
    small = sim.shape(4 * 256, "float32")
    with sim.device(**asked):
        kernel = copy_iterations.time((1,), small, small, iterations=4, BLOCK=256)
        operator = run_op("rms_norm_grad", "tiny", values=False).run
    word = copy_iterations.time((1,), small, small, iterations=4, BLOCK=256, **asked)
    for found in (kernel, operator, word):
        assert made(found) == (author, f"{author} (chosen)")


def test_only_the_newer_release_tries_again_after_an_overflow() -> None:
    assert [n for n in taken().notes if TAKEN_BACK in n]
    with pytest.raises(sim.RunError, match="ub overflow"):
        taken(compiler_version="8.5")


def test_values_are_the_same_whoever_makes_the_code() -> None:
    x = np.random.default_rng(0).standard_normal(4 * 64).astype(np.float32)
    found = {}
    for author in ("triton-ascend", "ascendc"):
        out = np.zeros_like(x)
        copy_iterations[(1,)](x, out, iterations=4, BLOCK=64, compiler=author)
        found[author] = out
    np.testing.assert_array_equal(found["triton-ascend"], found["ascendc"])


@pytest.mark.parametrize("option", [{"compiler": "gcc"}, {"compiler_version": "7.0"}], ids=str)
def test_another_compiler_is_refused_with_what_there_is(option: Any) -> None:
    ((name, value),) = option.items()
    for ask in (lambda: taken(**option), lambda: sim.device(**option).__enter__()):
        with pytest.raises(UsageError, match=f"{name} must be .* got '{value}'"):
            ask()


@pytest.mark.parametrize("product", ["ascend910a", "ascend310p", "ascend310b", "ascend910b1", "ascend910c"])
def test_rules_that_were_not_made_for_a_product_are_assumed(product: str) -> None:
    """Those of Atlas A2 hold for A2 and A3."""
    small = sim.shape(1024, "float16")
    with sim.device(product):
        notes = {
            author: copy_iterations.time((1,), small, small, iterations=4, BLOCK=256, compiler=author).notes
            for author in ("triton-ascend", "ascendc")
        }
    told = {
        author: any(n.startswith(ASSUMED_FIGURES) and "compiler.rules" in n for n in found)
        for author, found in notes.items()
    }
    assert told == {"triton-ascend": "910b" not in product and "910c" not in product, "ascendc": False}


def test_the_author_is_kept_in_a_record_and_an_older_one_says_none(tmp_path: Any) -> None:
    path = tmp_path / "x.run"
    taken().save(path)
    assert made(sim.load_run(path)) == ("triton-ascend 9.0", "triton-ascend 9.0")
    before = run_bytes(run(launches=(launch(),)))
    path.write_bytes(before)
    assert sim.load_run(path).launches[0].compiler == ""
