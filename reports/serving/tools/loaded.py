"""What workers find loaded and worked out: the process that they are forked from imports this once.

A small run of an operator and one of a script load what is imported when it is first needed: the next takes 0.2 s, not 2.4.
"""

from . import catalogue, library

SCRIPT = """
import numpy as np, triton, triton.language as tl

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

double[(2,)](np.ones(100, np.float32), np.empty(100, np.float32), 100, BLOCK=64)
"""


def warm() -> None:
    """Read the pages, run the two; a failure shows when a worker does the same."""
    library.sections()
    for arguments in ({"op": "rms_norm_grad", "case": "tiny"}, {"script": SCRIPT}):
        catalogue.work({"tool": "run", "arguments": arguments}, {})


warm()
