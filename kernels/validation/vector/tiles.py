# mypy: disable-error-code="no-untyped-def"
"""What kernels on the Vector cores share: the rows of a core, and how large their tiles are."""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.products import load_product
from ..table import Row

LARGEST = 16384  # elements of a tile


def tile_elements(row: Row, bytes_of_one: int) -> int:
    """Elements of a tile that fills UB with all copies of it and what is computed, so many bytes for each element."""
    return min(LARGEST, load_product(row.product).ub_bytes // bytes_of_one)


@sim.jit
def own_rows(rows):
    """The first row of a core, and the one behind its last: all have a range of about the same length."""
    each = tl.cdiv(rows, tl.num_programs(0))
    start = tl.program_id(0) * each
    return start, min(start + each, rows)
