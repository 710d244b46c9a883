"""Tiles of the forward norms of rows: what they need in UB, and that gamma and beta are loaded once for all iterations."""

from __future__ import annotations

import pytest

from ascendtile.kernels import get_operator, run_op
from ascendtile.kernels.norm.layer.op import chunk_bytes as layer_chunk_bytes
from ascendtile.kernels.norm.rms.forward import chunk_bytes as rms_chunk_bytes
from ascendtile.kernels.norm.row_tiles import whole_bytes

NORMS = {"rms_norm": (rms_chunk_bytes, 1), "layer_norm": (layer_chunk_bytes, 2)}
SIZE = {"float16": 2, "float32": 4}
TILES = [(13, 100, 100), (48, 128, 128), (3, 1000, 1000), (2, 2048, 512), (1, 4096, 4096), (1, 8192, 8192)]


def timed(name, sizes, dtype, **tiling):
    return run_op(name, sizes, dtype, values=False, tiling=tiling, overrides={"buffers.ub": "16MiB"}).run


@pytest.mark.drawn(7)
@pytest.mark.parametrize("dtype", SIZE)
@pytest.mark.parametrize("copies", [1, 2, 3])
@pytest.mark.parametrize(("rows", "cols", "chunk"), TILES)
@pytest.mark.parametrize("name", NORMS)
def test_ub_need_is_never_less_than_what_is_placed(name, rows, cols, chunk, copies, dtype):
    chunk_bytes, vectors = NORMS[name]
    run = timed(name, {"rows": rows, "cols": cols}, dtype, rows=rows, cols=chunk, buffers=copies, cores=1)
    if chunk == cols:
        need = whole_bytes(chunk, rows, SIZE[dtype], copies, vectors)
        # And not much more for long rows, so that those that fit stay whole.
        assert cols < 1000 or need <= 1.3 * run.buffers["UB"].peak_bytes
    else:
        need = chunk_bytes(chunk, rows, SIZE[dtype], copies)
    assert run.buffers["UB"].peak_bytes <= need


@pytest.mark.parametrize("name", NORMS)
def test_whole_rows_fit_where_the_tight_need_does(name):
    """The longest float32 row by the tight formula is placed in a UB of that size."""
    vectors = NORMS[name][1]
    ub = 64 * 1024
    cols = max(c for c in range(64, 8192, 64) if whole_bytes(c, 1, 4, 2, vectors, tight=True) <= ub)
    result = run_op(name, {"rows": 8, "cols": cols}, "float32", values=False, overrides={"buffers.ub": ub})
    assert result.tiling["cols"] == cols
    assert result.run.buffers["UB"].peak_bytes <= ub


@pytest.mark.parametrize("name", NORMS)
def test_vectors_are_loaded_once_for_all_iterations(name):
    """Twice the rows of a core move twice the rows' bytes and no more of gamma and beta."""
    cols, vectors = 1024, NORMS[name][1]
    read = [
        timed(name, {"rows": 40 * n, "cols": cols}, "float32", rows=1).launches[0].resources["L2"]
        for n in (4, 8, 12)
    ]
    assert read[2] - read[1] == read[1] - read[0]
    once = read[0] - (read[1] - read[0])
    assert once <= 40 * cols * 4 * vectors + 4096


@pytest.mark.parametrize(("dtype", "us"), [("float16", 30.0), ("float32", 35.0)])
def test_a_large_aligned_case_is_near_what_holds_it_up(dtype, us):
    """llama3-8b took 40.6 and 74.4 us when gamma came anew with every tile."""
    assert get_operator("rms_norm").cases["llama3-8b"].sizes == {"rows": 2048, "cols": 4096}
    assert run_op("rms_norm", "llama3-8b", dtype, values=False).time_us < us
