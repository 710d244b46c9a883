"""Loads of which a part is new: two or three records, none of which waits for what its program skips."""

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl


@sim.jit
def sums_of_rows(x_ptr, y_ptr, out_ptr, n, width, SHIFT: tl.constexpr):
    """Each program multiplies n tiles of rows of x from its own row on, so that programs share rows."""
    k = tl.arange(0, 64)
    first = tl.program_id(0) * SHIFT
    acc = tl.zeros((64, 64), tl.float32)
    for i in range(n):
        at = first + k[:, None]
        x = tl.load(x_ptr + at * width + i * 64 + k[None, :])
        y = tl.load(y_ptr + (i * 64 + k)[:, None] * 64 + k[None, :])
        acc += tl.dot(x, y)
    tl.store(out_ptr + tl.program_id(0) * 4096 + k[:, None] * 64 + k[None, :], acc)


def test_programs_that_share_rows_still_load_ahead():
    """A tile that is partly in L2 is loaded in two parts; neither waits for the latency of the load before it.

    So sharing rows must not cost: with two copies of a tile, programs that share half of their rows take no longer than
    programs that share none, which read more from HBM.
    """

    def cycles(shift):
        shapes = (sim.shape((64 * 20, 4096), "float16"), sim.shape((4096, 64), "float16"))
        out = sim.shape((10, 64, 64), "float32")
        return sums_of_rows.time((10,), *shapes, out, 64, 4096, SHIFT=shift).cycles

    assert cycles(32) <= 1.02 * cycles(64)
