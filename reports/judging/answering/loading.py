"""An answer as modules of this process: from texts, so that nothing of it lies in a file; and which names it may import."""

from __future__ import annotations

import builtins
import inspect
import linecache
import sys
from collections.abc import Callable
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

from ..answer_log import AnswerRequest
from ..seeds import WEIGHTS_SEED, seed_everything
from .tensors import tensors_in

OWN = "ascendtile"
PUBLIC = (
    "ascendtile",
    "ascendtile.simulator",
    "ascendtile.simulator.language",
    "ascendtile.simulator.triton_shim",
)


class Texts(MetaPathFinder, InspectLoader):
    """Finds modules by their texts. files: module name -> (file name, text)."""

    def __init__(self, files: dict[str, tuple[str, str]]) -> None:
        self.files = files
        self.builtins = {**vars(builtins), "__import__": _import}

    def find_spec(
        self, fullname: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module of that name, if it is one of the answer's."""
        if fullname not in self.files:
            return None
        return ModuleSpec(fullname, self, origin=self.files[fullname][0])

    def get_source(self, fullname: str) -> str:
        return self.files[fullname][1]

    def get_code(self, fullname: str) -> CodeType:
        file, text = self.files[fullname]
        code: CodeType = self.source_to_code(text, file)
        return code

    def is_package(self, fullname: str) -> bool:
        return False

    def exec_module(self, module: ModuleType) -> None:
        """Run its text, which those find who look for the source of its functions."""
        file, text = self.files[module.__name__]
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        vars(module).update(__builtins__=self.builtins, __file__=file)
        super().exec_module(module)


def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    """`import` of an answer: of this package what is public."""
    asked = [name, *(f"{name}.{x}" for x in fromlist or () if f"{name}.{x}" in sys.modules)]
    for full in asked if name.partition(".")[0] == OWN else ():
        if full not in PUBLIC and not full.startswith("ascendtile.simulator.language"):
            raise ImportError(
                f"the judge lets no answer import {full}; import triton, or ascendtile.simulator"
            )
    return builtins.__import__(name, globals, locals, fromlist, level)


def module_of(request: AnswerRequest) -> ModuleType:
    """The answer, run."""
    stem = request.name.removesuffix(".py")
    main = stem if stem.isidentifier() else "answer"
    files = {n: (f"{n}.py", text) for n, text in request.siblings.items()}
    files[main] = (request.name, request.text)
    finder = Texts(files)
    sys.meta_path.insert(0, finder)
    spec = finder.find_spec(main)
    assert spec is not None
    module = ModuleType(main)
    module.__spec__ = spec
    sys.modules[main] = module
    finder.exec_module(module)
    return module


def files_of(request: AnswerRequest) -> tuple[str, ...]:
    """Names that the code of the answer has."""
    return (request.name, *(f"{n}.py" for n in request.siblings))


def entry_of(module: ModuleType, request: AnswerRequest, init: Any, state: Any) -> Callable[..., Any]:
    """What is called with the inputs: a ModelNew with the state of the task's Model, or the function."""
    found = getattr(module, request.entry)
    arguments, named = init
    if not request.is_class:
        return _with_extra(found, arguments, named) if request.extra else found
    seed_everything(WEIGHTS_SEED)
    model = found(*arguments, **named)
    if state and hasattr(model, "load_state_dict"):
        own = model.state_dict()
        same = {n: x for n, x in state.items() if n in own and own[n].shape == x.shape}
        model.load_state_dict(same, strict=False)
    call: Callable[..., Any] = model if callable(model) else model.forward
    return call


def _with_extra(function: Callable[..., Any], arguments: Any, named: Any) -> Callable[..., Any]:
    """A function that gets the init arguments behind its inputs, where it has parameters for them."""

    def call(*inputs: Any, **options: Any) -> Any:
        parameters = inspect.signature(function).parameters.values()
        needed = [p for p in parameters if p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD]
        more = arguments if len(needed) > len(inputs) else ()
        return function(*inputs, *more, **options, **(named if more else {}))

    return call


def held_by(module: ModuleType, entry: Any) -> list[Any]:
    """Tensors that the answer has before it is called: parameters, buffers, attributes, names of its module."""
    held = (
        [*vars(module).values(), *vars(entry).values()]
        if hasattr(entry, "__dict__")
        else [*vars(module).values()]
    )
    if hasattr(entry, "state_dict"):
        held += [*entry.parameters(), *entry.buffers()]
    return [*tensors_in(held), *(x for x in held if type(x).__module__ == "numpy")]
