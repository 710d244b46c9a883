"""Which functions are what they were: torch's, Triton's, Python's, numpy's and this package's, before and after an answer.

Whoever replaces one changes what others measure or compute: a clock, a comparison, a launch. Their code cannot be changed in
place: see `refusals.py`.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from operator import is_
from types import FunctionType
from typing import Any, NamedTuple

from ....simulator import observers
from ....simulator.device import Device, current_device
from ..verdict import Cheat
from ._changed import changed, changed_owners

TORCH = (
    "torch",
    "torch.nn",
    "torch.nn.functional",
    "torch.autograd",
    "torch.cuda",
    "torch.npu",
    "torch.testing",
)
PYTHON = (
    "builtins",
    "time",
    "timeit",
    "math",
    "os",
    "sys",
    "gc",
    "linecache",
    "inspect",
    "json",
    "types",
    "functools",
)
NUMPY = ("numpy", "numpy.testing")
OF_TIME = ("time", "timeit", "triton.testing", "triton.backends.ascend.testing")
OWN = "ascendtile."
CLOCKS = ("Event", "synchronize", "elapsed_time", "record", "do_bench", "perf_counter", "Clock", "time_us")

# Name of a module or class -> its dict, and what stood in it. Values are kept, so that none takes the place of another.
Snapshot = dict[str, tuple[dict[str, Any], dict[str, Any]]]


class KnownBefore(NamedTuple):
    """What the process that forks has looked at, and the modules that it had."""

    owners: Snapshot
    modules: dict[str, Any]


_known: list[KnownBefore] = []  # one, or none
# Large dicts that are done with. To free one counts down in all that it holds: a forked process copies the pages of that.
_spent: dict[str, Any] = {}


def know() -> None:
    """Look at everything now, so that `snapshot` in a forked process copies only what is another since."""
    _known[:] = [KnownBefore(_copied(sys.modules), dict(sys.modules))]


def snapshot() -> Snapshot:
    """Everything that is looked at, as it is now. It is the caller's alone: no module holds it on."""
    if not _known:
        return _copied(sys.modules)
    found, modules = _known.pop()
    _spent["modules"] = modules
    other = changed_owners(found)
    for name in other:
        _renew(*found[name])
    again = {*changed(sys.modules, modules), *(n for n in other if n in sys.modules)}
    for name, owner in _owners({n: sys.modules[n] for n in sorted(again)}):
        entries = _entries(owner)
        if (
            name not in found or found[name][0] is not entries
        ):  # a module that came late, or a class of one that changed
            found[name] = entries, dict(entries)
    return found


def _renew(now: dict[str, Any], was: dict[str, Any]) -> None:
    """Make `was` what is there now, by what differs only."""
    for name in changed(now, was):
        was[name] = now[name]
    for name in changed(was, now):
        del was[name]


def replaced(before: Snapshot) -> list[Cheat]:
    """Functions and classes that are no longer what they were. What was added is left alone."""
    _spent["before"] = before
    return [
        Cheat(name=_kind(owner, name), message=f"replaces {owner}.{name}", line=_line(now.get(name)))
        for owner in changed_owners(before)
        for now, was in [before[owner]]
        for name in changed(was, now)
        if _is_function(was[name])
    ]


DEVICE_OPTIONS = (
    "values",
    "time",
    "cube_math_type",
    "compiler",
    "compiler_version",
    "l2",
    "accumulate",
    "hf32_round",
    "cold_code",
    "out_of_bounds",
    "masked",
)


def is_same_device(one: Device, other: Device) -> bool:
    """Whether a launch is on the judge's device: product and what a launch's own options do not change."""
    return one.product is other.product and all(getattr(one, n) == getattr(other, n) for n in DEVICE_OPTIONS)


class JudgeState:
    """What tells the judge of launches and their time, and is data: who watches, and the figures of the product."""

    def __init__(self) -> None:
        self.device = current_device()
        self.figures = self._figures()
        self.watching = self._watching()

    @staticmethod
    def _watching() -> tuple[Any, ...]:
        lists = (observers._watchers, observers._timers, observers._callers, observers._quiet)
        return tuple(tuple(x) for x in lists)

    def changed(self) -> str:
        """What is no longer as it was; "" if nothing is."""
        now = self._watching()
        same = [len(a) == len(b) and all(map(is_, a, b)) for a, b in zip(self.watching, now, strict=True)]
        if not all(same):
            return "changes who is told of launches"
        if current_device() is not self.device:
            return "leaves another device in force"
        return "" if self._figures() == self.figures else "changes figures of the product"

    def _figures(self) -> dict[str, Any]:
        return {key: figure.value for key, figure in self.device.product.figures_by_key.items()}


def _is_function(x: Any) -> bool:
    return callable(x) or isinstance(x, staticmethod | classmethod | property)


def _kind(owner: str, name: str) -> str:
    if owner in OF_TIME or any(n in (name, owner.rpartition(".")[2]) for n in CLOCKS):
        return "timing_replaced"
    return "harness_tampered" if owner.startswith(OWN) else "function_replaced"


def _line(x: Any) -> int | None:
    return x.__code__.co_firstlineno if isinstance(x, FunctionType) else None


def _copied(modules: dict[str, Any]) -> Snapshot:
    owned = ((name, _entries(owner)) for name, owner in _owners(modules))
    return {name: (entries, dict(entries)) for name, entries in owned}


def _entries(owner: Any) -> dict[str, Any]:
    """The dict itself: that of a class stands behind a view."""
    found: dict[str, Any] = gc.get_referents(vars(owner))[0] if isinstance(owner, type) else vars(owner)
    return found


def _owners(modules: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Modules, and classes whose methods are looked at, each by its full name."""
    own = [n for n in modules if n.startswith((OWN, "triton"))]
    for name in (*TORCH, *PYTHON, *NUMPY, *own):
        module = modules.get(name)
        if module is None:
            continue
        yield name, module
        with_methods = name.startswith(OWN) or name == "torch.nn"
        for key, x in list(vars(module).items()) if with_methods else ():
            if isinstance(x, type) and x.__module__.startswith(name):
                yield f"{name}.{key}", x
    torch: Any = modules.get("torch")
    if torch is not None:
        yield from (("torch.Tensor", torch.Tensor), ("torch.autograd.Function", torch.autograd.Function))
