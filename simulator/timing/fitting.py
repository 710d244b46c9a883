"""Whether the tiles of a launch fit in the buffers, and if not, sizes that were tried and do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from ..call import Call
from ..device import TRITON_ASCEND, USUAL_RELEASE, Device
from ..device_checks import COPIED, MIXED_COPIES
from ..errors import AscendtileError, BufferOverflowError
from ..ir.passes.split_cores import SUB_VECTOR_CORES
from ..ir.program import Program
from ..products import Product
from .placement.allocate import Limits, Placement
from .placement.allocation.context import Choice
from .placement.compiled.place import place_compiled
from .placement.fewer_copies import place_with_fewer
from .placement.layouts import BT, FB, Definitions
from .placement.memory_spaces import L0C, L1, UB, MemorySpaces
from .placement.needs import Needs
from .placement.strides import block_by_block
from .sizes_of_data import has_masks, to_divide, with_length
from .sizes_that_fit import divisors_that_fit, sizes_that_fit

MAX_PLACEMENTS = 16  # kept for one program


def require_places(call: Call) -> tuple[MemorySpaces, Placement]:
    """As `place_program`, once for a call. Raises `BufferOverflowError` with blocks that were tried and fit."""
    if "places" not in vars(call):
        try:
            vars(call)["places"] = place_program(call, call.program)
        except BufferOverflowError as e:
            raise BufferOverflowError(
                str(e), e.space, e.need_bytes, e.have_bytes, lambda: _advice(call)
            ) from None
    found: tuple[MemorySpaces, Placement] = vars(call)["places"]
    return found


def place_program(call: Call, program: Program, copies: int | None = None) -> tuple[MemorySpaces, Placement]:
    """Where values live, and their buffers: found once for each program, product and choice of the device."""
    device = call.device
    blocks = block_by_block(program, call.arguments, device.author == TRITON_ASCEND)
    banks = _banks(device.product) if device.banks_apart else None
    pair = device.bind_sub_block if device.product.aiv_per_aic == SUB_VECTOR_CORES else None
    needs = _needs(program, device.product)
    own = copies or device.multibuffer, device.multibuffer_l0c is not False
    copied = _copied(device, needs.spaces)
    pieces = device.tile_mix_vector_loop, device.tile_mix_cube_loop
    choice = Choice(
        *own,
        blocks,
        banks,
        sub_blocks=pair,
        tiles=_tiles(device),
        copied=copied,
        pieces=pieces,
        pipelined=not device.local_copies_only,
    )
    strided = (tuple(blocks.landing.items()), tuple(blocks.leaving.items()), blocks.woven)
    again = (device.compiler_version != "8.5") if device.author == TRITON_ASCEND else None
    made = choice.copies, choice.l0c, choice.sub_blocks, choice.tiles, copied, pieces, choice.pipelined
    key = (again, device.product, banks, made, strided)
    found = program.placements.get(key)
    if found is None:
        found = _found(needs, choice, device.product, again)
        if len(program.placements) >= MAX_PLACEMENTS:
            program.placements.pop(next(iter(program.placements)))
        program.placements[key] = found
    if not isinstance(found, Placement):
        raise BufferOverflowError(*found)
    return needs.spaces, found


def _tiles(device: Device) -> int:
    """Iterations between Cube and Vector that the placement has room for; the compiler's code has no stages apart."""
    return 1 if device.author == TRITON_ASCEND else device.tiles_under_way


def _copied(device: Device, spaces: MemorySpaces) -> tuple[str, ...]:
    """Buffers in which the vendor's compiler makes copies (4.5; AscendNPU-IR, MarkMultiBuffer.cpp)."""
    mixed = spaces.has_dot and spaces.has_vector_work
    all_of = MIXED_COPIES[device.mixed_copies] if mixed else COPIED
    single = device.single_in if device.multibuffer_l0c else (*device.single_in, L0C)
    return tuple(space for space in all_of if space not in single)


def _found(
    needs: Needs, choice: Choice, product: Product, again: bool | None
) -> Placement | tuple[str, str, int, int]:
    """Where the values lie; if they do not fit, what a `BufferOverflowError` is made of.

    again: whether the vendor's compiler tries again after an overflow; None where it does not place them.
    """
    limits = _limits(needs.spaces, product, by_hand=again is None)
    try:
        if again is None:
            return place_with_fewer(needs, choice, limits, product.name)
        return place_compiled(needs, choice, limits, product.name, again)
    except BufferOverflowError as e:
        return e.words, e.space, e.need_bytes, e.have_bytes


def _needs(program: Program, product: Product) -> Needs:
    """Kept on the program for each kind of core."""
    fixpipe, bias_table = product.core_model == "split", product.bt_bytes > 0
    found = program.needs.get((fixpipe, bias_table))
    if found is None:
        spaces = MemorySpaces(program, Definitions(program), fixpipe, bias_table)
        found = program.needs[fixpipe, bias_table] = Needs(spaces)
    return found


def _limits(spaces: MemorySpaces, product: Product, by_hand: bool) -> Limits:
    """Capacity and alignment of each buffer that values need. by_hand: what a library keeps of L1 is kept."""
    limits = {UB: (product.ub_bytes, product.integer("alignment.ub"))}
    if spaces.has_dot:
        reserved = product.integer("buffers.l1_reserved") if by_hand else 0
        limits[L1] = (product.l1_bytes - reserved, product.integer("alignment.l1"))
        limits[L0C] = (product.l0c_bytes, product.integer("alignment.l0c"))
    if BT in spaces.of_value.values():
        limits[BT] = (product.bt_bytes, product.integer("alignment.bt"))
    if FB in spaces.of_value.values():
        limits[FB] = (product.fb_bytes, product.integer("alignment.fb"))
    for name, capacity in (("L0A", product.l0a_bytes), ("L0B", product.l0b_bytes)):
        if any(op.attrs["space"] == name for op in spaces.program.buffers.values()):
            limits[name] = (capacity, product.integer(f"alignment.{name.lower()}"))
    return limits


def _banks(product: Product) -> tuple[int, int] | None:
    """(bytes after which the groups of UB's banks come again, bytes that a repeat reads), if they matter."""
    if product.text("ub_banks.read_read_conflict") == "none":
        return None
    period = product.integer("ub_banks.groups") * product.integer("ub_banks.row_bytes")
    return period, product.integer("vector.bytes_per_repeat")


def _advice(call: Call) -> str:
    """Changes with which the kernel fits, one at a time, each tried; those that may change the problem come last."""
    sizes: list[str] = []
    of_data: list[str] = []
    for name, x in call.constants.items():
        if isinstance(x, int) and not isinstance(x, bool) and x > 1 and (found := _sizes(call, name, x)):
            data = with_length(call, x)
            why = f", a length of {data[0]}: only if the kernel takes it in parts" if data else ""
            (of_data if data else sizes).append(f"{name} = {' or '.join(map(str, found))} (now {x}{why})")
    ways = [f"{change} (then this size fits)" for change in _other_ways(call)]
    advice = [*sizes, *ways, *of_data]
    return f"Tried, and fits: {'; or '.join(advice)}." if advice else "No size that was tried fits."


def _sizes(call: Call, name: str, now: int) -> list[int]:
    """Of a kernel without masks only sizes that divide all that the size divides now."""
    whole = 0 if has_masks(call) else to_divide(call, name)
    if whole:
        return divisors_that_fit(now, whole, lambda n: _fits(call, {name: n}))
    return sizes_that_fit(now, lambda n: _fits(call, {name: n}))


def _other_ways(call: Call) -> Iterator[str]:
    """Choices of the device that make room for the same sizes."""
    device = call.device
    fewer = (n for n in range(device.multibuffer - 1, 0, -1) if _fits(call, {}, n))
    for n in islice(fewer, 1):
        yield f"multibuffer {n if n > 1 else 'off'}"
    if device.author == TRITON_ASCEND and device.compiler_version == "8.5":
        newer = replace(call, device=replace(device, compiler_version=USUAL_RELEASE))
        if _fits(newer, {}):
            yield "a compiler that tries again after an overflow, compiler_version 9.0"


def _fits(call: Call, changed: dict[str, Any], copies: int | None = None) -> bool:
    try:
        program = call.kernel.program(call.types, {**call.constants, **changed})
        place_program(call, program, copies)
    except AscendtileError:
        return False
    return True
