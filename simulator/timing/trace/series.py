"""Records of all turns of a loop, kept as the records of its body and the order in which turns bring them.

A walk of the body has a lane for each turn and program. A lane's numbers (amounts, addresses) come in rows of one turn each.
Record k of the loop is template `order[k]` with the numbers of row `row[k]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...interpreter.regions import AccessRegion
from ...interpreter.tensors import Tensor
from ..costs.l2_cache import FirstTouch, Ticket
from ..engine.ragged import Ragged
from ._unroll import expand
from .packing import Piece
from .ragged_loops import Cut, Stretches
from .recorder import Recorder
from .rotation import Rotation, Slots
from .scalar_evolution import NotAlikeError

LONGEST = 64  # turns until slots alternate as before
NO_WAY = (-1, -1)


class Source(NamedTuple):
    """Where a load reads or a store writes: what memory gives or takes goes through channels[0], the rest through [1].

    lines: numbers of the source line with the grades of both channels.
    """

    channels: tuple[int, int]
    tensor: Tensor
    region: AccessRegion
    write: bool
    lines: tuple[int, int]


class Template(NamedTuple):
    """A record of the body. amount: one number, or one for each lane. partial: lanes that have it, None for all.

    least: in place of an occupancy that lanes differ in, those of each lane. slow: of a load that memory gives, as one
    number or for each lane; None where that makes no difference.
    """

    pipe: int
    line: int
    occupancy: float
    latency: float
    channel: int
    amount: Any
    instructions: int
    reads: Slots
    writes: Slots
    clobbers: Slots
    source: Source | None = None
    partial: np.ndarray | None = None
    least: np.ndarray | None = None
    slow: Any = None


class Series:
    """Takes the records of a walk over the turns of a loop. columns: programs that walk it, None for all."""

    def __init__(self, columns: np.ndarray | None, drains: dict[int, int]) -> None:
        self.columns = columns
        self.drains = drains
        self.templates: list[Template] = []
        self.order: list[list[int] | np.ndarray] = [[]]
        self.row: list[list[int] | np.ndarray] = [[]]
        self.first_turn: tuple[int, Template] | None = None  # what one template is in the first turn

    def add(
        self,
        pipe: int,
        line: int,
        *,
        occupancy: float,
        latency: float = 0.0,
        channel: int = -1,
        amount: Any = 0,
        instructions: int = 1,
        reads: Slots = (),
        writes: Slots = (),
        clobbers: Slots = (),
        active: np.ndarray | None = None,
        source: Source | None = None,
        partial: np.ndarray | None = None,
        least: np.ndarray | None = None,
        slow: Any = None,
    ) -> None:
        """As `Recorder.add`; amounts are one number or one for each lane."""
        if active is not self.columns:
            raise NotAlikeError
        self.order[-1].append(len(self.templates))  # type: ignore[union-attr]
        self.row[-1].append(0)  # type: ignore[union-attr]
        self.templates.append(
            Template(
                pipe,
                line,
                occupancy,
                latency,
                channel,
                amount,
                instructions,
                (*reads, self.drains[pipe]) if pipe in self.drains else reads,
                writes,
                clobbers,
                source,
                partial,
                least,
                slow,
            )
        )

    def add_fixed(
        self,
        pipe: int,
        line: int,
        occupancy: float,
        latency: float,
        instructions: int,
        reads: Slots,
        writes: Slots,
        clobbers: Slots,
        active: np.ndarray | None,
    ) -> None:
        """As `Recorder.add_fixed`."""
        if active is not self.columns:
            raise NotAlikeError
        self.order[-1].append(len(self.templates))  # type: ignore[union-attr]
        self.row[-1].append(0)  # type: ignore[union-attr]
        if pipe in self.drains:
            reads = (*reads, self.drains[pipe])
        fixed = (pipe, line, occupancy, latency, -1, 0, instructions, reads, writes, clobbers)
        self.templates.append(Template(*fixed))

    def unrolled(
        self, stretches: Stretches, rotation: Rotation, gains: Mapping[Any, int], last: bool
    ) -> list[Unrolled]:
        """The records of each stretch of turns, when the walk's lanes are those of them all; see `Rotation.after`.

        Raises `NotAlikeError` if slots alternate with too long a period.
        """
        count, times = len(self.templates), stretches.turns
        if not count:
            return [Unrolled([], np.empty(0, np.int64), np.empty(0, np.int64)) for _ in stretches.parts]
        used = {s for t in self.templates for s in (*t.reads, *t.writes, *t.clobbers) if s < 0}
        period = min(times, rotation.period(used, gains)) if used else 1
        if period > LONGEST:
            raise NotAlikeError
        order = _joined(self.order) + np.arange(times)[:, None] % period * count
        templates = self.templates
        if used:
            templates = [_later(t, rotation, gains, k, last) for k in range(period) for t in self.templates]
        if self.first_turn is not None:
            number, template = self.first_turn
            order[0][order[0] == number] = len(templates)
            templates = [*templates, _later(template, rotation, gains, 0, last)]
        return self._cut(stretches, templates, order)

    def _cut(self, stretches: Stretches, templates: list[Template], order: np.ndarray) -> list[Unrolled]:
        """order: [turns, records of a turn]."""
        rows, out, done, lanes = _joined(self.row), [], 0, 0
        for part in stretches.parts:
            end = lanes + part.turns * len(part.programs)
            cut = Cut(len(stretches.index), lanes, end)
            mine = order[done : done + part.turns].reshape(-1)
            row = (
                rows * part.turns + np.arange(part.turns)[:, None]
            )  # it was as wide as all turns: now it is one turn
            alone = len(stretches.parts) == 1
            out.append(Unrolled(templates if alone else _of_lanes(templates, cut), mine, row.reshape(-1)))
            done, lanes = done + part.turns, end
        return out

    @property
    def records(self) -> int:
        """How many records a turn has so far."""
        return sum(len(x) for x in self.order)

    def settle(self) -> None:
        """Nothing is packed before it is known what all turns bring."""

    def take(self, inner: Unrolled) -> None:
        """Append the records of a loop inside this one."""
        self.order += [inner.order + len(self.templates), []]
        self.row += [inner.row, []]
        self.templates += inner.templates


def _joined(parts: list[list[int] | np.ndarray]) -> np.ndarray:
    return np.concatenate([np.asarray(p, np.int64) for p in parts])


def _of_lanes(templates: list[Template], cut: Cut) -> list[Template]:
    """With the numbers of some lanes only."""
    sources: dict[int, Source] = {}
    out = []
    for t in templates:
        if t.source is not None and id(t.source) not in sources:
            sources[id(t.source)] = t.source._replace(region=cut.region(t.source.region))
        found = {name: cut.numbers(getattr(t, name)) for name in ("amount", "partial", "least", "slow")}
        out.append(t._replace(source=None if t.source is None else sources[id(t.source)], **found))
    return out


def _alternates(t: Template) -> bool:
    """Whether some of its slots are others in other turns."""
    return any([s < 0 for slots in (t.reads, t.writes, t.clobbers) for s in slots])


def _later(t: Template, rotation: Rotation, gains: Mapping[Any, int], turns: int, last: bool) -> Template:
    """A record so many turns later: in other slots."""
    if not _alternates(t):
        return t
    reads, writes, clobbers = (rotation.after(s, gains, turns, last) for s in (t.reads, t.writes, t.clobbers))
    return t._replace(reads=reads, writes=writes, clobbers=clobbers)


class Unrolled(NamedTuple):
    """Records of a loop, turn by turn."""

    templates: list[Template]
    order: np.ndarray
    row: np.ndarray


def take(recorder: Recorder, columns: np.ndarray | None, loop: Unrolled, touch: FirstTouch) -> None:
    """Append the records of a loop to those of its programs. columns: programs that walk it, None for all."""
    if len(loop.order):
        fields = Fields(recorder, columns, loop)
        fields.meet(touch)
        recorder.append(fields if touch.cores else fields.piece())
        recorder.settle()


def take_one(recorder: Recorder, columns: np.ndarray | None, touch: FirstTouch, template: Template) -> None:
    """Append a single record whose source is only known when all accesses are."""
    once = np.zeros(1, np.int64)
    take(recorder, columns, Unrolled([template], once, once), touch)


class Fields:
    """Makes the records of a loop from its templates and the numbers of their lanes, as soon as all is known."""

    def __init__(self, recorder: Recorder, columns: np.ndarray | None, loop: Unrolled) -> None:
        self.recorder = recorder
        self.templates, self.order, self.row = loop
        self.active = columns
        self.lanes = recorder.programs if columns is None else len(columns)
        self.access: list[int] = []  # of each template the number among those of the ticket; -1 for none
        self.ticket: Ticket | None = None
        self.records = len(self.order)

    def piece(self) -> Piece:
        """All fields of all records; their accesses have been touched.

        A load comes in up to three records, the same as in `Lowering._transfer`: what is all new, the new part of others,
        and the rest. Only the last one writes the tile, and its latency covers that of the second.
        """
        held, recorder = _Held(), self.recorder
        shares = [None] * len(self.templates) if self.ticket is None else self._shares(self.ticket)
        bodies = [self._body(t, held, share) for t, share in zip(self.templates, shares, strict=True)]
        slots = sum(len(t.reads) + len(t.writes) + len(t.clobbers) for t in self.templates)
        first = recorder.columns
        fields, conditional, lists, table = expand(
            bodies, slots, self.order, self.row, self.lanes, recorder.programs, self.active, first
        )
        recorder.number_columns(fields["column"], first, table)
        return Piece(fields, conditional, *(Ragged(*x) for x in lists))

    def _body(self, t: Template, held: _Held, share: np.ndarray | None) -> tuple[Any, ...]:
        """A template as `expand` takes it."""
        amount = 0.0 if isinstance(t.amount, np.ndarray) else t.amount
        ways, lines = (NO_WAY, NO_WAY) if t.source is None else (t.source.channels, t.source.lines)
        slow = np.array([float(t.slow)]) if isinstance(t.slow, int | float) else held.of(t.slow)
        return (
            *(t.pipe, t.line, t.occupancy, t.latency, t.channel, amount, t.instructions),
            *(t.reads, t.writes, t.clobbers, *ways, *lines, self._shared(t)),
            *(held.of(t.amount), held.of(t.least), share, held.of(t.partial), slow),
        )

    def _shared(self, t: Template) -> int:
        """Column of a record that is the same for all programs of some; -1 if it needs none."""
        if self.active is None or t.partial is not None or isinstance(t.amount, np.ndarray):
            return -1
        moved = t.channel >= 0 or t.source is not None
        return self.recorder.shared_column(float(t.amount if moved else t.occupancy), self.active)

    def meet(self, touch: FirstTouch) -> None:
        """Note down what the loads and stores touch, in their order."""
        sources: dict[int, Source] = {}
        for t in self.templates:
            if t.source is not None:
                sources[id(t.source)] = t.source  # one may be met with different slots
        if not sources:
            return
        place = {key: i for i, key in enumerate(sources)}
        self.access = [place.get(id(t.source), -1) for t in self.templates]
        met = np.array(self.access, np.int32)[self.order]
        mine = met >= 0
        numbers = self.recorder.numbers if self.active is None else self.recorder.numbers[self.active]
        accesses = [(x.tensor, x.region, x.write) for x in sources.values()]
        self.ticket = touch.later(accesses, met[mine], self.row[mine], numbers)
        if not touch.cores:
            touch.settle()

    def _shares(self, ticket: Ticket) -> list[np.ndarray | None]:
        """By template of a load: for each row and each program the part that is read for the first time."""
        return [None if i < 0 else ticket.shares[i] for i in self.access]


class _Held:
    """Numbers of lanes as `expand` takes them: float64 arrays, None for a number. Those met again are made once."""

    def __init__(self) -> None:
        self.made: dict[int, np.ndarray] = {}

    def of(self, x: Any) -> np.ndarray | None:
        if not isinstance(x, np.ndarray):
            return None
        found = self.made.get(id(x))
        if found is None:
            found = self.made[id(x)] = np.ascontiguousarray(x, np.float64).reshape(-1)
        return found
