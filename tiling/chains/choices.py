"""The space of assignments of a chain: what is chosen, which points are legal, and the time of every point.

An axis is a tensor, a step or a group of the chain; its values are formats, or cubeMathTypes. The time of a point is the sum
of the times of its steps, each of which depends on few axes: it is known for all points from a short table of each step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...kernels.chains.assignment import USUAL_FORMAT, Assignment, assigned
from ...kernels.chains.bench import ChainBench
from ...kernels.chains.chain import Chain, ChainStep
from ...kernels.chains.lowering import LoweredStep, input_shapes
from ...kernels.chains.storage import BlockStorage
from ...kernels.operator.notes import mode_name
from ...simulator.device import CUBE_MATH_TYPES, MATH_MODES
from ...simulator.errors import AscendtileError, UsageError
from ...simulator.precision.splits import SPLITS
from ...simulator.products import Product
from ..space.space import Columns, Point, Rule, Space

MOST_ASSIGNMENTS = 200_000
REFUSED = "an operator or the product refuses it"
REPEATED = "a cubeMathType that computes what one before it does"
FORMATS = ("fp16", USUAL_FORMAT)
SPLIT = "splits"  # among the modes of an axis: every split of FP32 operands


@dataclass(frozen=True)
class StepChoice:
    """What a step takes with some values of its axes; time_us is infinite where it is `refused`. same: of its
    cubeMathType, the earlier ones that compute the same."""

    time_us: float
    refused: str = ""
    same: frozenset[str] = frozenset()


@dataclass
class ChainChoices:
    """The axes of a search: those given, or the usual ones. fixed: what is chosen for all points, by name.

    Raises `UsageError` for names that the chain does not have, and for a space of more than MOST_ASSIGNMENTS points.
    """

    bench: ChainBench
    given: Mapping[str, Sequence[Any]]
    fixed_formats: Mapping[str, Any]
    fixed_modes: Mapping[str, Any]
    tables: dict[str, dict[tuple[Any, ...], StepChoice]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fixed = {**self.fixed_formats, **self.fixed_modes}
        for n in fixed:
            if n in self.given:
                raise UsageError(
                    f"the chain {self.chain.name}: {n!r} is fixed to {fixed[n]} and searched, too; leave one of them out"
                )
        axes = dict(self.given) or _usual_axes(self.chain, fixed, self.bench.product)
        self.of_steps = {n for n in axes if set(self.chain.members(n)) <= {s.name for s in self.chain.steps}}
        self.axes = {n: self._read(n, values) for n, values in axes.items()}
        rules = [Rule(REFUSED, self._accepted, True), Rule(REPEATED, self._first_of_its_kind, True)]
        self.space = Space(self.axes, rules)
        if self.space.size > MOST_ASSIGNMENTS:
            widest = max(self.axes, key=lambda n: len(self.axes[n]))
            raise UsageError(
                f"the chain {self.chain.name}: {self.space.size:,} assignments, at most {MOST_ASSIGNMENTS:,} are searched; "
                f"give fewer axes or values ({widest!r} has {len(self.axes[widest])}), or a group in place of its members"
            )
        self.axes_of = {s.name: self._touching(s) for s in self.chain.order}

    @property
    def chain(self) -> Chain:
        return self.bench.chain

    @property
    def usual(self) -> Point:
        """The point of the widest formats, with the first mode of each step."""
        widest = {
            n: max(values, key=self._width) for n, values in self.axes.items() if n not in self.of_steps
        }
        return {n: widest.get(n, values[0]) for n, values in self.axes.items()}

    def assignment(self, point: Mapping[str, Any]) -> Assignment:
        """What a point chooses, with what is fixed."""
        formats = {n: x for n, x in point.items() if n not in self.of_steps}
        modes = {n: x for n, x in point.items() if n in self.of_steps}
        return assigned(self.chain, {**self.fixed_formats, **formats}, {**self.fixed_modes, **modes})

    def time_us(self, point: Mapping[str, Any]) -> float:
        """Time of a point."""
        return float(self.times({n: _column([x]) for n, x in point.items()})[0])

    def bounds(self, space: Space, numbers: np.ndarray) -> np.ndarray:
        """Times of points by their numbers: a bound that is reached."""
        return self.times(space.columns(numbers))

    def times(self, columns: Columns) -> np.ndarray:
        """Times of points in us."""
        return np.asarray(
            np.sum([self._over(s, columns, lambda c: c.time_us) for s in self.chain.order], axis=0)
        )

    def legal(self) -> np.ndarray:
        """Numbers of the legal points. Raises `UsageError` with the first reason of an operator if there is none."""
        try:
            return self.space.legal()[0]
        except UsageError as e:
            refused = (c.refused for table in self.tables.values() for c in table.values() if c.refused)
            why = next(refused, str(e))
            raise UsageError(f"no assignment of the chain {self.chain.name} runs: {why}") from None

    def _width(self, name: str) -> tuple[float, float]:
        fmt = self.bench.storage(name)
        element = fmt.blocks.element if isinstance(fmt, BlockStorage) else fmt.fmt
        return float(element.bits), float(element.mantissa)

    def _read(self, name: str, values: Sequence[Any]) -> tuple[str, ...]:
        """Values as they are named; each is checked."""
        if name in self.of_steps:
            steps = {s.name: s.operator for s in self.chain.steps}
            given = [x for value in values for x in (SPLITS if value == SPLIT else (value,))]
            modes = [mode_name(steps[m], x) for m in self.chain.members(name)[:1] for x in given]
            odd = [m for m in self.chain.members(name) if m not in self.chain.products]
            if odd:
                raise UsageError(
                    f"the chain {self.chain.name}: step {odd[0]!r} multiplies nothing; it has no mode"
                )
            return tuple(sorted(dict.fromkeys(modes), key=MATH_MODES.index))
        return tuple({self.bench.storage(str(x)).name: str(x) for x in values}.values())  # one of each

    def _touching(self, step: ChainStep) -> tuple[str, ...]:
        names = {*step.tensors, step.name}
        return tuple(n for n in self.axes if not names.isdisjoint(self.chain.members(n)))

    def _over(self, step: ChainStep, columns: Columns, figure: Callable[[StepChoice], Any]) -> np.ndarray:
        """A figure of a step at every point: of equal values of its axes it is looked up once."""
        axes, size = self.axes_of[step.name], len(next(iter(columns.values())))
        codes = np.zeros(size, np.int64)
        for n in axes:
            number = {x: k for k, x in enumerate(self.axes[n])}
            codes = codes * len(number) + np.fromiter((number[x] for x in columns[n]), np.int64, size)
        _, first, which = np.unique(codes, return_index=True, return_inverse=True)
        found = [figure(self._choice(step, {n: columns[n][k] for n in axes})) for k in first]
        column: np.ndarray = _column(found)[which.reshape(-1)]
        return column

    def _choice(self, step: ChainStep, values: Mapping[str, str]) -> StepChoice:
        table = self.tables.setdefault(step.name, {})
        key = tuple(values.items())
        if key not in table:
            try:
                table[key] = self._timed(step, values)
            except AscendtileError as e:
                table[key] = StepChoice(np.inf, str(e).splitlines()[0])
        return table[key]

    def _timed(self, step: ChainStep, values: Mapping[str, str]) -> StepChoice:
        usual = {n: x for n, x in self.usual.items() if n not in values}
        assignment = self.assignment({**usual, **values})
        low = self.bench.lowered(step, assignment)
        casts = sum(self.bench.cast_time(c, step).time_us for c in low.casts)
        total = self.bench.step_time(low).time_us + casts
        return StepChoice(total, "", frozenset(self._same(step, assignment, low)))

    def _same(self, step: ChainStep, assignment: Assignment, low: LoweredStep) -> list[str]:
        """cubeMathTypes before its own with which the step computes the same."""
        if step.name not in assignment.modes:
            return []
        here, out = self._computation(low), []
        for mode in MATH_MODES[: MATH_MODES.index(low.mode)]:
            try:
                other = self.bench.lowered(
                    step, replace(assignment, modes={**assignment.modes, step.name: mode})
                )
                if self._computation(other) == here:
                    out.append(mode)
            except UsageError:
                continue  # refused: it computes nothing
        return out

    def _computation(self, low: LoweredStep) -> Any:
        tensors = input_shapes(low.step, self.bench.shapes, self.bench.sizes, low.dtype)
        found = low.step.operator.resolution(tensors, self.bench.product, low.mode, low.step.tiling)
        plain = None if found is None else replace(found, warning=None, reason="", grade="")
        return low.dtype, low.casts, tuple(low.written.items()), plain

    def _accepted(self, **columns: Any) -> np.ndarray:
        return np.asarray(np.isfinite(self.times(columns)))

    def _first_of_its_kind(self, **columns: Any) -> np.ndarray:
        """Whether no mode that an axis has before a point's does the same in every step of the axis."""
        out = np.ones(len(next(iter(columns.values()))), bool)
        steps = {s.name: s for s in self.chain.order}
        for n in self.of_steps:
            same = [self._over(steps[m], columns, lambda c: c.same) for m in self.chain.members(n)]
            known = frozenset(self.axes[n])
            out &= ~np.fromiter(
                (bool(known.intersection(*x)) for x in zip(*same, strict=True)), bool, len(out)
            )
        return out


def _usual_axes(chain: Chain, fixed: Mapping[str, Any], product: Product) -> dict[str, tuple[str, ...]]:
    """Groups of the chain, and tensors and steps that are in none; what is fixed is left out.

    Splits of FP32 operands are among the modes where the Cube does not take FP32.
    """
    modes = CUBE_MATH_TYPES if USUAL_FORMAT in product.texts("dtypes.cube_inputs") else MATH_MODES
    done = {member for n in fixed for member in chain.members(n)}
    axes: dict[str, tuple[str, ...]] = {}
    for n in (*chain.groups, *chain.tensors, *chain.products):
        members = chain.members(n)
        if done.isdisjoint(members):
            axes[n] = modes if set(members) <= set(chain.products) else FORMATS
            done.update(members)
    return axes


def _column(values: Sequence[Any]) -> np.ndarray:
    """Values as a column, of objects where they are no numbers."""
    out = np.empty(len(values), float if all(isinstance(x, float) for x in values) else object)
    out[:] = values
    return out
