"""The shim in force for one module of tests, and nothing left of it afterwards."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from ascendtile.simulator import triton_shim
from ascendtile.simulator.language.extra.cann import extension


@pytest.fixture(scope="module")
def shim() -> Iterator[None]:
    """`import triton` finds the simulator."""
    with triton_shim.installed():
        yield


ASCEND = pytest.param(
    "ascend",
    marks=pytest.mark.skipif(
        not hasattr(extension, "extract_slice"), reason="Liger's Ascend kernels import extract_slice"
    ),
)


@pytest.fixture(scope="module", params=["default", ASCEND])
def liger(shim: None, request: Any) -> Iterator[ModuleType]:
    """`liger_kernel.ops` with its default kernels, and with those of its Ascend back end.

    Liger asks transformers whether there is an NPU. Its modules are forgotten afterwards, since they hold the stand-in of
    triton.
    """
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "ascend":
            utilities: Any = ModuleType("transformers.utils")
            utilities.is_torch_npu_available = lambda: True
            patch.setitem(sys.modules, "transformers", ModuleType("transformers"))
            patch.setitem(sys.modules, "transformers.utils", utilities)
            patch.setenv("LIGER_KERNEL_IMPL", "ascend")  # an import that fails is an error then
        try:
            yield importlib.import_module("liger_kernel.ops")
        finally:
            for name in set(sys.modules) - before:
                if name.partition(".")[0] == "liger_kernel":
                    del sys.modules[name]
