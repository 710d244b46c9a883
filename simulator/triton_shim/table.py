"""Which modules stand in for Triton's, and what each of them shows."""

from __future__ import annotations

from typing import Any

from .. import cdiv
from ..record.files import picked
from . import driver, element_types, kernel, knobs, runtime, tbe, testing, tuning
from .standin import StandIn

VERSION = "3.5.0"  # of the surface that is modelled: what Triton-Ascend's main branch is built on

LANGUAGE = "ascendtile.simulator.language"
MATHS = (f"{LANGUAGE}.extra.cann.libdevice", f"{LANGUAGE}.extra.libdevice", f"{LANGUAGE}.math")
EXTENSION = (f"{LANGUAGE}.extra.cann.extension",)
FOR_TESTS = "ascendtile.simulator.triton_shim.for_tests"
BUFFER = (f"{LANGUAGE}.extension.buffer", f"{LANGUAGE}.extra.cann.buffer")

# Module -> the modules of ours whose names it shows.
BEHIND: dict[str, tuple[str, ...]] = {
    "triton._internal_testing": (f"{FOR_TESTS}.internal_testing",),
    "triton.extension.buffer.language": BUFFER,
    "triton.language": (LANGUAGE, *EXTENSION),  # Triton-Ascend 3.2 has the extension's builtins here, too
    "triton.language.core": (LANGUAGE,),
    "triton.language.extra.ascend.libdevice": (*MATHS, *EXTENSION),
    "triton.language.extra.cann.extension": EXTENSION,
    "triton.language.extra.cann.libdevice": (*MATHS, *EXTENSION),
    "triton.language.extra.cuda.libdevice": MATHS,
    "triton.language.extra.kernels": (f"{LANGUAGE}.extra.kernels",),
    "triton.language.extra.libdevice": MATHS,
    "triton.language.math": (f"{LANGUAGE}.math", LANGUAGE, *MATHS),
    "triton.language.random": (f"{LANGUAGE}.random", LANGUAGE),
    "triton.language.standard": (LANGUAGE,),
    "triton.tools.mxfp": (f"{FOR_TESTS}.mxfp",),
    "triton.tools.tensor_descriptor": ("ascendtile.simulator.triton_shim.tensor_descriptor",),
}
# Modules with the names of `own_names` alone, or with none.
BARE = """
    tbe tbe.common tbe.common.platform triton triton._utils triton.backends triton.backends.ascend
    triton.backends.ascend.driver triton.backends.ascend.runtime triton.backends.ascend.testing triton.backends.compiler
    triton.compiler triton.compiler.compiler triton.compiler.errors triton.errors triton.extension triton.extension.buffer
    triton.knobs triton.language.extra triton.language.extra.ascend triton.language.extra.cann triton.language.extra.cuda
    triton.runtime triton.runtime._allocation triton.runtime.autotuner triton.runtime.driver triton.runtime.errors
    triton.runtime.jit triton.runtime.libentry triton.testing triton.tools triton.tools.get_ascend_devices
"""


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least `n`; 0 for 0, as Triton has it."""
    n = int(n)
    return 1 << (n - 1).bit_length() if n > 0 else 0


def own_names() -> dict[str, dict[str, Any]]:
    """Module -> the names it has of its own."""
    jit = picked(kernel, "JITFunction KernelInterface KernelParam jit")
    jit["constexpr_function"] = runtime.constexpr_function
    wrapped = picked(element_types, "TensorWrapper reinterpret")
    tuners = picked(tuning, "Autotuner Config Heuristics autotune heuristics")
    devices = driver.Driver()
    active = {"active": devices.active, "default": devices.default, "driver": devices}
    numbers = {"cdiv": _host(cdiv), "next_power_of_2": _host(next_power_of_2)}
    target = {"GPUTarget": driver.GPUTarget}
    return {
        "tbe.common.platform": tbe.NAMES,
        "triton": {"__version__": VERSION, **jit, **tuners, **numbers, **wrapped, **runtime.TOP},
        "triton._utils": {"TRITON_MAX_TENSOR_NUMEL": 1 << 20},
        "triton.backends.ascend.testing": {"do_bench_npu": testing.do_bench_npu},
        "triton.backends.compiler": target,
        "triton.compiler": runtime.COMPILER,
        "triton.compiler.compiler": runtime.COMPILER,
        "triton.compiler.errors": runtime.ERRORS,
        "triton.errors": runtime.ERRORS,
        "triton.knobs": knobs.NAMES,
        "triton.language": {"str_to_ty": element_types.str_to_ty},
        "triton.language.core": runtime.CORE,
        "triton.language.standard": numbers,
        "triton.runtime": {**jit, **tuners, **runtime.ERRORS},
        "triton.runtime.autotuner": {**tuners, **runtime.ERRORS},
        "triton.runtime.driver": {**active, "set_active": devices.set_active},
        "triton.runtime.errors": runtime.ERRORS,
        "triton.runtime._allocation": picked(runtime, "NullAllocator set_allocator"),
        "triton.runtime.jit": {**jit, **element_types.JIT},
        "triton.runtime.libentry": {"libentry": runtime.libentry, "libtuner": runtime.libtuner},
        "triton.testing": testing.NAMES,
        "triton.tools.get_ascend_devices": {"is_compile_on_910_95": False},
    }


def _host(fn: Any) -> Any:
    """A function that kernels may call at compile time, too."""
    fn.__ascendtile_host__ = True
    return fn


def build() -> dict[str, StandIn]:
    """All stand-ins by name, each also an attribute of the one above it."""
    own, every = own_names(), dict.fromkeys(BARE.split(), ()) | BEHIND
    made = {name: StandIn(name, own.get(name, {}), behind) for name, behind in every.items()}
    for name, module in made.items():
        above, _, last = name.rpartition(".")
        if above:
            setattr(made[above], last, module)
    return made
