"""A row's tiling as settings, or the fastest of several where nobody published it; bounds that need no simulation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from math import prod
from typing import Any, TypeVar

from ascendtile.simulator import Product, Shape, device, load_product, shape
from ascendtile.simulator.errors import BufferOverflowError, UsageError
from ascendtile.simulator.l2.state import COLD, LOOP, WARM, L2State
from ascendtile.simulator.record.run import Run
from ascendtile.simulator.timing.engine.machine import (
    cold_code_us,
    cores_each,
    launch_overhead_us,
    start_cycles,
)

from .choices import keep, kept
from .registry import NO_TILING, check_fits
from .remarks import give, read, remark
from .table import Row

BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "int8": 1, "int32": 4, "int64": 8, "uint8": 1, "bool": 1}
NAMES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}


# Where l2= is not said: what msOpProf, the vendor's profiler of single kernels, does unless told otherwise. It warms up,
# clears L2 (and with it the kernel's code) and launches once for each group of counters (--replay-mode=kernel).
UNSAID_L2 = COLD

CAN_BE_ZERO = ("aiv", "block", "causal", "changed", "dropout", "mask", "swizzle")  # block=0: not given
MOST = {"cores": 4096, "changed": 100}  # cores: far beyond any chip; each is simulated
LARGEST_NUMBER = 2**31 - 1


class Settings:
    """`key=value` entries of a row's tiling, such as "cores=48 block=16384 buffers=2"."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.given: dict[str, str] = {}
        for entry in row.tiling.split():
            key, equals, value = entry.partition("=")
            if not equals or not value or key in self.given:
                raise UsageError(f"{row.id}: tiling {entry!r} is not one key=value; give each key once")
            self.given[key] = value
        give(self.given.items())

    def text(self, key: str, default: str = "") -> str:
        """The text of a key."""
        read(key)
        return self.given.get(key, default)

    def word(self, key: str, default: str, *others: str) -> str:
        """The text of a key if it is one of these; for any other the default, and the row's note says so."""
        found = self.text(key, default)
        if found in (default, *others):
            return found
        known = " or ".join(filter(None, (default, *others)))
        remark(f"{key}={found} is not {known}: taken as {f'{key}={default}' if default else 'not given'}")
        return default

    def one_of(self, key: str, words: Collection[str], default: str = "") -> str:
        """The text of a key that must be one of these words; any other is refused."""
        found = self.text(key, default)
        if found != default and found not in words:
            raise UsageError(f"{self.row.id}: {key}={found} is not one of {', '.join(filter(None, words))}")
        return found

    def number(self, key: str, default: int | None = None) -> int:
        """The whole number of a key; without a default the row must have it. From 1, or 0 where that has a meaning."""
        found = self.text(key) or None
        if found is None and default is not None:
            return default
        if found is None or not found.isdecimal():
            raise UsageError(f"{self.row.id}: tiling needs {key}=<whole number>, got {found!r}")
        return self._within(key, int(found))

    def _within(self, key: str, number: int) -> int:
        """The number, if it is one that this key can have."""
        least, most = 0 if key in CAN_BE_ZERO else 1, MOST.get(key, LARGEST_NUMBER)
        if not least <= number <= most:
            raise UsageError(
                f"{self.row.id}: tiling {key}={self.given[key]}: numbers must be from {least} to {most}"
            )
        return number

    def numbers(self, key: str, count: int) -> tuple[int, ...]:
        """Numbers joined by x, such as 128x256x64."""
        parts = self.text(key).split("x")
        if len(parts) != count or not all(p.isdecimal() for p in parts):
            raise UsageError(
                f"{self.row.id}: tiling needs {key}= with {count} numbers joined by x, got {self.given.get(key)!r}"
            )
        return tuple(self._within(key, int(p)) for p in parts)

    def l2(self) -> str | dict[str, str] | L2State:
        """What is in L2 at the start. l2=cold (nothing; also where it is not said), past (nothing, and loads leave nothing
        there), warm (everything), first (the first input), loop (what the same launch left). changed=N: N % of L2 is full of
        what other kernels wrote."""
        known = {COLD: COLD, "past": COLD, WARM: WARM, "first": {"x_ptr": WARM, "*": COLD}, LOOP: LOOP}
        entry, changed = self.one_of("l2", known, UNSAID_L2), self.number("changed", 0)
        if changed and entry == LOOP:
            raise UsageError(
                f"{self.row.id}: changed={changed} is of other kernels, l2=loop has none; give one of them"
            )
        found: Any = known[entry]
        return L2State(changed=changed / 100, words=found) if changed else found

    def after_others(self) -> bool:
        """code=cold: other kernels ran before, or L2 was cleared, so each core fetches the code first; warm: the same kernel
        ran before, as in a loop. Where it is not said, by what is said of L2."""
        unsaid = WARM if self.text("l2", UNSAID_L2) == LOOP else COLD
        return self.one_of("code", (COLD, WARM), unsaid) == COLD

    def cores_alone(self) -> bool:
        """time=core: what was measured is the cores' own time, without the launch."""
        return self.word("time", "task", "core") == "core"

    def hf32(self) -> bool:
        """hf32=yes: FP32 is multiplied as HF32."""
        return bool(self.one_of("hf32", ("yes",)))

    def device_options(self, compiler: str = "ascendc") -> dict[str, Any]:
        """What `device` is told: product, copies of buffers, whether the operands are in L2 at the start.

        compiler: most of what was measured is written by hand.
        """
        options: dict[str, Any] = {
            "product": self.row.product,
            "values": False,
            "timeline": 0,
            "step_limit": 1 << 30,
            "compiler": compiler,
            "multibuffer": self.number("buffers", 2),
            "l2": self.l2(),
            "cold_code": self.after_others(),
            "unit_flag": self.word("unitflag", "off", "on") == "on",
            "banks_apart": self.word("banks", "", "apart") == "apart",
        }
        if self.text("l0"):
            options["l0_tile"] = self.numbers("l0", 3)
        return options


def dtypes_of(row: Row) -> tuple[list[str], list[str]]:
    """Element types of inputs and outputs of "fp32,bf16->fp32"; without an arrow the outputs are like the first input."""
    left, arrow, right = row.dtypes.partition("->")
    inputs = left.split(",")
    outputs = right.split(",") if arrow else inputs[:1]
    for name in (*inputs, *outputs):
        if name not in BYTES:
            raise UsageError(
                f"{row.id}: {name!r} is no element type of these tables; they have {', '.join(BYTES)}"
            )
    return inputs, outputs


def shape_of(row: Row) -> tuple[int, ...]:
    """The sizes of "4096x1024"."""
    parts = row.shapes.split("x")
    if not all(p.isdecimal() and int(p) for p in parts):
        raise UsageError(f"{row.id}: shapes must be whole numbers joined by x, got {row.shapes!r}")
    return tuple(int(p) for p in parts)


def sizes_of(row: Row, names: str) -> tuple[int, ...]:
    """The sizes of a row, as many as there are names, which are joined by " x "."""
    found = shape_of(row)
    if len(found) != names.count(" x ") + 1:
        raise UsageError(f"{row.id}: shapes must be {names}, got {row.shapes!r}")
    return found


def matrices_of(row: Row) -> tuple[int, int, int]:
    """Sizes of matrices: how many (one, if the row has two sizes), rows, columns."""
    found = shape_of(row)
    if len(found) not in (2, 3):
        raise UsageError(f"{row.id}: shapes must be a x b x c, or b x c for one a; got {row.shapes!r}")
    a, b, c = found if len(found) == 3 else (1, *found)
    return a, b, c


def float_of(row: Row) -> str:
    """The type of the first input, of a kernel for fp16, bf16 and fp32 alone."""
    kind = dtypes_of(row)[0][0]
    if kind not in NAMES:
        raise UsageError(f"{row.id}: {row.op} is for {', '.join(NAMES)}; got dtypes {row.dtypes!r}")
    return kind


def tensor(dtype: str, *sizes: int) -> Shape:
    """A tensor without data. Raises UsageError if the memory of the row's product cannot hold it."""
    found = shape(sizes, NAMES.get(dtype, dtype))
    check_fits(sizes, found.dtype.itemsize)
    return found


def measured_time(row: Row, run: Run) -> float:
    """The time that the row states: of the task, or of its cores alone (time=core)."""
    return run.time_us - (outside_us(row, run) if Settings(row).cores_alone() else 0.0)


def outside_us(row: Row, run: Run) -> float:
    """What the mean core's own time (time=core) leaves out of a run's: before and after the cores, and until it starts.

    The head of a kernel and the code that it fetches are theirs. Coupled cores are counted from the launch on: the profile
    of a 910A gives 1.3 to 1.9 us for one block, as tasks of A2 take.
    """
    product, launch = load_product(row.product), run.launches[0]
    if product.core_model != "split":
        return 0.0
    together = cores_each(product, {name.partition(".")[0] for name in launch.pipes})
    started = start_cycles(product) * together * (launch.cores_used - 1) / product.us_to_cycles(1.0)
    return product.number("launch.single_core_overhead_us") + started / 2


def vector_cores_us(row: Row, run: Run, each: int) -> float:
    """What `each` Vector cores beside a Cube core, which the launch starts as well, add to the time of a kernel without
    Vector work: they start between the Cube cores, and fetch code after another kernel."""
    product, launch = load_product(row.product), run.launches[0]
    if product.core_model != "split" or not each or "AIV.V" in launch.pipes:
        return 0.0
    s, cores = Settings(row), launch.cores_used
    later = start_cycles(product) * each * (cores - 1) / product.us_to_cycles(1.0)
    time = 0.0 if s.cores_alone() else later
    if s.after_others():
        time += cold_code_us(product, cores * (1 + each), True) - cold_code_us(product, cores, False)
    return time


def overhead_us(run: Run) -> float:
    """What of a run's time passes outside of the cores."""
    return run.launches[0].overhead_us


def roofline_us(
    row: Row,
    moved: tuple[float, float],
    multiplications: float = 0.0,
    operand: str = "fp16",
    passes: int = 1,
) -> float:
    """The trivial bound: bytes over the peak of memory or of L2, or multiplications over that of the Cube, and the launch.

    moved: bytes of what is read and of what is written; passes: how often all of that goes to the cores and back.
    """
    product, settings = load_product(row.product), Settings(row)
    memory = _through_memory(product, settings.text("l2", UNSAID_L2), moved) / _bytes_per_us(
        product, "memory"
    )
    l2 = passes * sum(moved) / _bytes_per_us(product, "l2")
    per_cycle = 256 * product.integer(f"cube.k_per_cycle.{operand}") * product.cube_cores
    cube = multiplications / per_cycle / product.us_to_cycles(1.0)
    launch = 0.0 if settings.cores_alone() else launch_overhead_us(product)
    return max(memory, l2, cube) + launch


def _bytes_per_us(product: Product, level: str) -> float:
    return product.number(f"{level}.bandwidth_tb_per_s") * 1e6


def _through_memory(product: Product, l2: str, moved: tuple[float, float]) -> float:
    """Bytes that memory has to give or take whatever L2 does (`Settings.l2` says what is there at the start).

    What is read comes from memory if L2 is empty; what is written may stay in L2; if the operands can be there, at least
    what is beyond L2's size passes through memory.
    """
    (read, written), room = moved, product.number("l2.size")
    return max(read if l2 in (COLD, "past") else 0.0, read + written - room)


def volume(sizes: tuple[int, ...]) -> int:
    """Elements of a shape."""
    return prod(sizes)


Choice = TypeVar("Choice")


def fastest(
    row: Row, choices: Iterable[Choice], work: Callable[[Choice], Run], compiler: str = "ascendc"
) -> tuple[Run, Choice, int]:
    """The fastest run, what was chosen for it, and of how many; those that do not fit in a buffer do not count. Inside of
    `choices.keeping()` the one that was the fastest the first time.

    Raises BufferOverflowError, of the last one, if none fits.
    """
    found: list[tuple[Run, Choice]] = []
    overflow: BufferOverflowError | None = None
    tried = list(choices)
    with device(**Settings(row).device_options(compiler)):
        for choice in kept(row.id, tried):
            try:
                found.append((work(choice), choice))
            except BufferOverflowError as e:
                overflow = e
    if not found:
        raise overflow or ValueError(f"{row.id}: nothing to try")
    run, choice = min(found, key=lambda x: x[0].time_us)
    keep(row.id, tried, choice)
    return run, choice, len(found)


def fitting(row: Row, most: int, step: int, work: Callable[[int], Run]) -> tuple[Run, int, int]:
    """The fastest of `halves`, of an eighth of it if none of them fits, and so on down to `step`."""
    while True:
        try:
            return fastest(row, halves(most, step), work)
        except BufferOverflowError:
            if most <= step:
                raise
            most //= 8


def halves(most: int, step: int = 1) -> list[int]:
    """A size, half of it and a quarter, in multiples of `step`."""
    return sorted({max(step, most // part // step * step) for part in (1, 2, 4)})


def note_of(count: int, what: str) -> str:
    """How the note of a row says it."""
    return f"{NO_TILING}: best of {count}, {what}"
