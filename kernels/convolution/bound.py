"""How fast a tiling of convolution backward can be at best: closed forms over whole columns of tilings.

As in `matmul/bound.py` a bound follows one chain of waits on the core with most work, or what all cores move through their
ports and L2. Tiles go to cores in turn, those of grad_input first, so that the work of every core is known:

    Mmad    the first loads, all products of a core, what the last sum takes to leave L0C
    MTE1    likewise, all loads into L0
    loads   bytes of all tiles, spread evenly over the ports; and through L2
    copies  a load waits for the reads of the one before into the same copy, `buffers` iterations ago

What is launched before and after the products does not depend on their tiles: it is timed, once. Where one launch does
all, what the Vector units do before and after counts as spread evenly over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...simulator.device import device
from ...simulator.errors import AscendtileError
from ...simulator.l2.state import WARM
from ...simulator.products import Product
from ...simulator.timing.engine.machine import port_rate, wire
from ..bounds.vector import overheads_us
from ..matmul.bound import store_cycles
from ..matmul.loads import row_cycles
from ..operator.plan import PlanContext, Step
from ..operator.tensors import Columns, Knobs, Options, Tensors
from ..running.launching import timed_once
from .call import ConvolutionCall, call_of
from .plan import Maker, made
from .tiles.costs import Image, Rates, Weights, dealt
from .tiles.image import image_tiles
from .tiles.weight import weight_tiles
from .tiles.whole import VECTOR_CORES, both_gradients, whole
from .tiles.window import image_windows
from .tiling import PARAMETERS, best_parts, choose_image, choose_weight
from .work import GradientWork, Products, image_work, weight_work

# What decides geometry and cuts.
SETTINGS = (
    *("merged_groups", "base_m", "base_n", "base_k"),
    *("strategy", "taps", "image_layout", "filter_layout", "bias"),
)
IMAGE = ("taps", "block_m", "block_p", "block_k", "buffers", "cores")
WEIGHT = ("weight_m", "weight_n", "weight_p", "weight_taps", "buffers", "cores")
# Of launches before and after the products.
AROUND = (
    *("merged_groups", "strategy", "taps", "buffers"),
    *("combine", "image_layout", "filter_layout", "bias"),
)
PRODUCTS = (image_tiles, image_windows, weight_tiles, both_gradients, whole)
FIRST_JOBS = ("FIRST", "WEIGHT", "ZERO", "GAPS")  # that the products of one launch for all wait for


@dataclass(frozen=True)
class Subject:
    """What is bounded: a call; what makes it with knobs, before anything is made; and with all launches that it takes."""

    call: ConvolutionCall
    begun: Callable[[Mapping[str, Any]], Maker]
    made: Callable[[Mapping[str, Any]], tuple[Maker, Sequence[Step]]]


def subject(tensors: Tensors, options: Options, product: Product) -> Subject:
    """The gradients."""
    call, context = call_of(tensors, options), PlanContext(product, False)

    def all_made(knobs: Knobs) -> tuple[Maker, Sequence[Step]]:
        maker = made(tensors, options, knobs, context)
        return maker, maker.steps

    return Subject(call, lambda knobs: Maker(tensors, call, knobs, context), all_made)


def bound_us(tensors: Tensors, product: Product, mode: str, points: Columns, options: Options) -> np.ndarray:
    """Least time in us of each point, all launches of it."""
    return bounds_of(lambda: subject(tensors, options, product), product, mode, points)


def bounds_of(of: Callable[[], Subject], product: Product, mode: str, points: Columns) -> np.ndarray:
    """The same of a subject, which is made on that device. What comes before a launch may leave in L2 all that it reads."""
    points_ = Points(points)
    out = np.zeros(points_.count)
    with device(product, values=False, timeline=0, cube_math_type=mode, l2=WARM):
        for rows, setting in points_.alike(SETTINGS):
            some = points_.take(rows)
            try:
                bounds = Bounds(of(), product, setting, some)
                out[rows] = bounds.products() + bounds.around()
            except AscendtileError:  # base tiles that the Cube does not take: refused when they are tried
                continue
    return out


class Points:
    """Knobs of points as columns, those that are left to the operator as their defaults."""

    def __init__(self, points: Columns) -> None:
        self.count = len(next(iter(points.values())))
        usual = {p.name: np.full(self.count, p.default, object) for p in PARAMETERS}
        self.of = {**usual, "bias": np.full(self.count, "auto", object), **points}

    def take(self, rows: np.ndarray) -> Points:
        return Points({n: x[rows] for n, x in self.of.items()})

    def alike(self, names: Sequence[str]) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
        """(points, their values) for every combination of these knobs that occurs."""
        different, place = self.distinct(names)
        for k, values in enumerate(different):
            yield np.flatnonzero(place == k), values

    def distinct(self, names: Sequence[str]) -> tuple[list[dict[str, Any]], np.ndarray]:
        """Combinations of values of these knobs, and which one each point has."""
        found: dict[tuple[Any, ...], int] = {}
        rows = zip(*(self.of[n].tolist() for n in names), strict=True)
        place = np.array([found.setdefault(row, len(found)) for row in rows])
        return [dict(zip(names, row, strict=True)) for row in found], place


class Bounds:
    """Bounds of points that have `setting` in common."""

    def __init__(
        self, subject: Subject, product: Product, setting: Mapping[str, Any], points: Points
    ) -> None:
        self.subject, self.call, self.product, self.points = subject, subject.call, product, points
        self.knobs = {p.name: p.default for p in PARAMETERS} | dict(setting)
        self.maker = subject.begun(self.knobs)
        self.vendor, most = setting["strategy"] == "vendor", product.cube_cores
        self.machine = wire(product, True, False).machine
        self.rate = port_rate(self.machine, "gm_to_l1")
        late = "path.gm_to_l1_nd2nz.latency_cycles"
        self.latency = product.number(late if product.has(late) else "path.gm_to_l1_nd2nz.fixed_cycles")
        self.store = float(store_cycles(product, 0.0))
        self.cores = np.array([min(c or most, most) for c in points.of["cores"].tolist()], np.int64)

    # -- work --------------------------------------------------------------------------------------------------------

    def _works(
        self, names: Sequence[str], make: Callable[[dict[str, Any]], GradientWork]
    ) -> dict[str, np.ndarray]:
        """Columns of `GradientWork`, each different tiling computed once."""
        different, place = self.points.distinct(names)
        found = [make({**self.knobs, **one}) for one in different]
        return {n: np.array([getattr(w, n) for w in found])[place] for n in GradientWork.__dataclass_fields__}

    def _tools(self, knobs: dict[str, Any]) -> tuple[Rates, Products]:
        m, most = self.maker, self.product.cube_cores
        knobs["cores"] = min(knobs["cores"] or most, most)
        operand, size = m.found.operand, m.compute.itemsize
        base = [knobs[f"base_{axis}"] for axis in "mnk"]
        rates = Rates(self.product, operand, size, knobs["cores"])
        return rates, Products(self.product, operand, size, base)

    def _image(self, knobs: dict[str, Any]) -> GradientWork:
        rates, products = self._tools(knobs)
        maker = self.maker
        image = Image.of(maker.seen, maker.merging, maker.bias is not None, not maker.weight_c0)
        guess, tile = choose_image(image, knobs, rates)
        if self.maker.patches:
            knobs["taps"] = "patch"
        return image_work(image, knobs, tile, guess, products, rates.itemsize)

    def _weight(self, knobs: dict[str, Any]) -> GradientWork:
        rates, products = self._tools(knobs)
        g, m = self.maker.g, self.maker.merging
        tile = choose_weight(g, m, knobs, rates)
        weights = Weights(g, m, knobs["weight_taps"])
        return weight_work(weights, knobs, tile, rates, products)

    @cached_property
    def image(self) -> dict[str, np.ndarray]:
        return self._works(IMAGE, self._image)

    @cached_property
    def weight(self) -> dict[str, np.ndarray]:
        return self._works(WEIGHT, self._weight)

    @cached_property
    def parts(self) -> np.ndarray:
        """Parts of the sums of grad_weight: as given, else by the operator's rule."""
        w = self.weight
        given = np.array([x or 0 for x in self.points.of["weight_parts"].tolist()], np.int64)
        items = np.where(self.points.of["launches"] != "apart", self.image["tiles"], 0)
        figures = w["tiles"], w["chunks"], w["step"], w["guess"], w["drain"]
        return np.where(given > 0, given, best_parts(self.cores, items, self.image["guess"], *figures))

    # -- time --------------------------------------------------------------------------------------------------------

    def products(self) -> np.ndarray:
        """The launches of products: one for both gradients, or one for each."""
        wants = self.call.wants
        if self.vendor:
            return np.full(self.points.count, float(overheads_us(self.product, 1)) * sum(wants[:2]))
        nothing = np.zeros(self.points.count)
        image = self.image["items"] if wants[0] else nothing.astype(np.int64)
        joint = (self.points.of["launches"] != "apart") & ~self.image["reload"] & wants[0] & wants[1]
        one = self._launch_us(image, wants[0], wants[1])
        first = self._launch_us(image, True, False) if wants[0] else nothing
        second = self._launch_us(0 * image, False, True) if wants[1] else nothing
        return np.where(joint, one, first + second)

    def _launch_us(self, items: np.ndarray, image: bool, weight: bool) -> np.ndarray:
        """One launch of tiles of grad_input, of grad_weight, or of both."""
        i, w, whole = self.image, self.weight, items
        part = -(-w["chunks"] // self.parts)
        last = np.maximum(0, w["chunks"] - (self.parts - 1) * part)
        tiles = w["items"] if weight else 0 * items
        cores = np.minimum(self.cores, np.maximum(1, whole + tiles * self.parts))
        most = dealt(cores, tiles * (self.parts - 1), items)
        chunks = most * part[:, None] + (dealt(cores, tiles * self.parts, items) - most) * last[:, None]
        counts, used = dealt(cores, items), [x for x, there in ((i, image), (w, weight)) if there]
        first, end = (np.minimum.reduce([x[n] for x in used]) for n in ("first", "last"))
        begin = self.latency + self.machine.cross_pipe_cycles + first
        busy = []
        for name in ("mmad", "mte1"):
            each = (counts * i[name][:, None] + chunks * w[name][:, None]).max(axis=1)
            busy.append(np.maximum(each, sum(x[f"all_{name}"] for x in used) / cores))
        # To L1, the flag that it is there, and the flag that it was read.
        flight = self.latency + 2 * self.machine.cross_pipe_cycles
        laps = (
            counts * (i["laps"] + i["iterations"] * flight)[:, None] + chunks * (w["laps"] + flight)[:, None]
        )
        copies = np.array([max(1, b) for b in self.points.of["buffers"].tolist()])
        longest = np.maximum(i["laps"] / np.maximum(1, i["iterations"]), w["laps"]) + flight
        moved = sum(x["moved"] for x in used)
        started = 0.0 if self.maker.c0 else sum(x["rows"] for x in used) * row_cycles(self.product)
        tail = self.machine.cross_pipe_cycles + self.store
        cycles = np.maximum.reduce(
            [
                begin + self.machine.cross_pipe_cycles + busy[0] + tail,
                begin - first + busy[1] + self.machine.cross_pipe_cycles + end + tail,
                np.maximum(moved / self.rate, started) / cores + begin + end + tail,
                laps.max(axis=1) / copies - longest,
                moved / self.product.l2_mixed_bytes_per_cycle,
            ]
        )
        return np.asarray(cycles / self.product.us_to_cycles(1.0) + overheads_us(self.product, cores))

    @cached_property
    def is_whole(self) -> np.ndarray:
        """Points whose layouts and products are one launch, as `Maker.is_whole` has it."""
        m, wants = self.maker, self.call.wants
        layouts = bool(m.c0) and (not wants[0] or bool(m.weight_c0))
        if self.vendor or not layouts or not any(wants[:2]) or self.product.core_model != "split":
            return np.zeros(self.points.count, bool)
        if m.bias is not None:
            return np.zeros(self.points.count, bool)
        windows = ~self.image["reload"] if wants[0] else np.ones(self.points.count, bool)
        return np.asarray((self.points.of["launches"] == "whole") & windows)

    def around(self) -> np.ndarray:
        """The launches before and after the products, as the engine times them."""
        out = np.zeros(self.points.count)
        self.points.of["whole"] = self.is_whole
        several = np.ones(self.points.count, np.int64) if self.vendor else self.parts
        two = self.points.of["combine"] == "two_phase"
        self.points.of["parts"] = np.where(two, several, np.minimum(several, 2))
        for rows, knobs in self.points.alike((*AROUND, "parts", "whole")):
            parts, one = int(knobs.pop("parts")), bool(knobs.pop("whole"))
            how = (
                {"launches": "whole", "taps": "window" if self.call.wants[0] else "auto"}
                if one
                else {"launches": "joint"}
            )
            given = {**self.knobs, **knobs, **how, "weight_parts": None if self.vendor else parts}
            try:
                maker, steps = self.subject.made(given)
                found = timed_once([s for s in steps if s.kernel not in PRODUCTS])
                out[rows] = sum(x.time_us for x in found) + (self._inside_us(maker, rows) if one else 0.0)
            except AscendtileError:  # does not fit, and is refused when it is tried
                continue
        return out

    def _inside_us(self, maker: Maker, rows: np.ndarray) -> np.ndarray:
        """Vector work of one launch for all that no product is beside."""
        jobs = {n: x for n, x in maker.first.numbers.items() if n in FIRST_JOBS}
        found = timed_once(
            [
                *([maker.first.step(jobs)] if jobs else []),
                *([maker.transposed_back] if maker.transposed_back else []),
            ]
        )
        cycles = sum(x.pipes["AIV.V"].busy_cycles * min(x.grid[0], self.product.vector_cores) for x in found)
        return np.asarray(cycles / (VECTOR_CORES * self.cores[rows]) / self.product.us_to_cycles(1.0))
