"""Index arithmetic beyond int32 is told as such, also where a mask made of it hides the access; data may wrap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import OutOfBoundsError

B = 16
FAR = 1_500_000_000  # three rows of that many elements lie beyond int32


@sim.jit
def masked(x, idx, out, stride, n, B: tl.constexpr, WIDE: tl.constexpr):
    pid = tl.program_id(0)
    row = pid.to(tl.int64) if WIDE else pid
    i = row * stride + tl.arange(0, B)
    tl.store(out + pid * B + tl.arange(0, B), tl.load(x + i, mask=(i >= 0) & (i < n), other=0.0))


@sim.jit
def comes_back(x, idx, out, stride, n, B: tl.constexpr, WIDE: tl.constexpr):
    pid = tl.program_id(0)
    row = pid.to(tl.int64) if WIDE else pid
    i = row * 65536 * 65536 + tl.arange(0, B)
    tl.store(out + pid * B + tl.arange(0, B), tl.load(x + i, mask=i < n, other=0.0))


@sim.jit
def tile(x, idx, out, stride, n, B: tl.constexpr, WIDE: tl.constexpr):
    row, column = tl.arange(0, 4), tl.arange(0, 4)
    wide = row.to(tl.int64) if WIDE else row
    i = wide[:, None] * stride + column[None, :]
    at = row[:, None] * 4 + column[None, :]
    tl.store(out + at, tl.load(x + i, mask=(i >= 0) & (i < n), other=0.0))


@sim.jit
def gathered(x, idx, out, stride, n, B: tl.constexpr, WIDE: tl.constexpr):
    row = tl.load(idx + tl.arange(0, B))
    row = row.to(tl.int64) if WIDE else row
    i = row * stride
    tl.store(out + tl.arange(0, B), tl.load(x + i, mask=(i >= 0) & (i < n), other=0.0))


@sim.jit
def looped(x, idx, out, stride, n, B: tl.constexpr, WIDE: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for k in range(4):
        start = (k.to(tl.int64) if WIDE else k) * stride
        total += tl.load(x + start + i, mask=(start + i >= 0) & (start + i < n), other=0.0)
    tl.store(out + i, total)


@sim.jit
def widened(x, idx, out, stride, n, B: tl.constexpr, WIDE: tl.constexpr):
    row = tl.arange(0, B)
    i = row.to(tl.int64) * stride if WIDE else (row * stride).to(tl.int64)
    tl.store(out + row, tl.load(x + i, mask=(i >= 0) & (i < n), other=0.0))


@sim.jit
def only_the_mask(x, idx, out, stride, n, B: tl.constexpr, WIDE: tl.constexpr):
    pid, i = tl.program_id(0), tl.arange(0, B)
    row = pid.to(tl.int64) if WIDE else pid
    at = pid * B + i
    tl.store(out + at, tl.load(x + at, mask=row * stride + i < n, other=0.0))


@sim.jit
def mask_of_a_tile(x, idx, out, stride, n, B: tl.constexpr, WIDE: tl.constexpr):
    i = tl.arange(0, B)
    row = i.to(tl.int64) if WIDE else i
    tl.store(out + i, tl.load(x + i, mask=(row * stride < n) & (i < n), other=0.0))


@sim.jit
def summed(x, idx, out, stride, n, B: tl.constexpr, WIDE: tl.constexpr):
    length = tl.load(idx + tl.arange(0, B)) * 0 + stride // 8
    i = tl.sum(length.to(tl.int64) if WIDE else length, axis=0)
    tl.store(out, tl.load(x + i, mask=(i >= 0) & (i < n), other=0.0))


@sim.jit
def scanned(x, idx, out, stride, n, B: tl.constexpr, WIDE: tl.constexpr, BACK: tl.constexpr = False):
    length = tl.load(idx + tl.arange(0, B)) * 0 + stride // 8
    i = tl.cumsum(length.to(tl.int64) if WIDE else length, axis=0, reverse=BACK)
    tl.store(out + tl.arange(0, B), tl.load(x + i, mask=(i >= 0) & (i < n), other=0.0))


@sim.jit
def narrowed(x, idx, out, stride, n, B: tl.constexpr, WIDE: tl.constexpr):
    i = tl.load(idx + tl.arange(0, B)).to(tl.int64) * stride
    i = i if WIDE else i.to(tl.int32)
    tl.store(out + tl.arange(0, B), tl.load(x + i, mask=(i >= 0) & (i < n), other=0.0))


@sim.jit
def narrowed_scalar(x, idx, out, stride, n, B: tl.constexpr, WIDE: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * stride
    i = i if WIDE else i.to(tl.int32)
    tl.store(out + tl.program_id(0), tl.load(x + i, mask=(i >= 0) & (i < n), other=0.0))


@sim.jit
def unsigned(x, idx, out, stride, n, B: tl.constexpr, WIDE: tl.constexpr):
    pid = tl.program_id(0)
    i = pid.to(tl.int64 if WIDE else tl.uint32) * stride
    tl.store(out + pid, tl.load(x + i, mask=i < n, other=0.0))


KERNELS = [masked, comes_back, tile, gathered, looped, widened, only_the_mask, mask_of_a_tile]
OTHERS = [summed, scanned, narrowed, narrowed_scalar, unsigned]
ROWS = (masked, comes_back, only_the_mask)


def faults(kernel: Any, **constants: Any) -> list[Any]:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    programs = 4 if kernel in (narrowed_scalar, unsigned) else 3 if kernel in ROWS else 1
    run = kernel[(programs,)](x, np.arange(B, dtype=np.int32), out, FAR, 64, B=B, **constants)
    return [w for w in run.warnings if w.kind == "fault"]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("values_only", [False, True])
def test_an_index_beyond_int32_is_told_once_with_line_and_way_out(kernel: Any, values_only: bool) -> None:
    with sim.device(time=not values_only):
        (text,) = faults(kernel, WIDE=False)
    assert "int32 overflow: " in text
    assert "does not fit in int32" in text
    assert "take .to(tl.int64)" in text
    assert text.place.rpartition(":")[0].endswith("test_index_overflow.py")
    assert text.programs


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (summed, "int32 overflow: length.sum() = 3,000,000,000 in program 0"),
        (scanned, "int32 overflow: length.cumsum() = 3,000,000,000 in program 0"),
        (narrowed, "int32 overflow: i.to(int32) = 22,500,000,000 in program 0"),
        (narrowed_scalar, "int32 overflow: i.to(int32) = 4,500,000,000 in program 3"),
        (unsigned, "uint32 overflow: pid * stride = 4,500,000,000 in program 3"),
    ],
    ids=lambda k: getattr(k, "name", ""),
)
def test_sums_casts_and_unsigned_products_are_told_with_what_they_are(kernel: Any, words: str) -> None:
    (text,) = faults(kernel, WIDE=False)
    assert words in text
    assert ("keep it in 64 bits" if "to(" in words else "take .to(tl.int64)") in text


def test_a_running_sum_from_behind_overflows_in_the_first_elements() -> None:
    (text,) = faults(scanned, WIDE=False, BACK=True)
    assert "length.cumsum() = 3,000,000,000" in text
    assert faults(scanned, WIDE=True, BACK=True) == []


@pytest.mark.parametrize("kernel", [*KERNELS, *OTHERS], ids=lambda k: k.name)
def test_in_64_bits_nothing_is_said(kernel: Any) -> None:
    assert faults(kernel, WIDE=True) == []


def test_the_message_has_names_and_numbers() -> None:
    (text,) = faults(masked, WIDE=False)
    assert "int32 overflow: pid * stride = 3,000,000,000 in program 2" in text
    assert "of -1,294,967,296 instead" in text
    assert text.programs == (2,)


def test_what_only_a_mask_is_made_of_is_called_so() -> None:
    (text,) = faults(only_the_mask, WIDE=False)
    assert "and the mask is made of -1,294,967,296 instead" in text


@sim.jit
def rows(x, out, stride, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i * stride, mask=(i % 4 == 0) & (i < n), other=0.0))


@sim.jit
def gathered_rows(x, out, stride, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = (i ^ 1) ^ 1  # no longer a plain range
    far = at * stride
    tl.store(out + i, tl.load(x + far, mask=(at % 4 == 0) & (at < n) & (far < 64), other=0.0))


@sim.jit
def own_row(x, out, stride, n, B: tl.constexpr):
    pid, i = tl.program_id(0), tl.arange(0, B)
    mask = (pid % 4 == 0) & (pid < n) & (i < B)
    tl.store(out + pid * B + i, tl.load(x + pid * stride + i, mask=mask, other=0.0))


@pytest.mark.parametrize("kernel", [rows, gathered_rows, own_row], ids=lambda k: k.name)
@pytest.mark.parametrize("n", [1, 4, 5])
def test_lanes_that_a_mask_without_overflow_hides_use_no_index(kernel: Any, n: int) -> None:
    """Rows 2 and 3 lie beyond int32 but are hidden; row 4 is row 0 again."""
    run = kernel[(5,) if kernel is own_row else (1,)](
        np.zeros(64, np.float32), np.zeros(5 * B, np.float32), 1 << 30, n, B=B
    )
    told = [w for w in run.warnings if w.kind == "fault"]
    assert len(told) == (n == 5)
    assert all("4,294,967,296" in text for text in told)


@sim.jit
def increments(x, out, stride, turns, AHEAD: tl.constexpr):
    at = 0
    for k in range(turns):
        following = at + stride
        tl.store(out + k, tl.load(x + tl.maximum(following if AHEAD else at, 0) // stride))
        at = following


@pytest.mark.parametrize("values_only", [False, True])
@pytest.mark.parametrize(("turns", "ahead", "told"), [(4, 0, 0), (5, 0, 1), (3, 1, 0), (4, 1, 1)])
def test_an_increment_counts_where_it_is_used(turns: int, ahead: int, told: int, values_only: bool) -> None:
    with sim.device(time=not values_only):
        run = increments[(1,)](np.zeros(64, np.float32), np.zeros(8, np.float32), 1 << 29, turns, AHEAD=ahead)
    assert len([w for w in run.warnings if w.kind == "fault"]) == told


@sim.jit
def bare(x, stride, B: tl.constexpr):
    tl.store(x + tl.program_id(0) * stride + tl.arange(0, B), 1.0)


def test_an_access_that_is_out_of_bounds_by_overflow_says_so() -> None:
    with pytest.raises(
        OutOfBoundsError, match=r"int32 overflow: program_id\(0\) \* stride = 2,147,483,648"
    ) as e:
        bare.time((3,), sim.shape(1 << 33, "float32"), 1 << 30, B=B)
    assert "take .to(tl.int64)" in str(e.value)
    assert "mask" not in str(e.value)


def test_an_access_of_another_program_that_is_out_of_bounds_for_itself_does_not() -> None:
    with pytest.raises(OutOfBoundsError, match=r"in program 1 is out of bounds: .* Mask the access"):
        bare[(3,)](np.zeros(64, np.float32), 1 << 30, B=B)


@sim.jit
def hashes(x, out, seed, B: tl.constexpr):
    i = tl.arange(0, B)
    h = (i + tl.program_id(0)) * 1103515245 + 12345
    h = (h ^ (h >> 16)) * 73244475
    random = tl.randint(seed, i)
    tl.store(out + i, tl.load(x + (h & 31)) + tl.load(x + (random % 32)) + tl.rand(seed, i))
    tl.store(out + B + i, (h * 31).to(tl.float32), mask=((h * 7) & 15) < 9)
    u = (i.to(tl.uint32) + 2654435769) * 2246822519
    u = (u.to(tl.uint64) * 4294967291).to(tl.uint32) ^ (u >> 15)
    tl.store(out + B + i, tl.load(x + u % 64), mask=(i - 3).to(tl.uint32) - 2 < 5)


def test_hashes_and_random_numbers_wrap_in_silence() -> None:
    run = hashes[(1,)](np.zeros(64, np.float32), np.zeros(2 * B, np.float32), 42, B=B)
    assert not [w for w in run.warnings if w.kind == "fault"]


@sim.jit
def beyond_memory(x, B: tl.constexpr):
    for _ in range(3):
        x += 1 << 62
    tl.store(x + tl.arange(0, B) if B > 1 else x, 1.0)


@pytest.mark.parametrize("block", [1, 16])
def test_a_pointer_beyond_64_bits_is_out_of_bounds_and_says_so(block: int) -> None:
    with pytest.raises(
        OutOfBoundsError, match=r"pointer overflow: x \+ 4,611,686,018,427,387,904 is element 9,2"
    ):
        beyond_memory[(1,)](np.zeros(4, np.float32), B=block)


@sim.jit
def narrow(x, index, out, n, WIDE: tl.constexpr, B: tl.constexpr):
    """Products of indices that are loaded in 8 or 16 bits."""
    i = tl.load(index + tl.arange(0, B))
    i = i.to(tl.int32) if WIDE else i
    at = i * i
    tl.store(out + tl.arange(0, B), tl.load(x + at, mask=(at >= 0) & (at < n), other=0.0))


@pytest.mark.parametrize(
    ("dtype", "last"),
    [(np.int8, 11), (np.int8, 12), (np.uint8, 15), (np.uint8, 16), (np.int16, 181), (np.int16, 182)],
)
def test_narrow_indices_overflow_where_their_products_do_not_fit(dtype: type, last: int) -> None:
    index = np.array([1, 2, 3, last], dtype)
    x, out = np.zeros(1 << 16, np.float32), np.zeros(4, np.float32)
    for wide in (False, True):
        with sim.device(time=False):
            run = narrow[(1,)](x, index, out, len(x), WIDE=wide, B=4)
        fits = wide or last * last <= np.iinfo(dtype).max
        assert [w for w in run.faults if f"{dtype.__name__} overflow: i * i = {last * last:,}" in w] == list(
            run.faults
        )
        assert bool(run.faults) != fits


@sim.jit
def summed_in_a_loop(x, o, index, s, n, V: tl.constexpr, WIDE: tl.constexpr):
    r = tl.arange(0, 16)
    zero = tl.full((), 0, tl.int64 if WIDE else tl.int32)
    a = zero
    if V == "for":
        for _ in range(4):
            a += s
    elif V == "while":
        while a // s < 1 and a >= 0:
            a += s
        a += s
    elif V == "doubled":
        a += s
        for _ in range(2):
            a = a + a
    elif V == "product":
        a += 1
        for _ in range(32):
            a = a * 2
    elif V == "tile":
        a = zero + r
        for _ in range(4):
            a += s
        a -= r
    elif V == "down":
        a += n
        for _ in range(4):
            a -= s
        a -= n
    elif V == "nested":
        for _ in range(2):
            for _ in range(2):
                a += s
    elif V == "own trip counts":
        for _ in range(2 * tl.program_id(0)):
            a += s
    at = tl.program_id(0) * 16 + r
    tl.store(o + at, tl.load(x + a + r, mask=(a + r >= 0) & (a + r < n), other=0.0))


LOOPS = ["for", "while", "doubled", "product", "tile", "down", "nested", "own trip counts"]


def decided(kernel: Any, s: int = FAR, programs: int = 4, **constants: Any) -> list[Any]:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    return list(kernel[(programs,)](x, out, np.full(16, 2, np.int32), s, 64, **constants).faults)


@pytest.mark.parametrize("values_only", [False, True])
@pytest.mark.parametrize("form", LOOPS)
def test_an_index_that_wraps_in_a_loop_is_told_behind_it(form: str, values_only: bool) -> None:
    with sim.device(time=not values_only):
        told = decided(summed_in_a_loop, 1 << 30, 3, V=form, WIDE=False)
        assert any("int32 overflow" in text and "the address is made of" in text for text in told)
        assert decided(summed_in_a_loop, 1 << 30, 3, V=form, WIDE=True) == []


@sim.jit
def decides(x, o, index, s, n, V: tl.constexpr, WIDE: tl.constexpr):
    p, r = tl.program_id(0), tl.arange(0, 16)
    row = p.to(tl.int64) if WIDE else p
    if V == "return":
        if row * s >= n:
            return
        tl.store(o + p * 16 + r, 1.0)
    elif V == "branch":
        if row * s < n and p >= 0:
            tl.store(o + p * 16 + r, 1.0)
    elif V == "loaded":
        k = tl.load(index + p)
        if (k.to(tl.int64) if WIDE else k) * s < n:
            tl.store(o + p * 16 + r, 1.0)
    elif V == "end":
        c = 0
        for _ in range(0, row * s, 1 << 30):
            c += 1
        tl.store(o + p, c)
    elif V == "start":
        for _ in range(row * s, n, 1 << 30):
            tl.store(o + p * 16 + r, 1.0)
    elif V == "while":
        i, c = row * s, 0
        while i < n and c < 3:
            c += 1
            i += 1 << 30
        tl.store(o + p, c)
    elif V == "select":
        tl.store(o + p * 16 + r, tl.where(row * s + r < n, tl.load(x + 1 + r), 0.0))
    elif V == "summed select":
        total = tl.zeros((16,), tl.float32)
        for k in range(2):
            total += tl.where(row * s + k < n, tl.load(x + 1 + r), 0.0) * 2.0
        tl.store(o + p, tl.sum(total, axis=0))
    elif V == "selected index":
        tl.store(o + tl.where(row * s < n, p * 16, 0) + r, 1.0, mask=(p > 1) | (p == 0))


DECISIONS = [
    "return",
    "branch",
    "loaded",
    "end",
    "start",
    "while",
    "select",
    "summed select",
    "selected index",
]


@pytest.mark.parametrize("values_only", [False, True])
@pytest.mark.parametrize("form", DECISIONS)
def test_what_decides_by_a_wrapped_index_is_told(form: str, values_only: bool) -> None:
    with sim.device(time=not values_only):
        told = decided(decides, V=form, WIDE=False)
        word = "range" if form in ("end", "start") else "condition"
        assert any("int32 overflow" in text and f"the {word} is made of" in text for text in told)
        assert not [t for t in decided(decides, V=form, WIDE=True) if "overflow" in t]


@sim.jit
def decides_nothing(x, o, index, s, n, V: tl.constexpr):
    p, r = tl.program_id(0), tl.arange(0, 16)
    chosen = p * s + r < n
    v = tl.load(x + 1 + r)
    if V == "hidden":
        tl.store(o + p * 16 + r, tl.where(chosen, v, 0.0) * 2.0, mask=p < 2)
    elif V == "alike":
        tl.store(
            o + p * 16 + r, tl.where(chosen, v, v + 0.0) + tl.where(chosen, v * float("nan"), float("nan"))
        )
    elif V == "other side":
        tl.store(o + p * 16 + r, tl.where(p < 2, tl.where(chosen, v, 0.0), 0.0))
    elif V == "unused":
        tl.where(chosen, v, 0.0)
        tl.store(o + p * 16 + r, v)
    elif V == "other condition":
        if p < 2 and p * s >= 0:
            tl.store(o + p * 16 + r, v)
    elif V == "used in a loop only":
        total = v
        for k in range(2):
            total = tl.where(chosen, v, 0.0) if k < 0 else v + k
        tl.store(o + p * 16 + r, total)
    elif V == "set anew":
        a = s * 0
        for _ in range(4):
            a += s
        for k in range(3):
            a = k
        tl.store(o + p * 16 + r, tl.load(x + a + r))


@pytest.mark.parametrize(
    "form", ["hidden", "alike", "other side", "unused", "other condition", "used in a loop only", "set anew"]
)
def test_a_wrapped_index_that_decides_nothing_is_not_told(form: str) -> None:
    assert decided(decides_nothing, V=form) == []


@sim.jit
def random_decisions(x, o, index, seed, n, B: tl.constexpr):
    """Numbers that wrap on purpose and are compared with a threshold."""
    p, i = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + i)
    h = (i + p) * 1103515245 + 12345
    v = tl.where(h < n, v, 0.0)
    v = tl.where((h ^ (h >> 16)) * 73244475 < n, v, 0.0)
    y = i + seed
    y ^= y << 13
    y ^= y >> 17
    y ^= y << 5
    v = tl.where(y * 3 < n, v, 0.0)
    u = (i.to(tl.uint32) + 2654435769) * 2246822519
    v = tl.where(u < 2147483648, v, 0.0)
    v = tl.where(tl.umulhi(u, u * 5) < n, v, 0.0)
    a, b, c, d = tl.randint4x(seed, i)
    v = tl.where((a < n) | (b < n) | (c < n) | (d * 7 < n), v, 0.0)
    v = tl.where(tl.rand(seed, i) > 0.5, v / 0.5, 0.0)
    state = seed + p
    for _ in range(3):
        state = state * n + 12345
        if state < n:
            v += 1.0
    for _ in range(3):
        state = (state * 69069 + 1) % 65536
        if state * 2 < n:
            v += 1.0
    tl.store(o + p * B + i, v)


@pytest.mark.parametrize("seed", [42, 2**31 - 3])
def test_random_numbers_are_compared_in_silence(seed: int) -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    assert random_decisions[(3,)](x, out, np.zeros(16, np.int32), seed, 1 << 20, B=B).faults == ()
