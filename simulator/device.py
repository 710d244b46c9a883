"""The device that kernels run on, and how a run is to be done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .device_checks import RELEASES, check_options
from .errors import UsageError
from .l2.state import LOOP, REPLACED, L2State
from .precision.numerics_file import chosen_numerics
from .precision.splits import SPLITS
from .products import Product, load_product

if TYPE_CHECKING:
    from .execution.float64.memory import Float64Memory

DEFAULT_PRODUCT = "ascend910b3"
TRITON_ASCEND, ASCENDC = "triton-ascend", "ascendc"
USUAL_RELEASE = RELEASES[0]  # of triton-ascend
BY_HAND = 4  # iterations between Cube and Vector that an author of Ascend C has under way
CUBE_MATH_TYPES = ("KEEP_DTYPE", "ALLOW_FP32_DOWN_PRECISION", "USE_FP16", "USE_HF32", "USE_FP32_ADD")
MATH_MODES = (*CUBE_MATH_TYPES, *SPLITS)  # the vendor's, and ours, which have no number


@dataclass(frozen=True)
class Device:
    """What a launch needs to know besides its arguments.

    product: the device. cube_math_type: precision mode of the Cube, or a split of FP32 operands (precision/splits),
    which some operators take and kernels of the user's own do not. values, time: whether a launch computes each of them.
    compiler: who makes the code: "triton-ascend", whose rules give buffers, copies and cores (AscendNPU-IR), "ascendc" for
    what an author of Ascend C would place by hand, None for the usual one: "ascendc" for the operators of this package,
    "triton-ascend" for every other kernel. compiler_version: "9.0" tries again after an overflow, "8.5" does not.
    bind_sub_block: whether both Vector cores of a core share the rows of a program with products, whoever makes its code.
    multibuffer: copies of a tile that is loaded or stored in a loop (1 = no overlap between iterations).
    multibuffer_l0c: whether that also holds for an accumulator in L0C that is stored in a loop. None: by who makes the code;
    an author of Ascend C has two, triton-ascend one (`limit_auto_multi_buffer_of_local_buffer`).
    mixed_copies: where programs of triton-ascend with products and Vector work have copies: "only-cube" (L1), "only-vector"
    (UB) or "no-limit" (`limit_auto_multi_buffer_buffer`). single_in: buffers in which nothing has, of "UB", "L1" and "L0C"
    (`disable_multi_buffer_on_ub` and its like).
    l0_tile: (baseM, baseN, baseK) of matrix products; None chooses the largest that fits twice in L0A and L0B.
    l2: what is in L2 when a kernel, or an operator of several, starts: "loop" (what the same left when it was launched
    before), "cold" (nothing) or "warm" (the arguments, as far as they fit, and nothing to write back); or by tensor
    argument, {"x": "warm"}, where the others are as in a loop. See `l2/state.py`.
    cold_code: whether another kernel ran before, as in the profile of a network, so that the cores fetch the kernel's code
    first (`cold_code_us`, `further_code_us`); otherwise the kernel is launched again and again.
    banks_apart: whether tiles of UB that a vector instruction reads together are placed half of the banks apart where there
    is room, as a kernel written by hand pads its buffers; without it they are packed, as the compiler does.
    workspace_copies: of a tile that passes between Cube and Vector cores through global memory, in a loop: iterations that
    are under way at once. None: by who makes the code, see `tiles_under_way`. Of triton-ascend's code these are places in
    that memory and nothing else: Cube and Vector work keeps the order that the kernel has within an iteration.
    local_copies_only: that triton-ascend makes one of them only (`limit_auto_multi_buffer_only_for_local_buffer`).
    tile_mix_vector_loop, tile_mix_cube_loop: pieces in which triton-ascend lets the Vector part and the Cube part of a loop
    with both do an iteration, one after the other (placement/shared_rows/pieces.py).
    unit_flag: whether a product in L0C may be overwritten while the fixpipe still drains it, piece by piece.
    accumulate: "exact" is the Cube's own order of additions, "blas" that of numpy's matmul (faster, other last bits).
    hf32_round: RINT (control register mode 0), ROUND (mode 1) or RNZ, for products in HF32.
    numerics: choices that differ from the product's or the usual ones, see `simulator/precision/numeric_switches.py`; or
    the path of a file of them, alone or as the choice "file" (`simulator/precision/numerics_file.py`).
    atomic_seed: draws the order in which programs reach global memory where it matters (floating-point atomics); None is the
    order of their numbers. The device defines none: `atomic_spread` tells what the choice is worth.
    explain: whether a launch is timed again and again to say what holds its time up: with one limit lifted at a time, and
    with one knob changed.
    details: False leaves out of a launch what only pages about it show, for sweeps: costs by line, roofs, grades, and what
    measured times lie between.
    check: whether a launch with values also makes the dear checks of its accesses (`simulator/checks`): what they find is a
    message of kind "fault" in the run. At most three times the time of the values.
    masked: what masked-out lanes of a load without `other` hold, which nobody promises: "zero", or "poison" (NaN, of
    integers the smallest), so that it is seen where they reach a result. `check=True` poisons, too.
    out_of_bounds: "error", or "warn": an access outside of its tensor is a message of kind "fault" and the launch goes on;
    such a load gives 0, such a store or atomic does nothing.
    errors: True evaluates the same tile program in float64 without rounding beside its values, so that `run.errors` has the
    errors of every tensor that a kernel of the user's own writes; "lines" also finds which lines' roundings make them up
    (`run.error_lines`; it takes one more evaluation a line). float64: what tensors would hold, from launch to launch.
    reference: right outputs in place of that: a function that takes arguments of the kernel by name (tensors as they were
    before the launch, floating-point ones as float64) and gives an array, or a dict of them by name; or such a dict.
    timeline: instructions kept in the record, of whole cores where not all have room. step_limit: loop iterations after
    which a kernel counts as endless, those of `for` and `while` alike, added up over its loops; one that several programs do
    together counts once. A `while` that waits for memory which nobody can change any more is a hang at once.
    """

    product: Product
    cube_math_type: str = "KEEP_DTYPE"
    values: bool = True
    time: bool = True
    compiler: str | None = None
    compiler_version: str = USUAL_RELEASE
    bind_sub_block: bool = True
    multibuffer: int = 2
    multibuffer_l0c: bool | None = None
    mixed_copies: str = "only-cube"
    single_in: tuple[str, ...] = ()
    explain: bool = False
    details: bool = True
    timeline: int = 20_000
    step_limit: int = 1_000_000
    l0_tile: tuple[int, int, int] | None = None
    l2: str | Mapping[str, str] | L2State = LOOP
    cold_code: bool = False
    banks_apart: bool = False
    unit_flag: bool = False
    workspace_copies: int | None = None
    local_copies_only: bool = False
    tile_mix_vector_loop: int = 1
    tile_mix_cube_loop: int = 1
    accumulate: str = "exact"
    hf32_round: str = "RINT"
    atomic_seed: int | None = None
    numerics: Mapping[str, Any] = field(default_factory=dict)
    check: bool = False
    masked: str = "zero"
    out_of_bounds: str = "error"
    errors: bool | str = False
    reference: Callable[..., Any] | Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    float64: Float64Memory | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.cube_math_type not in MATH_MODES:
            raise UsageError(
                f"unknown cube_math_type {self.cube_math_type!r}; allowed are {', '.join(MATH_MODES)}"
            )
        check_options(self)
        object.__setattr__(self, "numerics", chosen_numerics(self.numerics))

    @property
    def author(self) -> str:
        """Who makes the code of a kernel."""
        return self.compiler or TRITON_ASCEND

    @property
    def tiles_under_way(self) -> int:
        """Iterations of a mixed loop between Cube and Vector cores.

        An author of Ascend C has several, as published attention kernels do. What triton-ascend makes of attention takes the
        time of Cube and Vector in turn (fa-* of the open board times: CANN 9.1.0-beta.1), although it has options for more.
        """
        if self.author != TRITON_ASCEND:
            return self.workspace_copies or BY_HAND
        return 1 if self.local_copies_only else self.workspace_copies or 1

    def code_by(self, usual: str = TRITON_ASCEND) -> str:
        """Who makes the code, as records have it: "triton-ascend 9.0", "ascendc". usual: of what runs, if nobody asked."""
        author = self.compiler or usual
        return f"{author} {self.compiler_version}" if author == TRITON_ASCEND else author

    @property
    def hf32(self) -> bool:
        """Whether float32 products that say nothing of their precision run in HF32."""
        return self.cube_math_type in ("ALLOW_FP32_DOWN_PRECISION", "USE_HF32")


_current: ContextVar[Device | None] = ContextVar("ascendtile_device", default=None)
_everywhere: list[
    Device
] = []  # of the process: threads start without the context of the thread that started them


def current_device() -> Device:
    """The device in force: that of the innermost `with device(...)`, else the process's, else ascend910b3."""
    return _current.get() or (_everywhere[-1] if _everywhere else _default())


@lru_cache(maxsize=1)
def _default() -> Device:
    return Device(load_product(DEFAULT_PRODUCT))


@contextmanager
def device(
    product: str | Product | None = None, *, compiler_version: str | None = None, **options: Any
) -> Iterator[Device]:
    """`with sim.device("ascend910b3", cube_math_type="USE_HF32"):` runs kernels inside on that device.

    product: a product name, a path to a TOML file, or a Product; None keeps the current one.
    compiler_version: the release of triton-ascend, "9.0" or "8.5"; None keeps it.
    options: other fields of `Device`, and `overrides={"buffers.ub": 262144}` for a changed product.
    """
    base = current_device()
    if compiler_version is not None:
        options["compiler_version"] = compiler_version
    overrides = options.pop("overrides", None)
    unknown = set(options) - set(Device.__dataclass_fields__)
    if unknown:
        for name in unknown & set(REPLACED):
            raise UsageError(f"the device option {name} is gone; give {REPLACED[name]}")
        known = ", ".join(Device.__dataclass_fields__)
        raise UsageError(f"unknown device option {sorted(unknown)[0]!r}; known are {known}, overrides")
    if options.get("errors"):
        from .execution.float64.memory import (
            Float64Memory,  # only here: it needs numpy, which takes time to import
        )

        options["float64"] = base.float64 or Float64Memory()
    chosen = load_product(product or base.product, overrides=overrides or {})
    with using(replace(base, product=chosen, **options)) as made:
        yield made


@contextmanager
def using(chosen: Device) -> Iterator[Device]:
    """Kernels inside run on that very device."""
    token = _current.set(chosen)
    try:
        yield chosen
    finally:
        _current.reset(token)


@contextmanager
def device_everywhere(product: str | Product | None = None, **options: Any) -> Iterator[Device]:
    """As `device`, and in force in the threads that are started meanwhile, too: for a script that is run as a whole."""
    with device(product, **options) as chosen:
        _everywhere.append(chosen)
        try:
            yield chosen
        finally:
            _everywhere.remove(chosen)
