# mypy: disable-error-code="no-untyped-def"
"""What kernels that work row by row share: the rows of a core."""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl


@sim.jit
def own_rows(rows):
    """The first row of a core, and the one behind its last: all have a range of about the same length."""
    each = tl.cdiv(rows, tl.num_programs(0))
    start = tl.program_id(0) * each
    return start, min(start + each, rows)
