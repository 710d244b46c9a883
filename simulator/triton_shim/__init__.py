"""Modules named triton, triton.language ... in `sys.modules`, so that a Triton script runs here as it is."""

from __future__ import annotations

import sys

from ..errors import UsageError
from .standin import StandIn


def install() -> None:
    """Make `import triton` find the simulator. Call it before the script imports triton; a second call does nothing."""
    from .table import build

    found = sys.modules.get("triton")
    if isinstance(found, StandIn):
        return
    if found is not None:
        where = getattr(found, "__file__", None) or "somewhere else"
        raise UsageError(
            f"triton is already imported, from {where}: call triton_shim.install() before the first import of triton"
        )
    sys.modules.update(build())


def uninstall() -> None:
    """Take the stand-ins out of `sys.modules`; kernels that were made with them go on working."""
    for name in [n for n, m in sys.modules.items() if isinstance(m, StandIn)]:
        del sys.modules[name]


__all__ = ["install", "uninstall"]
