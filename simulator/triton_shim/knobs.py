"""`triton.knobs`: settings by name. Most of them are a name for an environment variable, and live there.

Nothing is compiled for a device here and nothing is kept on disk: what asks for either is taken and has no effect.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

_TRUE = ("1", "true", "on", "yes", "y")
Self = TypeVar("Self", bound="Knobs")


class Knob:
    """One setting that is the environment variable `key`: a text, a number or a truth value as its default is."""

    def __init__(self, key: str, default: Any = None) -> None:
        self.key, self.default = key, default

    def __get__(self, owner: Knobs | None, of: type | None = None) -> Any:
        if owner is None:
            return self
        default = self.default(owner) if callable(self.default) else self.default
        text = os.environ.get(self.key)
        if text is None:
            return default
        return text.lower() in _TRUE if isinstance(default, bool) else text

    def __set__(self, owner: Knobs, value: Any) -> None:
        if value is None:
            self.__delete__(owner)
        else:
            os.environ[self.key] = str(int(value)) if isinstance(value, bool) else str(value)

    def __delete__(self, owner: Knobs) -> None:
        os.environ.pop(self.key, None)


class Knobs:
    """A set of settings. Those that are no `Knob` belong to the object."""

    @property
    def knob_descriptors(self) -> dict[str, Knob]:
        return {name: x for name, x in vars(type(self)).items() if isinstance(x, Knob)}

    @property
    def knobs(self) -> dict[str, Any]:
        """The settings of the environment, as they are."""
        return {name: getattr(self, name) for name in self.knob_descriptors}

    def copy(self: Self) -> Self:
        out = type(self)()
        vars(out).update(vars(self))
        return out

    def reset(self: Self) -> Self:
        """Every setting of the environment to its default."""
        for name in self.knob_descriptors:
            delattr(self, name)
        return self

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Changes inside of the block end with it."""
        own = dict(vars(self))
        before = {knob.key: os.environ.get(knob.key) for knob in self.knob_descriptors.values()}
        try:
            yield
        finally:
            vars(self).clear()
            vars(self).update(own)
            for key, text in before.items():
                os.environ.pop(key, None)
                if text is not None:
                    os.environ[key] = text


def _below_home(name: str) -> Callable[[Any], str]:
    return lambda cache: str(Path(cache.home_dir, ".triton", name))


class Cache(Knobs):
    """Where a compiler would keep its results."""

    home_dir = Knob("TRITON_HOME", lambda _: str(Path.home()))
    dir = Knob("TRITON_CACHE_DIR", _below_home("cache"))
    dump_dir = Knob("TRITON_DUMP_DIR", _below_home("dump"))
    override_dir = Knob("TRITON_OVERRIDE_DIR", _below_home("override"))
    manager_class = Knob("TRITON_CACHE_MANAGER")


class Compilation(Knobs):
    """What a compiler would do; names from outside are `frontend/outside.py`."""

    always_compile = Knob("TRITON_ALWAYS_COMPILE", False)
    allow_non_constexpr_globals = Knob("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", False)
    disable_line_info = Knob("TRITON_DISABLE_LINE_INFO", False)
    enable_asan = Knob("TRITON_ENABLE_ASAN", False)
    enable_experimental_consan = Knob("TRITON_ENABLE_EXPERIMENTAL_CONSAN", False)
    front_end_debugging = Knob("TRITON_FRONT_END_DEBUGGING", False)
    use_ir_loc = Knob("USE_IR_LOC")
    listener: Any = None


class Autotuning(Knobs):
    """`print` is read by `autotune`."""

    cache = Knob("TRITON_CACHE_AUTOTUNING", False)
    print = Knob("TRITON_PRINT_AUTOTUNING", False)


class Runtime(Knobs):
    """Settings of launches."""

    interpret = Knob("TRITON_INTERPRET", False)
    debug = Knob("TRITON_DEBUG", False)
    override_arch = Knob("TRITON_OVERRIDE_ARCH")
    jit_cache_hook: Any = None
    jit_post_compile_hook: Any = None


class Language(Knobs):
    """Settings of the language."""

    default_fp_fusion = Knob("TRITON_DEFAULT_FP_FUSION", True)


SETS: dict[str, Knobs] = {
    "autotuning": Autotuning(),
    "cache": Cache(),
    "compilation": Compilation(),
    "language": Language(),
    "runtime": Runtime(),
}
NAMES = {**SETS, "base_knobs": Knobs, "propagate_env": True}
