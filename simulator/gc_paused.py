"""A compilation or a walk makes many small objects that live until it ends: looking for cycles among them finds nothing.

That took a tenth of the time of a launch.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Leaves garbage in cycles to lie until the end, if anybody looks for it at all."""
    looking = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looking:
            gc.enable()
