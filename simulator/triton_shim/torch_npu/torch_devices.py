"""torch on the simulated device: whoever says "npu" gets the CPU.

Strings and torch.device objects are rewritten where torch takes them: in calls (a torch function mode), in the classes and
functions that such a mode does not see, and in methods like `tensor.npu()`. All of it is undone by `remove`.
"""

from __future__ import annotations

import functools
import sys
import threading
from types import ModuleType
from typing import Any

from ... import observers as watching
from ...checks.written.scratch import mark_sized, mark_torch
from . import host_memory, npu
from .clock import CLOCK

_ABSENT = object()


class Patches:
    """Attributes that were set, and what was there before."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute."""
        self._before.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Put everything back, the last change first."""
        while self._before:
            owner, name, value = self._before.pop()
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


class _RewritingType(type):
    """A class that stands for another one, whose device argument is rewritten before it is called."""

    real: Any
    rewrite: Any

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.real(*map(cls.rewrite, args), **{k: cls.rewrite(x) for k, x in kwargs.items()})

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, cls.real)

    def __subclasscheck__(cls, x: type) -> bool:
        return issubclass(x, cls.real)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.real, name)


class TorchOnCpu:
    """The changes to torch: made on `apply`, taken back by `remove`.

    devices: names that mean the simulated device: "npu", and "cuda" if that is asked for.
    """

    def __init__(self, torch: ModuleType, devices: tuple[str, ...]) -> None:
        self.torch = torch
        self.devices = devices
        self.patches = Patches()
        self.mode: Any = None
        self.modules = npu.build()
        self.watching: Any = None

    def rewrite(self, x: Any) -> Any:
        """ "npu", "npu:0" and a torch.device of such a type as "cpu"; anything else as it is."""
        if isinstance(x, str) and x.partition(":")[0] in self.devices:
            return "cpu"
        if isinstance(x, self.torch.device) and x.type in self.devices:
            return self.torch.device("cpu")
        return x

    def apply(self) -> None:
        """Make the changes."""
        sys.modules.update(self.modules)
        self.patches.set(self.torch, "npu", self.modules["torch.npu"])
        if "cuda" in self.devices:
            for name, value in npu.device_names().items():
                self.patches.set(self.torch.cuda, name, value)
        self._classes()
        self._functions()
        self._methods()
        self._threads()
        self.mode = _mode(self)
        self.mode.__enter__()
        self.watching = watching.watch(CLOCK.tell)
        self.watching.__enter__()

    def remove(self) -> None:
        """Take the changes back."""
        self.watching.__exit__(None, None, None)
        _leave(self.mode)
        self.patches.undo()
        for name, module in self.modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]

    def _classes(self) -> None:
        torch = self.torch
        of_torch = [(torch, n) for n in ("device", "Generator", "autocast")]
        for owner, name in (*of_torch, (torch.amp, "autocast"), (torch.amp, "GradScaler")):
            real = getattr(owner, name)
            members = {"real": real, "rewrite": staticmethod(self.rewrite), "__module__": real.__module__}
            self.patches.set(owner, name, _RewritingType(name, (), members))

    def _functions(self) -> None:
        torch = self.torch
        of_amp = [(torch.amp, n) for n in ("custom_fwd", "custom_bwd")]
        for owner, name in ((torch, "load"), *of_amp, (torch.nn.Module, "to")):
            self.patches.set(owner, name, self._rewriting(getattr(owner, name)))

    def _rewriting(self, real: Any) -> Any:
        @functools.wraps(real)
        def call(*args: Any, **kwargs: Any) -> Any:
            return real(*map(self.rewrite, args), **{k: self.rewrite(x) for k, x in kwargs.items()})

        return call

    def _methods(self) -> None:
        torch = self.torch
        for device in self.devices:
            for owner in (torch.Tensor, torch.nn.Module):
                self.patches.set(owner, device, lambda x, *_, **__: host_memory.copied(x))
            self.patches.set(torch.Tensor, f"is_{device}", True)
        self.patches.set(torch.Tensor, "pin_memory", lambda x, *_: host_memory.copied(x))
        self.patches.set(torch.Tensor, "__init__", mark_sized)

    def _threads(self) -> None:
        """A mode of torch is that of one thread: each thread that is started gets one of its own."""
        start = threading.Thread.start

        def started(thread: threading.Thread) -> None:
            thread.run = functools.partial(self._inside, thread.run)  # type: ignore[method-assign]
            start(thread)

        self.patches.set(threading.Thread, "start", started)

    def _inside(self, run: Any) -> None:
        with _mode(self):
            run()


def _mode(owner: TorchOnCpu) -> Any:
    from torch.overrides import TorchFunctionMode

    class OnCpu(TorchFunctionMode):
        """Rewrites the device in calls of torch."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            by_name = host_memory.is_named((*args, *kwargs.values())) and not kwargs.get("pin_memory")
            if "device" in kwargs:
                kwargs["device"] = owner.rewrite(kwargs["device"])
            if kwargs.get("pin_memory"):
                kwargs["pin_memory"] = False  # memory of the CPU is what the device reads anyway
            name = getattr(func, "__name__", "")
            if name == "to":
                args = tuple(map(owner.rewrite, args))
            made = func(*args, **kwargs)
            mark_torch(name, made)
            if by_name:
                return host_memory.mark(made, args)
            return host_memory.copied(made) if name == "to" else made

    return OnCpu()


def _leave(mode: Any) -> None:
    """Take `mode` off torch's stack of modes, wherever in it it is."""
    import torch.overrides

    stack: Any = torch.overrides
    above = []
    while (top := stack._pop_mode()) is not mode:
        above.append(top)
    for other in reversed(above):
        stack._push_mode(other)
