"""Compile options of Triton-Ascend that say which tiles have copies (compiler.md 4.5) and how mixed loops are cut (5.9)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import BufferOverflowError
from ascendtile.simulator.launch import prepare
from ascendtile.simulator.timing.fitting import require_places
from ascendtile.simulator.timing.placement.compiled.tiles import FROM_CUBE
from ascendtile.simulator.timing.placement.memory_spaces import UB

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


# -- loops that are cut once more --------------------------------------------------------------------------------------


@sim.jit
def flash(q, k, v, out, steps, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Attention of M rows: tiles of scores, and what the loop carries."""
    m, n, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    rows = tl.load(q + m[:, None] * D + d[None, :])
    most, total = tl.full((M,), -1e30, tl.float32), tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    for t in range(steps):
        at = (t * N + n)[:, None] * D + d[None, :]
        s = tl.dot(rows, tl.trans(tl.load(k + at))) * 0.125
        now = tl.maximum(most, tl.max(s, 1))
        p = tl.exp(s - now[:, None])
        scale = tl.exp(most - now)
        total = total * scale + tl.sum(p, 1)
        acc = acc * scale[:, None] + tl.dot(p.to(tl.float16), tl.load(v + at))
        most = now
    tl.store(out + m[:, None] * D + d[None, :], acc / total[:, None])


def attention(m: int, n: int, d: int, steps: int = 3, **options: Any) -> Any:
    sizes = m * d, steps * n * d, steps * n * d
    tensors = *(sim.shape(s, "float16") for s in sizes), sim.shape(m * d, "float32")
    with sim.device("ascend910b3"):
        return flash.time((1,), *tensors, steps, M=m, N=n, D=d, **options)


def notes(run: Any) -> str:
    return "\n".join(n for n in run.launches[0].notes if n.startswith("tile_mix"))


def moved(run: Any) -> dict[str, float]:
    """Bytes on the way, by pipe."""
    t = run.launches[0].timeline
    total = dict.fromkeys(t.pipes, 0.0)
    for pipe, size in zip(t.pipe, t.bytes, strict=True):
        total[t.pipes[pipe]] += float(size)
    return total


@given(
    m=st.sampled_from((64, 128)), n=st.sampled_from((64, 128)), d=st.sampled_from((32, 64)), two=st.booleans()
)
@settings(max_examples=6, deadline=None)
def test_pieces_of_the_vector_part_take_less_room_and_no_less_time_for_the_same_bytes(m, n, d, two) -> None:
    """Scores are the largest tiles; the sum that the loop carries stays whole."""
    how = {"enable_auto_bind_sub_block": two}
    runs = [attention(m, n, d, tile_mix_vector_loop=pieces, **how) for pieces in (1, 2, 4)]
    assert runs[0].cycles == attention(m, n, d, **how).cycles
    for pieces, one, more in zip((2, 4), runs[:-1], runs[1:], strict=True):
        assert f"tile_mix_vector_loop={pieces} cuts the loop in line" in notes(more)
        assert more.buffers["UB"].peak_bytes < one.buffers["UB"].peak_bytes
        assert more.buffers["UB"].peak_bytes >= 4 * m * d // (1 + two)  # acc
        assert more.cycles > one.cycles
        assert moved(more) == moved(one)
        assert more.buffers["L1"].peak_bytes == one.buffers["L1"].peak_bytes
        busy = [r.pipes["AIV.V"].busy_cycles for r in (one, more)]
        assert busy[1] > busy[0]


def slots(m: int, n: int, d: int, pieces: int) -> Any:
    sizes = m * d, 3 * n * d, 3 * n * d
    tensors = *(sim.shape(s, "float16") for s in sizes), sim.shape(m * d, "float32")
    with sim.device("ascend910b3", tile_mix_vector_loop=pieces):
        return require_places(prepare(flash, (1,), (*tensors, 3), {"M": m, "N": n, "D": d}))[1]


@given(
    m=st.sampled_from((64, 128)),
    n=st.sampled_from((64, 128)),
    d=st.sampled_from((32, 64)),
    pieces=st.sampled_from((2, 4)),
)
@settings(max_examples=6, deadline=None)
def test_a_tile_of_the_loop_has_an_nth_of_its_rows_and_what_the_loop_carries_has_all(m, n, d, pieces) -> None:
    whole, cut = (slots(m, n, d, k) for k in (1, pieces))
    sizes = [
        {(s.values[0].id, s.why): s.size for s in x.slots if s.space == UB and s.size and s.values}
        for x in (whole, cut)
    ]
    known = {v.id: v for s in whole.slots for v in s.values}
    inside = 0
    for i, why in sizes[0].keys() & sizes[1].keys():
        in_loop = i in cut.pieces.made and i in cut.pieces.axis_of
        in_pieces = in_loop and (i not in cut.pieces.whole or why == FROM_CUBE)
        inside += in_pieces
        assert sizes[0][i, why] == sizes[1][i, why] * (pieces if in_pieces else 1), known[i]
    assert inside >= 2
    carried = {v.name for s in cut.slots for v in s.values if v.id not in cut.pieces.made and s.size}
    assert {"acc", "most", "total"} <= carried


def test_pieces_of_a_product_make_room_in_l0c() -> None:
    """256 x 256 scores are twice what L0C has; a part of the Cube that fits stays whole."""
    with pytest.raises(BufferOverflowError, match=r"cc overflow|l0c overflow"):
        str(attention(256, 256, 32, tile_mix_vector_loop=4).cycles)
    runs = [attention(256, 256, 32, tile_mix_vector_loop=4, tile_mix_cube_loop=n) for n in (2, 4)]
    assert [r.buffers["L0C"].peak_bytes for r in runs] == [131072, 65536]
    assert moved(runs[0]) == moved(runs[1])
    assert runs[0].cycles < runs[1].cycles
    said = notes(runs[0])
    assert "tile_mix_cube_loop=2 cuts the product in line" in said
    assert "it takes 32768 of the 131072 bytes of L0C" in said


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"tile_mix_vector_loop": 3}, "the 64 rows of a tile in line"),
        ({"tile_mix_vector_loop": 32}, "a piece of a tile in line"),
        ({"tile_mix_cube_loop": 8}, "rows of the product in line"),
        ({"tile_mix_cube_loop": 2}, "of the 131072 bytes of L0C"),
        (
            {"tile_mix_vector_loop": 2, "limit_auto_multi_buffer_only_for_local_buffer": True},
            "only_for_local_buffer is on",
        ),
    ],
)
def test_what_is_not_cut_is_as_it_was_and_a_note_says_why(options, why) -> None:
    run, plain = attention(64, 64, 32, **options), attention(64, 64, 32)
    assert "has no effect" in notes(run)
    assert why in notes(run)
    assert run.cycles == plain.cycles
    assert {k: b.peak_bytes for k, b in run.buffers.items()} == {
        k: b.peak_bytes for k, b in plain.buffers.items()
    }


def test_a_program_without_hand_overs_has_nothing_to_cut() -> None:
    with sim.device("ascend910b3"):
        flat = sim.shape(T * M * M, "float16"), sim.shape(T * M * M, "float32")
        run = products.time((1,), *flat, T, M=M, tile_mix_vector_loop=2, tile_mix_cube_loop=2)
    assert notes(run).count("has no effect: no loop hands tiles between Cube and Vector cores") == 2


@pytest.mark.parametrize("option", ["tile_mix_vector_loop", "tile_mix_cube_loop"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "2", True])
def test_pieces_are_a_positive_integer(option, value) -> None:
    with pytest.raises(sim.UsageError, match=f"{option} must be a number of pieces, an integer from 1, got"):
        attention(64, 64, 32, **{option: value})


def test_values_do_not_depend_on_the_pieces() -> None:
    rng = np.random.default_rng(5)
    q, k, v = (rng.standard_normal(n).astype(np.float16) for n in (64 * 32, 3 * 64 * 32, 3 * 64 * 32))
    outs = []
    for pieces in (1, 2):
        outs.append(np.empty(64 * 32, np.float32))
        with sim.device("ascend910b3"):
            flash[(1,)](
                q, k, v, outs[-1], 3, M=64, N=64, D=32, tile_mix_vector_loop=pieces, tile_mix_cube_loop=pieces
            )
    assert (outs[0] == outs[1]).all()


def test_tiles_that_are_loaded_and_stored_come_and_go_in_pieces() -> None:
    """Each piece of a transfer waits for the one before: its fixed cycles once more, for the same bytes."""
    one, two, four = (run_scaled(tile_mix_vector_loop=n) for n in (1, 2, 4))
    assert moved(one) == moved(two) == moved(four)
    for pipe in ("AIV.MTE2", "AIV.MTE3", "AIV.V"):
        busy = [r.pipes[pipe].busy_cycles for r in (one, two, four)]
        assert busy[0] < busy[1] < busy[2]
    assert one.cycles < two.cycles < four.cycles


def test_the_usual_number_of_pieces_is_one() -> None:
    assert run_scaled(tile_mix_vector_loop=1, tile_mix_cube_loop=1).cycles == run_scaled().cycles
    assert run_scaled(tile_mix_vector_loop=None).cycles == run_scaled().cycles
