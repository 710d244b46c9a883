"""One launch and what is varied of it: the batch, sizes of tiles, the number of programs, their order, the product."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..call import Call, check
from ..device import using
from ..errors import AscendtileError, NeedsDataError, UsageError
from ..interpreter.interpreter import DataDependentError
from ..interpreter.program_order.order import directions
from ..interpreter.tensors import Tensor, memory_kept
from ..launch import place
from ..numerics import numerics
from ..observers import quietly
from ..products import load_product, product_names
from ..trials.knobs import NO_TILE, OTHER_WORK, grid_text, with_size
from ..trials.work import reach
from .comparing import SECONDS, TRIES, compare
from .launches import LaunchSequence, plain, programs_meet
from .variations import Configuration, Variations
from .verdict import SameBits

AXES = ("batch", "tiling", "cores", "order", "product")
USUAL_AXES = AXES[:4]
VALUES_OF = {"tilings": "tiling", "batch": "batch", "batch_name": "batch", "products": "product"}  # axes
SEEDS = 4
AS_LAUNCHED = "as launched"
STEPS = (2, 0.5)  # times a compile-time size
ANY_ORDER = (
    "order: holds for every order of the programs, none of which reads or updates what another one writes"
)
ANY_CORES = "cores: holds for any number of cores, which only changes when a program runs: the grid says what each does"
RACES = "order: programs meet in memory without atomics; `ascendtile check` tells races"
NO_BATCH = "batch: no scalar argument and no axis of the grid is the length of the first axis of an input and an output"
UNCLEAR_BATCH = (
    "{} is the length of the first axis and of a later one, and of an argument; name the batch (--batch-name, or "
    "batch_name: an argument, or grid), or launch with another one"
)


@dataclass
class Asked:
    """What is to be varied, and with which values; those that are not given are chosen.

    vary: of AXES. tilings: values of compile-time sizes, or of an operator's knobs, by name. batch: values of the batch.
    batch_name: the scalar argument that is it, or "grid". products: by name. seeds: how many drawn orders of programs.
    given: tensors whose values count as given; all elements of others are unknown.
    """

    vary: Sequence[str] = USUAL_AXES
    tilings: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    batch: Sequence[int] = ()
    batch_name: str = ""
    products: Sequence[str] = ()
    seeds: int = SEEDS
    given: Sequence[str] = ()

    def __post_init__(self) -> None:
        for axis in self.vary:
            if axis not in AXES:
                raise UsageError(f"same bits: cannot vary {axis!r}; what can be varied is {', '.join(AXES)}")
        if any(n < 1 for n in self.batch):
            raise UsageError(f"same bits: a batch is at least 1, got {', '.join(map(str, self.batch))}")
        if self.seeds < 1:
            raise UsageError(
                f"same bits: seeds is {self.seeds}; at least one order of programs has to be drawn"
            )
        for name, axis in VALUES_OF.items():
            if len(getattr(self, name)) and axis not in self.vary:
                raise UsageError(
                    f"same bits: {name} is given, but {axis} is not varied; vary {', '.join((*self.vary, axis))}"
                )

    def drawn_orders(self, found: LaunchSequence, laws: list[str], notes: list[str]) -> range:
        """Seeds of the orders to try; none where a law holds for all of them or atomics give no order, which is told."""
        if not programs_meet(found):
            laws.append(ANY_ORDER)
        elif not found.has_atomics:
            notes.append(RACES)
        else:
            return range(self.seeds)
        return range(0)


def compare_launch(
    call: Call,
    asked: Asked | None = None,
    *,
    tries: int = TRIES,
    signed_zeros: bool = False,
    finite: bool = True,
    seconds: float = SECONDS,
) -> SameBits:
    """Whether what a launch writes has the same bits however it is varied. Its tensors hold afterwards what they held.

    asked: what is varied. Other arguments: see `comparing.compare`. The call can be made again (`Call.again`). Raises
    `UsageError` where nothing can be varied.
    """
    with memory_kept(call.tensors), quietly(), using(replace(call.device, explain=True)):
        launch = _Varied(call, asked or Asked())
        return compare(launch.subject(), tries, signed_zeros, finite, seconds)


class _Varied:
    """The configurations of one launch."""

    def __init__(self, call: Call, asked: Asked) -> None:
        self.call = call
        self.asked = asked
        self.ways = directions(call.program)
        self.before = {n: plain(t.source).copy() for n, t in call.tensors.items() if n in self.ways}
        self.laws: list[str] = []
        self.notes: list[str] = []
        self._check_names()

    def _check_names(self) -> None:
        sizes = [n for n, x in self.call.constants.items() if _is_whole(x)]
        for n in self.asked.tilings:
            if n not in sizes:
                raise UsageError(
                    f"{self.call.kernel.name} has no compile-time size {n!r}; it has {', '.join(sizes) or 'none'}"
                )
        for n in self.asked.given:
            if n not in self.before:
                known = ", ".join(self.before) or "none"
                raise UsageError(f"{self.call.kernel.name} has no tensor {n!r}; it has {known}")

    # -- tensors -----------------------------------------------------------------------------------------------------

    def _is_input(self, name: str) -> bool:
        """What is read, and memory that is changed, but for such as holds one constant at first."""
        return "out" not in self.ways[name] or not _is_uniform(self.before[name])

    def subject(self) -> Variations:
        """What is compared."""
        made = [Configuration(AS_LAUNCHED, self._launches(self.call))]
        for axis in self.asked.vary:
            chosen: Callable[[], Iterator[Configuration]] = getattr(self, f"_{axis}")
            made += list(chosen())
        inputs = {n: x for n, x in self.before.items() if self._is_input(n)}
        read = [n for n, way in self.ways.items() if way == "in out" and n not in inputs]
        self.notes += [f"{n} begins as launched, the same number in all its elements" for n in read]
        given = frozenset(self.asked.given)
        return Variations(
            self.call.kernel.name,
            inputs,
            made,
            given,
            laws=self.laws,
            notes=self.notes,
            advice=self._advice,
        )

    def _launches(self, call: Call) -> Callable[[Mapping[str, np.ndarray]], LaunchSequence]:
        """In the user's own memory, so that strides and overlaps are what they are."""

        def launches(inputs: Mapping[str, np.ndarray]) -> LaunchSequence:
            for name, held in self.before.items():
                target = plain(self.call.tensors[name].source)
                if target.flags.writeable:
                    target[...] = inputs.get(name, held)
            known = {n: call.tensors[n].source for n in inputs}
            written = {n: call.tensors[n].source for n, way in self.ways.items() if "out" in way}
            return LaunchSequence([call], known, written)

        return launches

    def _again(self, changed: dict[str, Any], grid: tuple[int, int, int] | None = None) -> Call:
        assert self.call.again is not None
        return self.call.again(changed, grid)

    # -- the batch ---------------------------------------------------------------------------------------------------

    def _batch(self) -> Iterator[Configuration]:
        found = self._batch_now()
        if found is None:
            self.notes.append(NO_BATCH)
            return
        name, now = found
        if self._is_unclear(now):
            unclear = UNCLEAR_BATCH.format(now)
            if self.asked.batch:
                raise UsageError(f"{self.call.kernel.name}: {unclear}")
            self.notes.append(f"batch: not compared: {unclear}")
            return
        values = self.asked.batch or dict.fromkeys((1, now // 2 or 1))
        for n in values:
            if n > now:
                raise UsageError(
                    f"{self.call.kernel.name}: the launch has a batch of {now}, {n} is asked for; launch it with the largest"
                )
            if n != now:
                yield Configuration(f"{name}={n}", self._launches(self._with_batch(now, n)))

    def _batch_now(self) -> tuple[str, int] | None:
        """The name and the value of what is the batch."""
        name, lengths = self.asked.batch_name, self._lengths()
        scalars = {n: x for n, x in self.call.arguments.items() if _is_whole(x)}
        if name == "grid" or (not name and self.call.grid[0] in lengths):
            if self.call.grid[0] not in lengths:
                raise UsageError(
                    f"{self.call.kernel.name}: the grid has {self.call.grid[0]} programs, and no input and output are as "
                    "long; name an integer argument that is the batch"
                )
            return "batch", self.call.grid[0]
        if name and name not in scalars:
            raise UsageError(
                f"{self.call.kernel.name} has no integer argument {name!r}; it has {', '.join(scalars) or 'none'}, and grid"
            )
        fitting = [(n, x) for n, x in scalars.items() if (n == name if name else x in lengths)]
        return fitting[0] if fitting else None

    def _lengths(self) -> set[int]:
        """Of the first axis, that an input and an output have."""
        first = {n: t.shape[0] for n, t in self.call.tensors.items() if n in self.ways and len(t.shape)}
        ins, outs = ({x for n, x in first.items() if way in self.ways[n]} for way in ("in", "out"))
        return {x for x in ins & outs if x > 1}

    def _is_row_length(self, n: int) -> bool:
        """Whether it is the length of a later axis, too, as of a square matrix: then a number n may be either."""
        return any(n in t.shape[1:] for name, t in self.call.tensors.items() if name in self.ways)

    def _is_unclear(self, now: int) -> bool:
        """Whether some argument may be the batch, or the length of a row, and nobody said which."""
        equal = [x for x in self.call.arguments.values() if _is_whole(x) and x == now]
        return bool(equal and not self.asked.batch_name and self._is_row_length(now))

    def _with_batch(self, now: int, n: int) -> Call:
        """The first n of what is now so long: of tensors, of scalar arguments, of the grid.

        Where rows are as long, too: of the scalar argument that was named alone, and of tensors that are written.
        """
        square, named = self._is_row_length(now), self.asked.batch_name
        changed: dict[str, Any] = {}
        for name, x in self.call.arguments.items():
            if isinstance(x, Tensor):
                if len(x.shape) and x.shape[0] == now and not (square and self.ways.get(name) == "in"):
                    changed[name] = x.source[:n]
            elif _is_whole(x) and x == now and (not square or name == named):
                changed[name] = n
        if self.call.grid_asks:
            return self._again(changed)
        sizes = [x for x in self.call.constants.values() if _is_whole(x) and x > 0]
        grid = tuple(_grid_axis(g, now, n, sizes) for g in self.call.grid)
        return self._again(changed, grid)  # type: ignore[arg-type]

    # -- sizes of tiles, programs --------------------------------------------------------------------------------------

    def _tiling(self) -> Iterator[Configuration]:
        for name, now in self.call.constants.items():
            asked = self.asked.tilings.get(name)
            if not _is_whole(now) or (asked is None and (self.asked.tilings or now < 1)):
                continue
            for n in asked or [int(now * k) for k in STEPS if now * k >= 1]:
                if n != now:
                    yield from self._with_size(name, n, asked is not None)

    def _with_size(self, name: str, n: int, asked: bool) -> Iterator[Configuration]:
        try:
            changed = with_size(self.call, name, n) if self.call.constants[name] > 0 else NO_TILE
            if isinstance(changed, str) and asked:
                changed = self._as_asked(self._again({name: n}), changed)
        except AscendtileError as e:
            changed = str(e)
        if isinstance(changed, str):
            if asked:
                raise UsageError(f"{self.call.kernel.name}: {name}={n} cannot be compared: {changed}")
            self.notes.append(f"tiling: {name}={n} is not compared: {changed.splitlines()[0]}")
            return
        grid = "" if changed.grid == self.call.grid else f", grid {grid_text(changed.grid)}"
        yield Configuration(f"{name}={n}{grid}", self._launches(changed))

    def _as_asked(self, other: Call, why: str) -> Call | str:
        """A size that a user names need not be the length of a tile; where the work goes by data it is run as it is."""
        if _works_alike(self.call, other):
            return other
        if why != NO_TILE:
            return why
        return other if self.call.grid == other.grid and _goes_by_data(self.call) else OTHER_WORK

    def _cores(self) -> Iterator[Configuration]:
        """Programs share the work where they go on by their number; else a grid is what it is on any number of cores."""
        now = self.call.grid
        if not self.call.program.of_kind("num_programs") or now[1:] != (1, 1):
            self.laws.append(ANY_CORES)
            return
        for n in dict.fromkeys((1, max(1, now[0] // 2), now[0] + 1)):
            changed = self._again({}, (n, 1, 1))
            if n != now[0] and _works_alike(self.call, changed):
                yield Configuration(f"grid {n}", self._launches(changed))

    def _order(self) -> Iterator[Configuration]:
        call = self.call
        found = self._launches(call)({n: x for n, x in self.before.items() if self._is_input(n)})
        for seed in self.asked.drawn_orders(found, self.laws, self.notes):
            changed = replace(call, device=replace(call.device, atomic_seed=seed))
            yield Configuration(f"order of seed {seed}", self._launches(changed))

    # -- products ------------------------------------------------------------------------------------------------------

    def _product(self) -> Iterator[Configuration]:
        """One of each kind of numerics; the others are named with it."""
        kinds: dict[Any, list[Call]] = {numerics(self.call.device): [self.call]}
        for name in self.asked.products or product_names():
            changed = self._on(name)
            if changed is not None:
                kinds.setdefault(numerics(changed.device), []).append(changed)
        own, *others = kinds.values()
        names = [c.device.product.name for c in own]
        self.notes.append(f"product: {', '.join(dict.fromkeys(names))} compute alike")
        for calls in others:
            name, *rest = dict.fromkeys(c.device.product.name for c in calls)
            more = f" (and {len(rest)} alike)" if rest else ""
            yield Configuration(f"{name}{more}", self._launches(calls[0]))

    def _on(self, name: str) -> Call | None:
        """The launch on another product; None where that refuses it, which is said."""
        product = load_product(name)
        changed = replace(self.call, device=replace(self.call.device, product=product))
        stored = product.texts("dtypes.storage")
        try:
            lacks = [
                t.dtype.name for t in self.call.tensors.values() if t.dtype.name not in (*stored, "int1")
            ]
            if lacks:
                raise UsageError(f"it does not store {lacks[0]}")
            check(changed)
            place(changed)
        except AscendtileError as e:
            if self.asked.products:
                raise UsageError(f"{self.call.kernel.name} does not run on {name}: {e}") from None
            self.notes.append(f"product: not on {name}: {str(e).splitlines()[0]}")
            return None
        return changed

    # -- advice --------------------------------------------------------------------------------------------------------

    def _advice(self, differing: Sequence[tuple[str, str]]) -> list[str]:
        names = [n for pair in differing if AS_LAUNCHED in pair for n in pair]
        out = []
        atomics = [op for op in self.call.program.of_kind("atomic") if op.name == "add"]
        if any(n.startswith("order of seed") for n in names) and atomics:
            loc = atomics[0].loc
            out.append(
                f"{loc.file}:{loc.line} adds to memory in the order in which programs come: let each store its part, and "
                "one program add the parts up in a fixed order"
            )
        sizes = dict.fromkeys(
            n.split("=")[0] for n in names if "=" in n and n.split("=")[0] in self.call.constants
        )
        if sizes:
            out.append(f"fix {', '.join(sizes)} for all launches: it cuts a sum, or the order of one")
        if any(n.startswith("grid ") for n in names):
            out.append("fix the number of programs: it decides which of them adds what")
        return out


def _is_uniform(x: np.ndarray) -> bool:
    """Whether all elements have the same bits."""
    words = np.ascontiguousarray(x).view(np.uint8).reshape(x.size, -1) if x.size else x
    return not x.size or bool((words == words[:1]).all())


def _grid_axis(now: int, batch: int, n: int, sizes: Sequence[int]) -> int:
    """An axis of a fixed grid for another batch: as many programs, or blocks of one of the compile-time sizes."""
    if now == batch:
        return n
    blocks = [x for x in sizes if x > 1 and -(-batch // x) == now]
    return -(-n // blocks[0]) if blocks else now


def _is_whole(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool)


def _goes_by_data(call: Call) -> bool:
    """Whether what it reads and stores depends on data."""
    try:
        reach(call)
    except (DataDependentError, NeedsDataError):
        return True
    except AscendtileError:
        pass
    return False


def _works_alike(call: Call, other: Call) -> bool:
    """Whether both read and store the same elements; False where that is not known."""
    try:
        return reach(call).same(reach(other))  # how often is another matter: each program may load a table
    except (DataDependentError, NeedsDataError, AscendtileError):
        return False
