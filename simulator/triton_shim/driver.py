"""`triton.runtime.driver`: what scripts ask the driver, answered from the product in force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .utilities import Utilities


@dataclass(frozen=True)
class GPUTarget:
    """Back end, architecture, lanes of a warp (0: there are none)."""

    backend: str
    arch: str
    warp_size: int


class ActiveDriver:
    """`driver.active`: one device, whose streams run in order."""

    def __init__(self) -> None:
        self.utils = Utilities()

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("npu", self.utils.get_arch(), 0)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: Any) -> None:
        """There is one device."""

    def get_current_stream(self, device: Any = None) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        """The torch device of the tensors that kernels take: the CPU."""
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        """`torch.npu`."""
        from .torch_npu.npu import interface

        return interface()

    def get_benchmarker(self) -> Any:
        from .testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        """A buffer whose zeroing would empty L2; simulated launches start with an empty L2 anyway."""
        import torch

        return torch.empty(1, dtype=torch.int32)

    def clear_cache(self, cache: Any) -> None:
        """Nothing to do: every simulated launch starts with an empty L2."""

    def map_python_to_cpp_type(self, name: str) -> str:
        return name

    def is_active(self) -> bool:
        return True


class Driver:
    """`from triton.runtime.driver import driver`."""

    def __init__(self) -> None:
        self.active = ActiveDriver()
        self.default = self.active

    def set_active(self, driver: Any) -> None:
        """Only the simulator can run kernels: another driver is not taken."""

    def reset_active(self) -> None:
        """The simulator is always the active driver."""
