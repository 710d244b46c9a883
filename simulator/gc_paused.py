"""A compilation or a walk makes many small objects that live until it ends: looking for cycles among them finds nothing.

That took a tenth of the time of a launch.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Leaves cyclic garbage uncollected until the end."""
    looking = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looking:
            gc.enable()
