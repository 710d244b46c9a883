"""A task's module, in a process of its own that is trusted with it: its cases, its Model, its reference.

The same seed gives the same inputs and weights in every process. Random numbers that a Model draws in its forward are drawn
after `WEIGHTS_SEED`, as they are in the answer: KernelBench and its kin set a seed before both, too.
"""

from __future__ import annotations

import copy
import importlib.abc
import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from ....simulator.errors import UsageError
from ....simulator.triton_shim import DEVICES, installed
from ..exchange import is_tensor
from ..seeds import WEIGHTS_SEED, seed_everything
from .files import GROUPS, MODEL

Arguments = tuple[list[Any], dict[str, Any]]  # by place, and by name


class TextLoader(importlib.abc.InspectLoader):
    """Makes a module of a text that was read before, so that what runs is what was judged."""

    def __init__(self, text: str, path: str) -> None:
        self.text, self.path = text, path

    def get_source(self, fullname: str) -> str:
        return self.text

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self.text, self.path)
        return code

    def is_package(self, fullname: str) -> bool:
        return False


def module_of(text: str, name: str, path: str) -> ModuleType:
    """The module of that text, run."""
    spec = importlib.util.spec_from_loader(name, TextLoader(text, path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = path
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class LoadedTask:
    """The module of a task, at a path that this process alone has; what it raises is bad input (`UsageError`)."""

    module: ModuleType
    path: str

    @property
    def name(self) -> str:
        """The name of its file."""
        return Path(self.path).name

    def asked(self, what: str, make: Callable[[], Any]) -> Any:
        """`make()`; an exception of the task's own is bad input."""
        try:
            return make()
        except BaseException as e:  # SystemExit, too: a task that leaves has no inputs
            line = _line_in(e, self.path)
            place = f"{self.name}:{line}" if line else self.name
            said = str(e).replace(f"{Path(self.path).parent}/", "")
            raise UsageError(f"{place}: {what} of the task raised {type(e).__name__}: {said}") from e

    def cases(self, seed: int) -> list[Arguments]:
        """Inputs of every case."""
        seed_everything(seed)
        if hasattr(self.module, GROUPS):
            groups = self.asked(GROUPS, self.module.get_input_groups)
            if not isinstance(groups, list | tuple) or not groups:
                raise UsageError(f"{self.name}: {GROUPS} gives {groups!r:.40}; it must give a list of cases")
            return [self._arguments(x, GROUPS) for x in groups]
        return [self._arguments(self.asked("get_inputs", self.module.get_inputs), "get_inputs")]

    def init(self) -> Arguments:
        """Arguments of Model."""
        make = getattr(self.module, "get_init_inputs", list)
        seed_everything(WEIGHTS_SEED)
        return self._arguments(self.asked("get_init_inputs", make), "get_init_inputs")

    def _arguments(self, found: Any, source: str) -> Arguments:
        if isinstance(found, Mapping):
            return [], dict(found)
        if not isinstance(found, list | tuple):
            raise UsageError(
                f"{self.name}: {source} gives a {type(found).__name__}; it must give a list of arguments"
            )
        return list(found), {}

    def model(self) -> Any:
        """A Model with its weights."""
        args, named = self.init()
        seed_everything(WEIGHTS_SEED)
        return self.asked(MODEL, lambda: getattr(self.module, MODEL)(*args, **named))

    def outputs(self, model: Any, arguments: Arguments) -> list[Any]:
        """What a Model gives for these arguments, as a list. It may write into them: see `copied`."""
        args, named = arguments
        call = model if callable(model) else model.forward
        seed_everything(WEIGHTS_SEED)
        with no_grad():
            return as_list(self.asked("forward", lambda: call(*args, **named)))


@contextmanager
def loaded_task(request: Mapping[str, Any]) -> Iterator[LoadedTask]:
    """The task of a request: name, text, and texts of the files beside it that it reads, which it finds beside it again.

    "npu" and "cuda" are names of the CPU in it, and `torch_npu` is there.
    """
    with installed(DEVICES), tempfile.TemporaryDirectory() as folder:
        for name, text in request["companions"].items():
            Path(folder, name).write_text(text, encoding="utf-8")
        path = str(Path(folder, request["name"]))
        sys.path.insert(0, folder)
        empty = LoadedTask(ModuleType("task"), path)
        yield LoadedTask(
            empty.asked("the module", lambda: module_of(request["text"], "ascendtile_task", path)), path
        )


def _line_in(error: BaseException, path: str) -> int | None:
    trace, line = error.__traceback__, None
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == path else line
        trace = trace.tb_next
    return line


def no_grad() -> AbstractContextManager[Any]:
    """Torch without gradients, where it is there."""
    torch = sys.modules.get("torch")
    return torch.no_grad() if torch is not None else nullcontext()


def as_list(outputs: Any) -> list[Any]:
    """One output, or several: lists, tuples and the values of a dict, by its keys in order, are taken apart."""
    if isinstance(outputs, Mapping):
        outputs = [outputs[key] for key in sorted(outputs, key=str)]
    if isinstance(outputs, list | tuple):
        return [y for x in outputs for y in as_list(x)]
    return [outputs]


def copied(arguments: Arguments) -> Arguments:
    """Arguments whose tensors are others, with the same strides."""
    args, named = arguments
    return [_copy(x) for x in args], {k: _copy(x) for k, x in named.items()}


def _copy(value: Any) -> Any:
    if is_tensor(value):
        return value.clone() if hasattr(value, "clone") else value.copy()
    return copy.deepcopy(value)


def in_float64(value: Any) -> Any:
    """A tensor of floating numbers, and what holds such, in float64; everything else as it is."""
    if isinstance(value, list | tuple):
        return type(value)(in_float64(x) for x in value) if type(value) in (list, tuple) else value
    if isinstance(value, np.ndarray):
        return value.astype(np.float64) if is_floating(value) else value
    if is_tensor(value):
        return value.double() if is_floating(value) else value
    return value


def is_floating(tensor: Any) -> bool:
    """Whether a tensor holds real floating numbers (those of ml_dtypes have another kind)."""
    if isinstance(tensor, np.ndarray | np.generic):
        return tensor.dtype.kind == "f" or tensor.dtype.name.startswith(("bfloat", "float"))
    return bool(tensor.is_floating_point())


def tensors_in(values: Sequence[Any]) -> list[Any]:
    """The tensors of arguments, also in lists."""
    return [x for x in as_list(list(values)) if is_tensor(x)]
