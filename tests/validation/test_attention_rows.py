"""Attention rows: what the kernel by hand computes, sizes of any kind, what is simulated against more of the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels.validation import predict, read_tables
from ascendtile.kernels.validation.attention import flash, times
from ascendtile.kernels.validation.attention.stages import attention_by_hand
from ascendtile.kernels.validation.attention.times import Attended, Staging, time_of
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.products import load_product

ROWS = {r.id: r for r in read_tables() if r.op == "flash_attention"}
HAND, VENDOR = ROWS["pto-fajit-aarch64-128x1024"], ROWS["pto-fa-1024-npu"]
SMALL = Staging(32, 16, 32, 2, True)


def of_shape(row, shapes, tiling, dtypes="fp16"):
    return predict(replace(row, shapes=shapes, tiling=tiling, dtypes=dtypes)).value


@settings(max_examples=6)
@given(
    st.booleans(), st.booleans(), st.sampled_from([1, 2, 5]), st.sampled_from([1, 3]), st.integers(1, 2),
    st.sampled_from([(1, 16), (2, 16), (2, 32)]), st.sampled_from([(False, 0), (True, 0), (True, 2)]),
)  # fmt: skip
def test_stages_of_attention_by_hand_give_attention(on, stagger, ahead, passes, units, pair, way):
    """way: whether scores lie in rows of a pass, and whether a mask hides some."""
    (pair, part), heads, d, programs = pair, 2, 16, 4 // units
    m, n, tall = 64 * pair, 32 * passes, 32 * pair
    rng = np.random.default_rng(passes)
    q, k, v = (rng.standard_normal((h, x, d), np.float32) for h, x in ((heads, m), (1, n), (1, n)))
    out = np.full(q.shape, np.nan, np.float32)
    s, p, o = (np.full((programs, ahead + 1, tall, x), np.nan, np.float32) for x in (32, 32, d))
    names = {"GROUP": heads, "D": d, "BM": 32, "BN": 16, "PASS": 32, "ROWS": 8, "PART": part, "PAIR": pair}
    sums, bits = np.full((programs, tall, d), np.nan, np.float32), np.zeros(1, np.uint8)
    mask = (rng.random((m, n)) < 0.3 * (way[1] > 0)).astype(np.uint8)
    with sim.device("ascend910b3", multibuffer=1, time=False):
        attention_by_hand[(programs,)](
            q, k, v, out, s, p, o, sums, mask, bits, m, n, 0, units, d**-0.5, **names, AHEAD=ahead, STAGGER=stagger,
            ON=on, FLAT=way[0], HIDE=way[1],
        )  # fmt: skip
    weight = np.exp(q.astype(np.float64) @ k[0].T.astype(np.float64) * d**-0.5) * (mask == 0)
    assert np.allclose(out, weight / weight.sum(-1, keepdims=True) @ v[0], atol=2e-5)


@settings(max_examples=4)
@given(
    st.integers(1, 3), st.integers(1, 300), st.integers(1, 600), st.sampled_from([8, 72, 200]), st.booleans(),
    st.sampled_from(["fp16", "bf16", "fp32"]),
    st.sampled_from(["", " mask=1 dropout=1", " block=128x128", " block=40x100 pass=150 ahead=1"]),
)  # fmt: skip
def test_sizes_of_any_kind_are_predicted(heads, queries, keys, d, causal, kind, block):
    tiling = f"cores=20 kv_heads=1 causal={int(causal)}{block}"
    assert of_shape(HAND, f"{heads}x{queries}x{keys}x{d}", tiling, kind) > 0


@pytest.mark.exhaustive
def test_rows_too_long_for_the_buffers_take_smaller_tiles():
    assert of_shape(VENDOR, "2x128x512x576", "cores=2", "bf16") > of_shape(
        VENDOR, "2x128x512x128", "cores=2", "bf16"
    )


@pytest.mark.parametrize("product", ["ascend910a", "ascend310p"])
def test_cores_that_hand_nothing_over_are_predicted_too(product):
    assert (
        predict(replace(VENDOR, product=product, shapes="2x256x256x64", tiling="cores=2 l2=warm")).value > 0
    )


LESS = [pytest.param(x, marks=pytest.mark.exhaustive) for x in (SMALL, replace(SMALL, on=False))]


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", [*LESS, replace(SMALL, rows=16, pair=2)])
def test_what_is_not_simulated_is_more_of_the_same(monkeypatch, way):
    """12 passes, told by 4 and 8 of them, and 3 blocks of queries a core, told by 1 and 2 of them."""
    with sim.device("ascend910b3", values=False, multibuffer=1, l2="warm"):
        told = time_of(Attended(1, 1, 32 * 4, 32 * 12, 32, "fp16", 4), way)[0]
        more = time_of(Attended(1, 1, 32 * 12, 32 * 4, 32, "fp16", 4), way)[0]
        monkeypatch.setattr(times, "LONGEST", 12)
        assert told == pytest.approx(
            time_of(Attended(1, 1, 32 * 4, 32 * 12, 32, "fp16", 4), way)[0], rel=0.03
        )
        all_of_it = times._run(Attended(1, 1, 32 * 12, 32 * 4, 32, "fp16", 4), way, 32, 4, 4, 3, 0).time_us
        assert more == pytest.approx(all_of_it, rel=0.05)


@pytest.mark.exhaustive
def test_time_grows_with_keys_heads_and_queries():
    tiling = "cores=2 l2=warm block=32x64"
    few = of_shape(HAND, "2x32x256x32", tiling)
    for more in ("2x32x384x32", "2x64x256x32", "3x32x256x32"):
        assert few < of_shape(HAND, more, tiling)


@pytest.mark.exhaustive
def test_causal_attention_multiplies_about_half_of_the_tiles():
    whole, half = (of_shape(HAND, "2x512x512x32", f"cores=2 l2=warm block=32x32 causal={c}") for c in (0, 1))
    assert 0.5 * whole < half < 0.75 * whole


@given(st.integers(1, 200), st.integers(1, 400), st.sampled_from([16, 64, 128]))
def test_the_last_causal_query_sees_all_keys_and_each_one_before_it_one_less(queries, keys, rows):
    """Of queries that see keys; a block goes through what its last query sees."""
    work = flash._work(replace(VENDOR, shapes=f"2x{queries}x{keys}x16", tiling="cores=2 causal=1"))
    mask = np.tri(queries, keys, keys - queries)[-work.queries :]
    assert mask.any(1).all()
    assert mask.sum() == np.tri(queries, keys, keys - queries).sum()
    way = replace(SMALL, rows=rows)
    last = [min(k, work.queries) - 1 for k in range(rows, work.queries + rows, rows)]
    assert work.seen(way) == [mask[k].sum() for k in last]


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("block", "queries", "before"),
    [("", 1, 300), ("", 40, 300), pytest.param(" block=32x64", 64, 64, marks=pytest.mark.exhaustive)],
)
def test_causal_queries_see_the_keys_before_their_own_whole(block, queries, before):
    def found(keys, causal):
        tiling = f"cores=2 l2=warm causal={causal}{block}"
        return predict(replace(HAND, shapes=f"2x{queries}x{keys}x32", tiling=tiling))

    mine, whole = found(before + queries, 1), found(before + queries, 0)
    assert found(before, 0).value < 1.05 * mine.value
    assert mine.value < 1.15 * whole.value
    assert mine.roofline <= min(whole.roofline, mine.value)
    if queries == 1:
        assert (mine.value, mine.roofline) == (whole.value, whole.roofline)


@pytest.mark.parametrize("product", [pytest.param("ascend910b3", marks=pytest.mark.exhaustive), "ascend910a"])
def test_rows_of_queries_without_keys_are_only_filled(product):
    def found(queries, causal=1):
        row = replace(VENDOR, product=product, shapes=f"2x{queries}x64x64", tiling=f"cores=2 causal={causal}")
        return predict(row)

    few, more, most = found(64), found(1024), found(2048)
    assert few.value < more.value < 1.1 * few.value
    assert most.value - more.value == pytest.approx((more.value - few.value) * 1024 / 960)
    assert most.value < found(2048, causal=0).value
    assert most.roofline <= most.value


def test_cores_that_hand_nothing_over_do_the_keys_before_too():
    def found(queries, keys, causal):
        row = replace(VENDOR, product="ascend910a", tiling=f"cores=2 causal={causal} block=64x64")
        return predict(replace(row, shapes=f"2x{queries}x{keys}x32")).value

    assert found(64, 448, 0) < found(64, 512, 1) < 1.3 * found(64, 512, 0)


@pytest.mark.parametrize(
    ("shapes", "l2"),
    [pytest.param("128x2048x1024x64", "cold", marks=pytest.mark.exhaustive), ("2x32x128x32", "warm")],
)
def test_what_others_changed_in_l2_goes_to_memory_at_most_once(shapes, l2):
    """However many blocks and passes are more of what is simulated."""
    chip = load_product("ascend910b3")
    room = chip.number("l2.size") / (chip.number("memory.bandwidth_tb_per_s") * 1e6)
    row = replace(VENDOR, product=chip.name, shapes=shapes)
    clean, half, full = (
        predict(replace(row, tiling=f"cores=20 l2={l2} changed={n}")).value for n in (0, 50, 100)
    )
    assert clean <= half <= clean + room / 2
    assert half <= full <= clean + room


@settings(max_examples=2)
@given(st.sampled_from([1, 16, 128]), st.integers(1, 1100), st.integers(1, 300))
def test_one_more_key_never_saves_much(queries, keys, more):
    """The Vector unit does a row of a length in the middle of its width a little slower than one that fills it."""
    few, many = (of_shape(VENDOR, f"1x{queries}x{n}x64", "cores=2 l2=warm") for n in (keys, keys + more))
    assert few < 1.06 * many


@pytest.mark.exhaustive
def test_each_of_mask_and_dropout_takes_time():
    none, mask, both = (
        of_shape(VENDOR, "4x512x2048x64", f"cores=4 l2=warm {x}") for x in ("", "mask=1", "mask=1 dropout=1")
    )
    assert none < mask < both


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.integers(1, 12))
def test_blocks_in_a_row_are_shared_with_the_least_maximum(work, cores):
    done = np.concatenate([[0], np.cumsum(work)])
    begin = times.shared(done, cores)
    assert (begin[0], begin[-1], len(begin)) == (0, len(work), cores + 1)
    most = np.diff(done[begin]).max()
    assert most >= max(max(work), -(-done[-1] // cores))
    needed, room = 1, most - 1
    for w in work:
        needed, room = (needed, room - w) if w <= room else (needed + 1, most - 1 - w)
    assert needed > cores or most == max(work)


@pytest.mark.exhaustive
def test_heads_that_share_keys_read_them_once_for_a_few_new_queries():
    """Keys come from memory: 8 heads of keys instead of 32 take little more than half the time at most."""
    own, shared = (of_shape(VENDOR, "32x1x2048x128", f"cores=20 kv_heads={n}") for n in (32, 8))
    assert shared < 0.6 * own


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"tiling": "cores=4 kv_heads=3"},
            "kv_heads=3, cores=4: both from 1, and the 4 heads a multiple of kv_heads",
        ),
        ({"tiling": "cores=0"}, "cores=0: numbers must be from 1"),
        ({"tiling": "cores=4 causal=2"}, "causal=2 is neither 0 nor 1"),
        ({"tiling": "cores=4 mask=5"}, "mask=5 is neither 0 nor 1"),
        ({"tiling": "cores=4 block=128"}, "tiling needs block= with 2 numbers joined by x"),
        ({"tiling": "cores=4 block=0x128"}, "a block and ahead from 1"),
        ({"tiling": "cores=4 block=0x128", "product": "ascend910a"}, "a block and ahead from 1"),
        ({"tiling": "cores=4 block=64x64 ahead=0"}, "ahead=0: numbers must be from 1"),
        ({"tiling": "cores=4 block=64x64 pass=32"}, "pass no less than the keys of the block"),
        (
            {"tiling": "cores=4 block=64x64 mask=1"},
            "mask and dropout are known of the vendor's operator only",
        ),
        ({"tiling": "cores=4 block=64x64 handed=int8"}, "handed fp32 or fp16"),
        ({"tiling": "cores=4", "shapes": "4x90000000x9000000x512"}, "give smaller sizes"),
    ],
)
def test_a_row_that_makes_no_sense_is_refused_in_words(changed, words):
    with pytest.raises(UsageError, match=words):
        predict(replace(HAND, **{"shapes": "4x256x256x64", **changed}))
