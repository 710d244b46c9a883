"""Modules named triton, triton.language ... in `sys.modules`, so that a Triton script runs here as it is.

    from .. import triton_shim

    triton_shim.install()  # before the first import of triton
    import triton

Launches give a `Run` each; tensors are numpy arrays or torch CPU tensors. Where torch is installed, "npu" is a name for the
CPU in all of torch, `torch.npu` and `torch_npu` are there, and their events read the simulated time. What torch itself
computes is computed by torch, and costs no simulated time.

`table.py` says which module shows what; `kernel.py` has jit, `tuning.py` autotune and heuristics, `testing.py` do_bench,
`torch_npu/` the side of torch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

from ..errors import UsageError
from ..observers import watch
from .kernel_warnings import tell
from .standin import StandIn

DEVICES = ("npu", "cuda")


class _Installed:
    """What is in force: the finder of imports, and the changes to torch once it is imported."""

    def __init__(self, devices: tuple[str, ...]) -> None:
        from .importing import Finder
        from .table import build
        from .tbe import announce_ub

        self.devices = devices
        self.torch: Any = None
        self.modules = build()
        self.announced = announce_ub()
        self.finder = Finder(self.on_torch)
        sys.modules.update(self.modules)
        sys.meta_path.insert(0, self.finder)
        if "torch" in sys.modules:
            self.on_torch(sys.modules["torch"])

    def on_torch(self, torch: ModuleType) -> None:
        from .torch_npu.torch_devices import TorchOnCpu

        changes = TorchOnCpu(torch, self.devices)
        changes.apply()
        self.torch = changes

    def remove(self) -> None:
        sys.meta_path.remove(self.finder)
        if self.announced:
            from .tbe import UB_BITS

            os.environ.pop(UB_BITS, None)
        if self.torch is not None:
            self.torch.remove()
        for name, module in self.modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


_installed: _Installed | None = None
_telling = ExitStack()


def install(devices: Sequence[str] = ("npu",)) -> None:
    """Make `import triton` find the simulator. A second call does nothing.

    devices: the torch devices whose names mean the simulated device: "npu", and "cuda" for a script that names it.
    `UsageError` if the real triton is already imported: whoever holds it would go on using it.
    """
    global _installed
    if isinstance(devices, str) or not set(devices) <= set(DEVICES):
        raise UsageError(f"devices is a list of {' and '.join(map(repr, DEVICES))}, got {devices!r}")
    if _installed is not None:
        return
    _check_free()
    _installed = _Installed(tuple(devices))
    _telling.enter_context(watch(tell))


def _check_free() -> None:
    found = sys.modules.get("triton")
    if found is not None and not isinstance(found, StandIn):
        where = getattr(found, "__file__", None) or "somewhere else"
        raise UsageError(
            f"triton is already imported, from {where}: call triton_shim.install() before the first import of triton"
        )


def uninstall() -> None:
    """Take back what `install` did, in torch too; kernels that were made meanwhile go on working."""
    global _installed
    if _installed is not None:
        _installed.remove()
        _installed = None
        _telling.close()


@contextmanager
def installed(devices: Sequence[str] = ("npu",)) -> Iterator[None]:
    """`with triton_shim.installed():` installs for a block; inside of another one it changes nothing."""
    ours = _installed is None
    install(devices)
    if ours:
        _telling.close()  # whoever opens a block reads the launches' own warnings
    try:
        yield
    finally:
        if ours:
            uninstall()


__all__ = ["install", "installed", "uninstall"]


def __dir__() -> list[str]:
    return __all__
