"""Which modules stand in for Triton's, and what each of them shows."""

from __future__ import annotations

from typing import Any

from .. import cdiv
from ..frontend.words import constexpr
from . import kernel
from .standin import StandIn

VERSION = "3.5.0"  # of the surface that is modelled: what Triton-Ascend's main branch is built on

LANGUAGE = "ascendtile.simulator.language"
MATHS = (
    f"{LANGUAGE}.math",
    f"{LANGUAGE}.libdevice",
    f"{LANGUAGE}.extra.libdevice",
    f"{LANGUAGE}.extra.cann.libdevice",
)
EXTENSION = (f"{LANGUAGE}.extra.cann.extension",)
BUFFER = (f"{LANGUAGE}.extra.cann.buffer", f"{LANGUAGE}.extension.buffer.language")

# Module -> the modules of ours whose names it shows.
BEHIND: dict[str, tuple[str, ...]] = {
    "triton": (),
    "triton.language": (LANGUAGE,),
    "triton.language.core": (LANGUAGE,),
    "triton.language.standard": (LANGUAGE,),
    "triton.language.math": (LANGUAGE, *MATHS),
    "triton.language.extra": (),
    "triton.language.extra.libdevice": MATHS,
    "triton.language.extra.cuda": (),
    "triton.language.extra.cuda.libdevice": MATHS,
    "triton.language.extra.cann": (),
    "triton.language.extra.cann.extension": EXTENSION,
    "triton.language.extra.cann.libdevice": MATHS,
    "triton.language.extra.ascend": (),
    "triton.language.extra.ascend.libdevice": (*MATHS, *EXTENSION),
    "triton.extension": (),
    "triton.extension.buffer": (),
    "triton.extension.buffer.language": BUFFER,
    "triton.runtime": (),
    "triton.runtime.jit": (),
}


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least `n`; 0 for 0, as Triton has it."""
    n = int(n)
    return 1 << (n - 1).bit_length() if n > 0 else 0


def own_names() -> dict[str, dict[str, Any]]:
    """Module -> the names it has of its own."""
    runtime = {
        "JITFunction": kernel.JITFunction,
        "KernelInterface": kernel.KernelInterface,
        "jit": kernel.jit,
    }
    return {
        "triton": {
            "__version__": VERSION,
            "jit": kernel.jit,
            "JITFunction": kernel.JITFunction,
            "KernelInterface": kernel.KernelInterface,
            "cdiv": _host(cdiv),
            "next_power_of_2": _host(next_power_of_2),
        },
        "triton.language.core": {"_unwrap_if_constexpr": _unwrap},
        "triton.runtime": runtime,
        "triton.runtime.jit": runtime,
    }


def _host(fn: Any) -> Any:
    """A function that kernels may call at compile time, too."""
    fn.__ascendtile_host__ = True
    return fn


def _unwrap(x: Any) -> Any:
    return x.value if isinstance(x, constexpr) else x


def build() -> dict[str, StandIn]:
    """All stand-ins by name, each also an attribute of the one above it."""
    own = own_names()
    made = {name: StandIn(name, own.get(name, {}), behind) for name, behind in BEHIND.items()}
    for name, module in made.items():
        above, _, last = name.rpartition(".")
        if above:
            setattr(made[above], last, module)
    return made
