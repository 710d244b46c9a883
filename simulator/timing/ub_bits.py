"""What a compiled kernel takes of UB, printed as Triton-Ascend's compiler does where ENABLE_PRINT_UB_BITS asks for it.

There the variable passes --enable-print-memory-allocated-size to the compiler, whose memory planner (PlanMemory of
AscendNPU-IR) prints the line; Triton-Ascend reads it by the pattern `UB\\s+size\\s*=\\s*(\\d+)\\s*bits`. The figure is the
highest address of the plan: where all buffers have room side by side, that is more than the kernel needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..device import TRITON_ASCEND
from ..record.kernel_metadata import ub_bits_asked

if TYPE_CHECKING:
    from ..call import Call

LINE = "[AscendNPU IR] Allocated UB size = {} bits"


def tell_ub_bits(call: Call) -> None:
    """Print the line of a launch's kernel before its name, once for each kernel as it is compiled and device.

    Only for kernels that this compiler makes, not for those that stand for Ascend C.
    """
    if not ub_bits_asked() or call.device.author != TRITON_ASCEND:
        return
    from .fitting import require_places

    _, placement = require_places(call)
    ub = placement.buffers.get("UB")
    size = ub.used_bytes if ub is not None else 0
    what = (call.device.product.name, size)
    if what not in call.program.told_ub:
        call.program.told_ub.add(what)
        print(f"{call.kernel.name}: {LINE.format(8 * size)}", flush=True)
