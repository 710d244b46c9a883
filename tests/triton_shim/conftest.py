"""The shim in force for one module of tests, and nothing left of it afterwards."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from ascendtile.simulator import triton_shim


@pytest.fixture(scope="module")
def shim() -> Iterator[None]:
    """`import triton` finds the simulator."""
    with triton_shim.installed():
        yield


@pytest.fixture(scope="module", params=["default", "ascend"])
def liger(shim: None, request: Any) -> Iterator[ModuleType]:
    """`liger_kernel.ops` with its default kernels, and with those of its Ascend back end.

    Liger asks transformers whether there is an NPU, and takes its Ascend kernels if so. Its modules are forgotten
    afterwards, since they hold the stand-in of triton.
    """
    import importlib

    before = set(sys.modules)
    if request.param == "ascend":
        utilities: Any = ModuleType("transformers.utils")
        utilities.is_torch_npu_available = lambda: True
        sys.modules.update({"transformers": ModuleType("transformers"), "transformers.utils": utilities})
    try:
        yield importlib.import_module("liger_kernel.ops")
    finally:
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in ("liger_kernel", "transformers"):
                del sys.modules[name]
