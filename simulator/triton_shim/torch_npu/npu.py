"""`torch.npu` and `torch_npu`: one device whose memory is the CPU's and whose clock is the simulated time.

What concerns values is done by torch on the CPU; what concerns time reads the clock, which every launch moves on. Figures
that the simulator does not have (allocated memory) and the vendor's own operators are missing, and say so; all but the one
that scripts compare attention with (`attention.py`).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from ...device import current_device
from ...errors import UsageError
from ..profiler import profiler
from ..standin import StandIn
from ..utilities import Utilities
from . import attention
from .clock import CLOCK


def _nothing(*_: Any, **__: Any) -> None:
    """Launches are done when they return: nothing to do or to wait for on a simulated device."""


class Event:
    """A mark on the stream: `start.elapsed_time(end)` is the simulated milliseconds between two."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self.time_us: float | None = None

    def record(self, stream: Any = None) -> None:
        """Mark now."""
        self.time_us = CLOCK.now_us

    wait = synchronize = _nothing

    def query(self) -> bool:
        """Whether the work before the mark is done: always."""
        return True

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds of simulated time from this mark to `end`."""
        if self.time_us is None or end.time_us is None:
            raise UsageError("elapsed_time needs both events recorded")
        return (end.time_us - self.time_us) / 1000


class Stream:
    """A stream. Launches are done when they return, so all streams are alike."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.npu_stream = self.cuda_stream = 0
        self.priority = priority

    synchronize = wait_stream = wait_event = __exit__ = _nothing
    query = Event.query

    def record_event(self, event: Event | None = None) -> Event:
        """Mark now on `event`, or on a new one."""
        event = event or Event()
        event.record()
        return event

    def __enter__(self) -> Stream:
        return self


DEFAULT_STREAM = Stream()


def get_device_properties(device: Any = None) -> SimpleNamespace:
    """Name, core counts and memory of the product in force."""
    found = Utilities().get_device_properties()
    return SimpleNamespace(
        name=found["name"],
        total_memory=found["total_memory"],
        multi_processor_count=found["multiprocessor_count"],
        cube_core_num=found["num_aicore"],
        vector_core_num=found["num_vectorcore"],
        L2_cache_size=current_device().product.integer("l2.size"),
    )


@contextmanager
def _block(*_: Any, **__: Any) -> Iterator[None]:
    """A block for a device or a stream: there is one of each."""
    yield


def _torch() -> Any:
    import torch

    return torch


def _seed(seed: int) -> None:
    """Past `torch.manual_seed`, which seeds every device and would come back here."""
    _torch().default_generator.manual_seed(int(seed))


def device_names() -> dict[str, Any]:
    """What `torch.npu` and, when asked for, `torch.cuda` have: an object of its own for each name, as torch wants it."""

    def separate(fn: Any) -> Any:
        return (
            fn if isinstance(fn, type) else functools.wraps(fn)(lambda *args, **kwargs: fn(*args, **kwargs))
        )

    return {name: separate(x) for name, x in _device_names().items()}


def _device_names() -> dict[str, Any]:
    return {
        "Event": Event,
        "Stream": Stream,
        "current_device": lambda: 0,
        "current_stream": lambda device=None: DEFAULT_STREAM,
        "default_stream": lambda device=None: DEFAULT_STREAM,
        "device": _block,
        "device_count": lambda: 1,
        "empty_cache": _nothing,
        "get_device_name": lambda device=None: get_device_properties().name,
        "get_device_properties": get_device_properties,
        "get_rng_state": lambda device=None: _torch().get_rng_state(),
        "init": _nothing,
        "is_available": lambda: True,
        "is_bf16_supported": lambda *_: "bfloat16" in current_device().product.texts("dtypes.storage"),
        "is_initialized": lambda: True,
        "manual_seed": _seed,
        "manual_seed_all": _seed,
        "reset_peak_memory_stats": _nothing,
        "set_device": _nothing,
        "set_rng_state": lambda state, device=None: _torch().set_rng_state(state),
        "set_stream": _nothing,
        "stream": _block,
        "synchronize": _nothing,
    }


def interface() -> StandIn:
    """`torch.npu`, also for those who come without torch_npu."""
    found = sys.modules.get("torch.npu")
    return found if isinstance(found, StandIn) else build()["torch.npu"]


def _autocast(dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None) -> Any:
    """`torch.npu.amp.autocast`: that of the CPU."""
    return _torch().amp.autocast("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


def build() -> dict[str, StandIn]:
    """The modules torch.npu and torch_npu with their parts."""
    amp = StandIn("torch.npu.amp", {"autocast": _autocast})
    utilities = StandIn("torch.npu.utils", {"set_device": _nothing})
    own = {
        **device_names(),
        "amp": amp,
        "utils": utilities,
        "config": SimpleNamespace(allow_internal_format=False),
        "conv": SimpleNamespace(allow_hf32=False),
        "matmul": SimpleNamespace(allow_hf32=False),
        "set_compile_mode": _nothing,
    }
    npu = StandIn("torch.npu", own)
    profiling = StandIn("torch_npu.profiler", profiler.NAMES)
    top = {
        "__version__": "0+ascendtile",
        "npu": npu,
        "npu_fusion_attention": attention.npu_fusion_attention,
        "profiler": profiling,
        "npu_format_cast": lambda x, *_: x,  # a layout of memory, not of values
    }
    return {
        "torch.npu": npu,
        "torch.npu.amp": amp,
        "torch.npu.utils": utilities,
        "torch_npu": StandIn("torch_npu", top),
        "torch_npu.npu": npu,
        "torch_npu.npu.amp": amp,
        "torch_npu.npu.utils": utilities,
        "torch_npu.profiler": profiling,
    }
