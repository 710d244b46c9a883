"""A module that stands in for one of Triton's: its own names first, then those of the modules of ours behind it."""

from __future__ import annotations

import dis
import importlib
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any


class _Existing(Loader):
    """Gives a module that is there already."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """It is made."""


class StandIn(ModuleType):
    """A module named like one of Triton's.

    own: the names it defines. behind: modules of ascendtile whose names it shows, looked up at each use, so that a name
    that is added there is seen here. A name that neither has is an AttributeError that says so.
    """

    def __init__(self, name: str, own: dict[str, Any], behind: tuple[str, ...] = ()) -> None:
        super().__init__(name, f"Stand-in of ascendtile for {name}.")
        self.__dict__.update(own)
        self.__path__: list[str] = []  # a package: so a missing name reaches `Finder`, which can say more
        self.__spec__ = ModuleSpec(name, _Existing(self), is_package=True)
        self.__file__ = __file__
        self._behind = behind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for source in modules(self._behind):
            if hasattr(source, name):
                return getattr(source, name)
        text = missing(self.__name__, name)
        if _asked_by_import(sys._getframe(1)):
            raise ImportError(text, name=self.__name__)
        raise AttributeError(text, name=name, obj=self)

    def __dir__(self) -> list[str]:
        shown = {n for source in modules(self._behind) for n in getattr(source, "__all__", ())}
        return sorted({*(n for n in self.__dict__ if not n.startswith("_")), *shown})

    @property
    def __all__(self) -> list[str]:
        return dir(self)


def _asked_by_import(frame: FrameType) -> bool:
    """Whether the code of `frame` is at `from module import name`: Python would replace an AttributeError there by its own
    message, which do not say what to do."""
    code = frame.f_code.co_code
    return 0 <= frame.f_lasti < len(code) and code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]


def modules(names: tuple[str, ...]) -> list[ModuleType]:
    """Those of the modules that exist."""
    return [m for m in map(_module, names) if m is not None]


def _module(name: str) -> ModuleType | None:
    found = sys.modules.get(name)
    if found is not None:
        return found
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        if e.name and name.startswith(e.name):
            return None
        raise


def missing(module: str, name: str) -> str:
    """What is said of a name that a stand-in lacks."""
    return (
        f"{module} has no {name!r} in ascendtile: the simulator does not model it (yet); use a name it has, see "
        f"dir({module}), or guard the import with `except ImportError`"
    )
