"""Tensors that a script asked the host for by name, device="cpu": a device could not read them, so no kernel takes them.

All tensors are the CPU's here, and say so: a device that is asked of another tensor (`device=x.device`) means the simulated
one. Only the word in the source counts, which is one object in all of Python; `x.device.type` makes a text of its own.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ...errors import UsageError, in_triton

HOST = sys.intern("cpu")
_MARK = "_ascendtile_of_host"


def is_named(given: tuple[Any, ...]) -> bool:
    """Whether the host is named among the arguments of a call of torch."""
    return any(x is HOST for x in given)


def mark(x: Any, given: tuple[Any, ...]) -> Any:
    """`x`, known as a tensor of the host if it is one; not one of those `given`, which torch hands back uncopied."""
    if hasattr(x, "data_ptr") and not any(x is other for other in given):
        setattr(x, _MARK, True)
    return x


def copied(x: Any) -> Any:
    """What a copy to the device, or pinning, makes of `x`: of a tensor of the host another one, `x` itself else."""
    return x.clone() if hasattr(x, _MARK) else x


def as_they_are() -> AbstractContextManager[Any]:
    """Inside, torch reads tensors without asking the mode that rewrites devices: ten names for each tensor of a launch."""
    torch = sys.modules.get("torch")
    return nullcontext() if torch is None else torch._C.DisableTorchFunction()


def refuse(kernel: str, arguments: dict[str, Any]) -> None:
    """`UsageError` if a kernel is given a tensor of the host."""
    for at, (name, x) in enumerate(arguments.items()):
        if hasattr(x, _MARK):
            words = in_triton(f"Pointer argument (at {at}) cannot be accessed from Triton (cpu tensor?)")
            raise UsageError(
                f"{kernel}: {name!r} was made with device='cpu', memory that a device cannot read; make it with "
                f"device='npu' or take it there with .npu(){words}"
            )
