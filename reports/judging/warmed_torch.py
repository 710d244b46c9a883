"""As `warmed`, for tasks and answers over torch: what torch imports with its first operation on meta tensors is imported.

Not with it: torch's compiler, 600 modules of which nothing else here has need.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import torch

from . import warmed
from .answering.fingerprints import know
from .pricing.host_ops import record_ops

__all__ = ["warmed"]

COMPILER = "torch._dynamo"
KEPT = "__dynamo_disable"  # where `torch._disable_dynamo` keeps what its first call makes


def without_compiler() -> None:
    """Let torch's functions that its compiler is not to look into do without it, until something else imports it.

    Each of them imports the compiler with its first call, for a wrapper that tells it so (torch/_compile.py). Another
    version of torch, where none are found, imports it as ever.
    """
    for inner, fn in list(_kept_from_compiler()):
        setattr(fn, KEPT, _plain(inner, fn))


def _kept_from_compiler() -> Iterator[tuple[FunctionType, FunctionType]]:
    """Those functions: as they are called, and what they call."""
    disable: Any = getattr(torch, "_disable_dynamo", None)
    code = disable(_nothing).__code__ if disable is not None else _nothing.__code__
    if KEPT not in code.co_consts or "fn" not in code.co_freevars:
        return
    for x in gc.get_objects():
        if type(x) is FunctionType and x.__code__ is code:
            fn = dict(zip(code.co_freevars, x.__closure__ or (), strict=True))["fn"].cell_contents
            if fn is not _nothing:
                yield x, fn


def _nothing() -> None:
    """Shows what torch makes of a function."""


def _plain(inner: FunctionType, fn: FunctionType) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if not hasattr(sys.modules.get(COMPILER), "disable"):
            return fn(*args, **kwargs)
        vars(fn).pop(KEPT, None)  # it is there: as torch does it
        return inner(*args, **kwargs)

    return call


without_compiler()
with record_ops(), torch.device("meta"):
    torch.empty(1).add(1)
warmed.launched(torch.zeros(warmed.SIZE), torch.zeros(warmed.SIZE))
know()
