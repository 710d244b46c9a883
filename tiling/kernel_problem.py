"""A user's kernel as a problem of a sweep: its arguments, its grid, and values that follow from a point."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from ..simulator.device import device
from ..simulator.errors import AscendtileError, BufferOverflowError, NeedsDataError, UsageError
from ..simulator.interpreter.tensors import as_array
from ..simulator.jit_function import JitFunction
from ..simulator.products import Product
from ..simulator.record.run import Run
from ..simulator.triton_shim import kernel as triton_kernel
from ..simulator.triton_shim.tuning import copy_of
from .device_state import state_here
from .evaluate import Evaluation, Limits, evaluation, machine_of, misfit, within
from .space.declared import ABSENT, Derived
from .space.space import Point

MODE = "cube_math_type"


@dataclass(frozen=True)
class KernelProblem:
    """A user's kernel: arguments by name, grid (a tuple, or a function of all arguments), launch options of the device.

    derived: see `Declared`. state, limits: as in `OperatorProblem`. errors: whether they are wanted, against `reference`
    (as in `Device`) or the kernel's own float64 values. Nothing of the caller's is written; where the time
    depends on data, copies are.
    """

    kernel: Any
    grid: Any
    arguments: Mapping[str, Any]
    product: str | Product
    overrides: Mapping[str, float]
    fixed: Mapping[str, Any]
    derived: Derived = ()
    state: Mapping[str, Any] = field(default_factory=state_here)
    errors: bool = False
    reference: Any = None
    limits: Limits = ()

    def describe(self) -> dict[str, Any]:
        more = {"errors": True, "reference": self._reference_words()} if self.errors else {}
        more |= {"limits": self.limits} if self.limits else {}
        return {
            **more,
            "kernel": self.kernel.name,
            "source": sources_of(self.kernel),
            "grid": words_of(self.grid) if callable(self.grid) else self.grid,
            "arguments": {n: _argument_identity(x) for n, x in self.arguments.items()},
            "product": machine_of(self).fingerprint,
            "fixed": dict(self.fixed),
            "derived": [{n: words_of(f) for n, f in rules.items()} for rules in self.derived],
            "state": dict(self.state),
        }

    def evaluate(self, point: Point) -> Evaluation:
        whole, mode = self._split(point)
        try:
            run = self._run({**whole, **self._derived(whole)}, mode)
        except BufferOverflowError as e:
            return misfit(e)
        except AscendtileError as e:
            return Evaluation(failed=str(e).splitlines()[0])
        except Exception as e:  # of the user's own functions: the grid, or what follows from a point
            return Evaluation(failed=f"{type(e).__name__}: {e}")
        errors = {n: 2.0**-e.effective_bits for n, e in run.errors.items()} if self.errors else None
        return within(evaluation(run.launches, {**whole, **mode}, errors), self.limits)

    def _reference_words(self) -> Any:
        if isinstance(self.reference, Mapping):
            return {n: _argument_identity(x) for n, x in self.reference.items()}
        return None if self.reference is None else words_of(self.reference)

    def _run(self, constants: Mapping[str, Any], mode: Mapping[str, Any]) -> Run:
        if self.errors:
            return self._with_values(constants, {**mode, "errors": True, "reference": self.reference})
        try:
            with device(machine_of(self), **self.state, values=False, timeline=0, details=False, **mode):
                return self.kernel.time(self.grid, **self.arguments, **constants)  # type: ignore[no-any-return]
        except NeedsDataError:
            if any(isinstance(x, type(None)) for x in self.arguments.values()):
                raise
            return self._with_values(constants, mode)

    def _with_values(self, constants: Mapping[str, Any], mode: Mapping[str, Any]) -> Run:
        """On copies of the arguments."""
        copies = {n: copy_of(x) for n, x in self.arguments.items()}
        lean = {**mode, "timeline": 0, "details": False}
        with device(machine_of(self), **self.state, values=True, time=True, **lean):
            return JitFunction.__getitem__(self.kernel, self.grid)(**copies, **constants)  # type: ignore[no-any-return]

    def values(self, point: Point) -> dict[str, np.ndarray]:
        """What the kernel leaves in copies of the array arguments, by name."""
        whole, mode = self._split(point)
        copies = {n: copy_of(x) for n, x in self.arguments.items()}
        with device(machine_of(self), **self.state, values=True, time=False, **mode):
            JitFunction.__getitem__(self.kernel, self.grid)(**copies, **whole, **self._derived(whole))
        found = {n: as_array(n, x) for n, x in copies.items()}
        return {n: x for n, x in found.items() if x is not None}

    def _derived(self, constants: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for rules in self.derived:
            for name, rule in rules.items():
                found[name] = rule({**self.arguments, **constants, **found})
        return found

    def _split(self, point: Point) -> tuple[dict[str, Any], dict[str, Any]]:
        """Compile-time values of a point, and the precision mode unless that is a parameter of the kernel."""
        whole = {n: x for n, x in {**self.fixed, **point}.items() if x is not ABSENT}
        own = MODE in {p.name for p in self.kernel.parameters}
        return whole, {MODE: whole.pop(MODE)} if MODE in whole and not own else {}

    def __getstate__(self) -> dict[str, Any]:
        """For a cluster: the kernel by its name, since `jit` has taken the place of the function; triton's name first."""
        shim, module, name = self.wanted()
        return {"shim": _Shim(shim), **self.__dict__, "kernel": (module, name)}

    def wanted(self) -> tuple[bool, str, str]:
        """What `imported` takes on a worker: whether as triton's, the kernel's module and name."""
        return (isinstance(self.kernel, triton_kernel.JITFunction), *name_of(self.kernel))

    def __setstate__(self, state: dict[str, Any]) -> None:
        del state["shim"]
        self.__dict__.update(state, kernel=_named(*state["kernel"]))


class _Shim:
    """Unpickled before anything else of a problem: makes `import triton` find the simulator on a worker."""

    def __init__(self, needed: bool) -> None:
        self.needed = needed

    def __reduce__(self) -> Any:
        return _installed, (self.needed,)


def _installed(needed: bool) -> None:
    if needed:
        from ..simulator import triton_shim

        triton_shim.install()


def imported(shim: bool, module: str, name: str) -> bool:
    """Whether there is a kernel of that name here. Raises what importing it raises."""
    _installed(shim)
    return _named(module, name) is not None


def name_of(kernel: Any) -> tuple[str, str]:
    """(module, name) of a kernel at the top of a module that a worker can import."""
    module, name = kernel.fn.__module__, kernel.fn.__qualname__
    found = _inside(getattr(sys.modules.get(module), name, None))
    if module == "__main__" or getattr(found, "fn", None) is not kernel.fn:
        raise UsageError(
            f"a cluster imports the kernel by its name, and {name} of {module} cannot be: put it at the top of a module "
            "that the workers have, or give workers a number of processes"
        )
    return module, name


def _named(module: str, name: str) -> Any:
    return _inside(getattr(import_module(module), name))


def _inside(found: Any) -> Any:
    """The kernel without the tuners around it."""
    while found is not None and not isinstance(found, JitFunction):
        found = getattr(found, "fn", None)
    return found


def _argument_identity(x: Any) -> Any:
    """What of an argument a result may depend on: of arrays also what is in them, as loop counts may come from there."""
    shape = getattr(x, "shape", None)
    if shape is None:
        return x
    about = [str(getattr(x, "dtype", "")), list(shape)]
    array = as_array("argument", x)
    if array is None:
        return about
    data = np.ascontiguousarray(array).view(np.uint8) if array.size else np.empty(0, np.uint8)
    return [*about, list(array.strides), hashlib.sha256(data.data).hexdigest()]


def sources_of(kernel: JitFunction) -> list[str]:
    """Source of a kernel and of the kernels it calls, and the numbers it takes from its module."""
    found: dict[str, str] = {}
    waiting: list[Any] = [kernel]
    while waiting:
        one = waiting.pop()
        key = f"{one.fn.__module__}.{one.fn.__qualname__}"
        if key in found:
            continue
        found[key] = _source_of(one.fn)
        for name in (*one.fn.__code__.co_names, *one.fn.__code__.co_freevars):
            value = (one.lookup(name) or (None,))[0]
            if isinstance(value, JitFunction):
                waiting.append(value)
            elif value is not None and not callable(value) and not inspect.ismodule(value):
                found[f"{key}.{name}"] = repr(value)
    return [f"{n}\n{x}" for n, x in sorted(found.items())]


def words_of(function: Any) -> list[str]:
    """Source of a function of the user's, and the values that it takes from around it."""
    code = getattr(function, "__code__", None)
    if code is None:
        return [repr(function)]
    around = inspect.getclosurevars(function)
    taken = {**around.globals, **around.nonlocals}
    plain = {n: x for n, x in taken.items() if not callable(x) and not inspect.ismodule(x)}
    inner = {n: x for n, x in taken.items() if inspect.isfunction(x) and x is not function}
    values = [f"{n} = {x!r}" for n, x in sorted(plain.items())]
    return [_source_of(function), *values, *(w for n in sorted(inner) for w in (n, _source_of(inner[n])))]


def _source_of(fn: Any) -> str:
    try:
        return inspect.getsource(fn)
    except (OSError, TypeError):
        return repr(getattr(fn, "__code__", fn))
