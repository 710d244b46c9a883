"""What comparisons, selects and constants take by the compiler's rules, by release, and which attention fits."""

from __future__ import annotations

from typing import Any

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import BufferOverflowError
from ascendtile.simulator.launch import prepare
from ascendtile.simulator.timing.fitting import require_places

PRODUCT = "ascend910b3"
B = 4096
RELEASES = ("8.5", "9.0")


@sim.jit
def chosen(x, y, out, WHAT: tl.constexpr, B: tl.constexpr):
    o = tl.arange(0, B)
    a = tl.load(x + o)
    b = tl.load(y + o)
    if WHAT == "where":
        a = tl.where(a < b, a, b)
    elif WHAT == "number":
        a = tl.where(a < 2.5, a, b)
    elif WHAT == "bits":
        a = (a < b).to(tl.float32)
    else:
        a = a + b
    tl.store(out + o, a)


@sim.jit
def summed(x, out, n, WHAT: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    """Two loops that start from the same constant, or one; what a loop carries is read or not."""
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    t = tl.zeros((R, C), tl.float32)
    last = t
    for i in range(n):
        last = tl.load(x + i * R * C + at) * 2.0
        t += last
    if WHAT == "last":
        t += last
    if WHAT == "twice":
        u = tl.zeros((R, C), tl.float32)
        for i in range(n):
            u += tl.exp(tl.load(x + i * R * C + at))
        t = t + u
    tl.store(out + at, t)


@sim.jit
def narrow(x, out, rows, R: tl.constexpr, C: tl.constexpr, MASKED: tl.constexpr):
    i = tl.arange(0, R)[:, None]
    at = i * C + tl.arange(0, C)[None, :]
    ok = None
    if MASKED:
        ok = i < rows
    tl.store(out + at, tl.exp(tl.load(x + at)).to(tl.float16), mask=ok)


@sim.jit
def attention(
    q,
    k,
    v,
    out,
    heads,
    N: tl.constexpr,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    for head in range(tl.program_id(0), heads, tl.num_programs(0)):
        m, d = tl.arange(0, BM), tl.arange(0, D)
        query = tl.load(q + head * N * D + m[:, None] * D + d[None, :])
        top = tl.full((BM,), float("-inf"), tl.float32)
        total = tl.zeros((BM,), tl.float32)
        acc = tl.zeros((BM, D), tl.float32)
        for first in range(0, N, BN):
            n = first + tl.arange(0, BN)
            at = head * N * D + n[:, None] * D + d[None, :]
            s = tl.dot(query, tl.trans(tl.load(k + at))) * 0.125
            if CAUSAL:
                s = tl.where(n[None, :] <= m[:, None], s, float("-inf"))
            new = tl.maximum(top, tl.max(s, 1))
            p = tl.exp(s - new[:, None])
            shrink = tl.exp(top - new)
            total = total * shrink + tl.sum(p, 1)
            acc = acc * shrink[:, None] + tl.dot(p.to(tl.float16), tl.load(v + at))
            top = new
        tl.store(out + head * N * D + m[:, None] * D + d[None, :], (acc / total[:, None]).to(tl.float16))


def shape(n: int, dtype: str = "float32") -> Any:
    return sim.shape((n,), dtype)


def need(kernel: Any, *args: Any, release: str = "9.0", **constants: Any) -> int:
    """Bytes of UB that the message of the first attempt tells on a device that has next to none."""
    options = {"overrides": {"buffers.ub": 16384}, "compiler_version": release, "multibuffer": 1}
    with sim.device(PRODUCT, **options), pytest.raises(BufferOverflowError) as found:
        require_places(prepare(kernel, (1,), args, constants))
    assert found.value.space == "UB"
    return found.value.need_bytes


@pytest.mark.parametrize("release", RELEASES)
def test_a_select_has_a_buffer_of_its_own_and_the_other_operations_none(release: str) -> None:
    args = (shape(B),) * 3
    plain = need(chosen, *args, release=release, WHAT="add", B=B)
    assert plain == 2 * 4 * B
    assert need(chosen, *args, release=release, WHAT="where", B=B) >= 3 * 4 * B


@pytest.mark.parametrize("release", RELEASES)
def test_the_number_of_a_comparison_is_written_out(release: str) -> None:
    args = (shape(B),) * 3
    two = need(chosen, *args, release=release, WHAT="where", B=B)
    one = need(chosen, *args, release=release, WHAT="number", B=B)
    assert 4 * B - 1024 <= one - two <= 4 * B + 1024


def test_release_8_5_orders_int32_as_int64_and_later_ones_by_their_maximum() -> None:
    """8 bytes for each of two operands behind the two loaded ones, and nothing but a third tile."""
    args = (shape(B, "int32"), shape(B, "int32"), shape(B))
    by_maximum = need(chosen, *args, WHAT="bits", B=B)
    assert by_maximum < 3 * 4 * B
    assert need(chosen, *args, release="8.5", WHAT="bits", B=B) >= 2 * 8 * B + 4 * B
    floats = (shape(B),) * 3
    assert need(chosen, *floats, release="8.5", WHAT="bits", B=B) == need(chosen, *floats, WHAT="bits", B=B)


def test_loops_that_start_from_one_constant_keep_one_tile_of_it() -> None:
    tile = 16 * 256 * 4
    args = (shape(1 << 16), shape(16 * 256), 4)
    once = need(summed, *args, WHAT="once", R=16, C=256)
    twice = need(summed, *args, WHAT="twice", R=16, C=256)
    assert (once, twice) == (2 * tile, 4 * tile)


def test_what_a_loop_carries_for_nobody_takes_no_room() -> None:
    tile = 16 * 256 * 4
    args = (shape(1 << 16), shape(16 * 256), 4)
    assert (
        need(summed, *args, WHAT="last", R=16, C=256)
        > need(summed, *args, WHAT="once", R=16, C=256)
        == 2 * tile
    )


def test_a_mask_keeps_the_axes_of_a_tile_apart_so_that_its_cast_is_not_in_place() -> None:
    n = 64 * 128
    args = (shape(n), shape(n, "float16"), 60)
    assert need(narrow, *args, R=64, C=128, MASKED=False) == 4 * n
    assert need(narrow, *args, R=64, C=128, MASKED=True) == 6 * n


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    ("rows", "columns", "depth", "causal", "fits"),
    [
        (128, 128, 128, True, False),
        (64, 256, 256, True, False),
        (64, 128, 256, True, True),
        (128, 64, 128, True, True),
        (64, 256, 128, True, True),
        (64, 64, 256, True, True),
        (128, 256, 128, False, True),
        (64, 512, 64, False, True),
        (256, 128, 64, False, True),
        (128, 512, 64, False, False),
        (256, 256, 64, False, False),
    ],
)
def test_attention_fits_where_it_was_compiled(
    rows: int, columns: int, depth: int, causal: bool, fits: bool
) -> None:
    """Verdicts published for CANN 9.1.0-beta.1, 20 cores (fa-* of ub_cases.csv)."""
    x = shape(40 * 1024 * depth, "float16")
    with sim.device(PRODUCT):
        call = prepare(
            attention,
            (20,),
            (x, x, x, x, 40),
            {"N": 1024, "D": depth, "BM": rows, "BN": columns, "CAUSAL": causal},
        )
        if fits:
            require_places(call)
        else:
            with pytest.raises(BufferOverflowError, match="overflow"):
                require_places(call)
