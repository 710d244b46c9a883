"""Loops over vector cores, hints, and the words that the extension shares with Triton."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError
from ascendtile.simulator.language.extra.cann import extension as al


@sim.jit
def halves(out, x, H: tl.constexpr, BIND: tl.constexpr):
    total = tl.zeros((H,), tl.float32)
    i = tl.arange(0, H)
    v = tl.load(x + tl.arange(0, 2 * H))
    for s in al.parallel(0, 2, bind_sub_block=BIND):
        part = al.extract_slice(v, (s * H,), (H,), (1,))
        tl.store(out + s * H + i, part + 1)
        total += part
    tl.store(out + 2 * H + i, total)


@pytest.mark.parametrize("bind", [False, True])
def test_parallel_is_a_loop_that_says_how_it_is_timed(bind: bool) -> None:
    x = np.arange(128, dtype=np.float32)
    out = np.zeros(192, np.float32)
    run = halves[(1,)](out, x, H=64, BIND=bind)
    np.testing.assert_array_equal(out, np.concatenate([x + 1, x[:64] + x[64:]]))
    assert any("all turns are timed on one vector core" in n for n in run.notes) == bind
    assert any("total goes from turn to turn" in w for w in run.warnings) == bind


@sim.jit
def doubled(out, x, TURNS: tl.constexpr, B: tl.constexpr, HOW: tl.constexpr):
    for turn in range(TURNS):
        v = tl.load(x + turn * B + tl.arange(0, B))
        w = v * 2
        if HOW == "word":
            al.multibuffer(w, 2)
        if HOW == "hint":
            al.compile_hint(w, "hivm.multi_buffer", 2)
        if HOW == "other":
            al.compile_hint(w, "something", True)
        tl.store(out + turn * B + tl.arange(0, B), w + v)


def test_a_tile_has_the_buffers_that_the_kernel_asks_for() -> None:
    x = np.ones(4096, np.float32)
    peak = {}
    for how in ("", "word", "hint", "other"):
        with sim.device(multibuffer=1):
            out = np.zeros_like(x)
            peak[how] = doubled[(1,)](out, x, TURNS=4, B=1024, HOW=how).buffers["UB"].peak_bytes
        np.testing.assert_array_equal(out, 3 * x)
    assert peak["other"] == peak[""]
    assert peak["word"] == peak["hint"] == peak[""] + 4096


@sim.jit
def three_buffers(x):
    v = tl.load(x + tl.arange(0, 64))
    al.multibuffer(v, 3)


def test_two_is_the_only_number_of_buffers() -> None:
    with pytest.raises(CompileError, match="a tile can have 2 buffers, got int 3"):
        three_buffers[(1,)](np.zeros(64, np.float32))


@sim.jit
def shared_words(out, small, x, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, al.flip(v))
    tl.store(out + N + i, al.sort(v, descending=True))
    tl.store(small + i, al.cast(v, tl.int8, overflow_mode="saturate"))
    tl.store(small + N + i, al.cast(al.cast(v, tl.int32), tl.int8, overflow_mode="trunc"))


def test_words_that_triton_has_too() -> None:
    x = (np.random.default_rng(3).standard_normal(48) * 300).astype(np.float32)
    out, small = np.zeros(96, np.float32), np.zeros(96, np.int8)
    shared_words[(1,)](out, small, x, N=48)
    np.testing.assert_array_equal(out, np.concatenate([x[::-1], np.sort(x)[::-1]]))
    np.testing.assert_array_equal(small[:48], np.clip(np.trunc(x), -128, 127).astype(np.int8))
    np.testing.assert_array_equal(small[48:], np.trunc(x).astype(np.int32).astype(np.int8))
