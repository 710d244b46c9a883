# mypy: disable-error-code="no-untyped-def"
"""Many matrix products of different sizes in one launch: the experts of a mixture, for example.

One launch for each product would leave most cores idle where products are small. Here a fixed number of
programs shares the tiles of all products: the tiles are numbered through, and program p takes p, p + programs,
and so on. A table has for each product its sizes, another the addresses of its matrices; a program makes a
pointer of an address with `.to(tl.pointer_type(...))`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.record.run import Run
from .showing import costs, drawn, show


@sim.jit
def tile_product(a_ptr, b_ptr, c_ptr, tile, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    across = tl.cdiv(N, BN)
    row, column = tile // across * BM + tl.arange(0, BM), tile % across * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        deep = start + tl.arange(0, BK)
        in_a = (row < M)[:, None] & (deep < K)[None, :]
        in_b = (deep < K)[:, None] & (column < N)[None, :]
        a = tl.load(a_ptr + row[:, None] * K + deep[None, :], mask=in_a, other=0.0)
        b = tl.load(b_ptr + deep[:, None] * N + column[None, :], mask=in_b, other=0.0)
        acc += tl.dot(a, b)
    out = acc.to(c_ptr.dtype.element_ty)
    inside = (row < M)[:, None] & (column < N)[None, :]
    tl.store(c_ptr + row[:, None] * N + column[None, :], out, mask=inside)


@sim.jit
def grouped_kernel(
    addresses, sizes, products,
    DTYPE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """addresses: (products, 3) of a, b, c; sizes: (products, 3) of M, N, K."""
    tile = tl.program_id(0)
    done = 0
    for product in range(products):
        M, N, K = (
            tl.load(sizes + 3 * product),
            tl.load(sizes + 3 * product + 1),
            tl.load(sizes + 3 * product + 2),
        )
        tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
        a_ptr = tl.load(addresses + 3 * product).to(tl.pointer_type(DTYPE))
        b_ptr = tl.load(addresses + 3 * product + 1).to(tl.pointer_type(DTYPE))
        c_ptr = tl.load(addresses + 3 * product + 2).to(tl.pointer_type(DTYPE))
        while tile < done + tiles:
            tile_product(a_ptr, b_ptr, c_ptr, tile - done, M, N, K, BM, BN, BK)
            tile += tl.num_programs(0)
        done += tiles


def grouped_matmul(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    programs: int = 20,
    block: tuple[int, int, int] = (64, 64, 64),
) -> tuple[list[np.ndarray], Run]:
    """a @ b of every pair; contiguous matrices of one type, as many programs as Cube cores."""
    dtype = pairs[0][0].dtype
    out = [np.empty((a.shape[0], b.shape[1]), dtype) for a, b in pairs]
    rows = [[x.ctypes.data for x in (a, b, c)] for (a, b), c in zip(pairs, out, strict=True)]
    sizes = [[a.shape[0], b.shape[1], a.shape[1]] for a, b in pairs]
    element = {"float16": tl.float16, "float32": tl.float32}.get(dtype.name, tl.bfloat16)
    run: Run = grouped_kernel[(programs,)](
        np.array(rows, np.int64),
        np.array(sizes, np.int32),
        len(pairs),
        DTYPE=element,
        **dict(zip(("BM", "BN", "BK"), block, strict=True)),
    )
    return out, run


def main() -> None:
    sizes = [(300, 128, 200), (64, 64, 64), (20, 500, 96)]
    pairs = [
        (drawn(s, m, k, dtype=np.float16), drawn(s + 9, k, n, dtype=np.float16))
        for s, (m, n, k) in enumerate(sizes)
    ]
    out, run = grouped_matmul(pairs)
    for (a, b), c in zip(pairs, out, strict=True):
        show("a @ b", c, a.astype(np.float64) @ b.astype(np.float64))
    costs(run)


if __name__ == "__main__":
    main()
