"""What happens when a script imports torch, or a part of Triton that is missing."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from .standin import StandIn, missing


class Finder(MetaPathFinder):
    """Calls `loaded(torch)` once torch is imported, so that nobody waits for torch who does not use it.

    Of a part of Triton that no stand-in has, it says so, and what to do.
    """

    def __init__(self, loaded: Callable[[ModuleType], None]) -> None:
        self.loaded = loaded
        self.searching = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "torch_npu":
            importlib.import_module("torch")  # which brings torch_npu
            return getattr(sys.modules.get(fullname), "__spec__", None)
        if fullname != "torch" or self.searching:
            self._refuse(fullname)
            return None
        self.searching = True
        try:
            spec = importlib.util.find_spec("torch")
        finally:
            self.searching = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Afterwards(spec.loader, self.loaded)
        return spec

    @staticmethod
    def _refuse(fullname: str) -> None:
        """Raise for `import triton.x`; a search by importlib.util.find_spec is only told that there is nothing."""
        above, _, name = fullname.rpartition(".")
        asked = sys._getframe(3).f_code.co_name != "find_spec"
        if asked and isinstance(sys.modules.get(above), StandIn):
            raise ModuleNotFoundError(missing(above, name), name=fullname)


class _Afterwards(Loader):
    """A loader that tells when its module is loaded, and then steps back."""

    def __init__(self, loader: Any, loaded: Callable[[ModuleType], None]) -> None:
        self.loader = loader
        self.loaded = loaded

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self.loader.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.loaded(module)
