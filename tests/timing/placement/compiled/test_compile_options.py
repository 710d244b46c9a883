"""Compile options of Triton-Ascend that say which tiles have copies (compiler.md 4.5) and how mixed loops are cut (5.9)."""

from __future__ import annotations

from typing import Any

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

M, N, T = 64, 64, 4


@sim.jit
def scaled(x, y, out, T, M: tl.constexpr, N: tl.constexpr):
    """A loop with a product and Vector work: operands in L1, the product and a loaded tile in UB."""
    m, n = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    for t in range(T):
        at = (t * M + m) * N + n
        p = tl.dot(tl.load(x + at), tl.load(x + tl.arange(0, N)[:, None] * N + n))
        tl.store(out + at, tl.exp(p) * tl.load(y + at))


@sim.jit
def products(x, out, T, M: tl.constexpr):
    m, n = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    for t in range(T):
        at = (t * M + m) * M + n
        tl.store(out + at, tl.dot(tl.load(x + at), tl.load(x + at)))


def run_scaled(**options: Any) -> Any:
    flat = [sim.shape(T * M * N, kind) for kind in ("float16", "float32", "float32")]
    with sim.device("ascend910b3"):
        return scaled.time((1,), *flat, T, M=M, N=N, **options)


def copies(run: Any) -> dict[str, int]:
    """The most copies of a tile in each buffer."""
    return {
        s: max((v.copies for v in b.peak), default=0) for s, b in run.buffers.items() if s in ("UB", "L1")
    }


MIXED = [("only-cube", 1, 2), ("only-vector", 2, 1), ("no-limit", 2, 2)]


@pytest.mark.parametrize("name", ["limit_auto_multi_buffer_buffer", "limit_mix_auto_multi_buffer_buffer"])
@pytest.mark.parametrize(("limit", "ub", "l1"), MIXED)
def test_a_limit_says_which_buffers_of_a_mixed_program_have_copies(name, limit, ub, l1) -> None:
    run = run_scaled(**{name: limit})
    assert copies(run) == {"UB": ub, "L1": l1}
    if limit == "only-cube":
        assert run.cycles == run_scaled().cycles
    for space in ("UB", "L1"):
        off = run_scaled(**{name: limit, f"disable_multi_buffer_on_{space.lower()}": True})
        assert copies(off) == {**copies(run), space: 1}
    with pytest.raises(sim.UsageError, match="must be 'only-cube' or 'only-vector' or 'no-limit', got 'l1'"):
        run_scaled(**{name: "l1"})


def test_an_accumulator_has_a_copy_only_without_limit() -> None:
    def l0c(**options: Any) -> int:
        with sim.device("ascend910b3"):
            flat = sim.shape(T * M * M, "float16"), sim.shape(T * M * M, "float32")
            return products.time((1,), *flat, T, M=M, **options).buffers["L0C"].peak_bytes

    no_limit = {"limit_auto_multi_buffer_of_local_buffer": "no-limit"}
    assert l0c() == l0c(limit_auto_multi_buffer_of_local_buffer="no-l0c") == 4 * M * M
    assert l0c(**no_limit) == 8 * M * M
    assert l0c(**no_limit, disable_multi_buffer_on_l0c=True) == 4 * M * M


def test_local_copies_only_leave_one_place_in_the_workspace() -> None:
    one, four = (run_scaled(set_workspace_multibuffer=n) for n in (1, 4))
    local = run_scaled(set_workspace_multibuffer=4, limit_auto_multi_buffer_only_for_local_buffer=True)
    assert local.cycles == one.cycles > four.cycles
    assert copies(local) == copies(four)


def test_options_of_the_compiler_are_named_where_an_author_makes_the_code() -> None:
    run = run_scaled(compiler="ascendc", disable_multi_buffer_on_ub=True)
    assert run.cycles == run_scaled(compiler="ascendc").cycles
    assert any("disable_multi_buffer_on_ub=True, because an author of Ascend C" in w for w in run.warnings)
