"""Records of all turns of a loop, kept as the records of its body and the order in which turns bring them.

A walk of the body has a lane for each turn and program. A lane's numbers (amounts, addresses) come in rows of one turn each.
Record k of the loop is template `order[k]` with the numbers of row `row[k]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..execution.copy import Region
from ..execution.memory import Tensor
from .access import averages
from .cache import FirstTouch, Ticket
from .induction import NotAlikeError
from .packing import Piece
from .ragged import pick
from .recorder import ROW, Recorder
from .rotation import Rotation, Slots

LONGEST = 64  # turns until slots alternate as before
PARTS = 3  # records of one load at most: all new, the new part of others, and the rest


class Source(NamedTuple):
    """Where a load reads or a store writes: what memory gives or takes goes through channels[0], the rest through [1].

    lines: numbers of the source line with the grades of both channels.
    """

    channels: tuple[int, int]
    tensor: Tensor
    region: Region
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
        self.order: list[np.ndarray] = []
        self.row: list[np.ndarray] = []

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
        drain = (self.drains[pipe],) if pipe in self.drains else ()
        self.order.append(np.array([len(self.templates)]))
        self.row.append(np.zeros(1, np.int64))
        self.templates.append(
            Template(
                pipe,
                line,
                occupancy,
                latency,
                channel,
                amount,
                instructions,
                (*reads, *drain),
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
        self.add(
            pipe,
            line,
            occupancy=occupancy,
            latency=latency,
            instructions=instructions,
            reads=reads,
            writes=writes,
            clobbers=clobbers,
            active=active,
        )

    def unrolled(self, times: int, rotation: Rotation, gains: Mapping[Any, int], last: bool) -> Unrolled:
        """The records when the walk's lanes stand for `times` turns, one after the other; see `Rotation.after`.

        Raises `NotAlikeError` if slots alternate with too long a period.
        """
        count = len(self.templates)
        if not count:
            return Unrolled([], np.empty(0, np.int64), np.empty(0, np.int64))
        used = {s for t in self.templates for s in (*t.reads, *t.writes, *t.clobbers)}
        period = min(times, rotation.period(used, gains))
        if period > LONGEST:
            raise NotAlikeError
        turns = np.arange(times)[:, None]
        order = np.concatenate(self.order) + turns % period * count
        row = np.concatenate(self.row) * times + turns  # a row was as wide as all turns: now it is one turn
        templates = [
            t._replace(
                reads=rotation.after(t.reads, gains, k, last),
                writes=rotation.after(t.writes, gains, k, last),
                clobbers=rotation.after(t.clobbers, gains, k, last),
            )
            for k in range(period)
            for t in self.templates
        ]
        return Unrolled(templates, order.reshape(-1), row.reshape(-1))

    @property
    def records(self) -> int:
        """How many records a turn has so far."""
        return sum(len(x) for x in self.order)

    def settle(self) -> None:
        """Nothing is packed before it is known what all turns bring."""

    def take(self, inner: Unrolled) -> None:
        """Append the records of a loop inside this one."""
        self.order.append(inner.order + len(self.templates))
        self.row.append(inner.row)
        self.templates += inner.templates


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
        by_template = np.argsort(self.order, kind="stable")
        ends = np.bincount(self.order, minlength=len(self.templates)).cumsum()
        self.places = np.split(by_template, ends[:-1])  # per template: where it comes in the order
        self.counts = np.ones(len(self.order), np.int64)
        self.ticket: Ticket | None = None
        self.records = len(self.order)

    def piece(self) -> Piece:
        """All fields of all records; their accesses have been touched."""
        shares = self._shares()
        partial = self._partial()
        first = self.counts.cumsum() - self.counts
        chosen = np.repeat(self.order, self.counts)
        every = self._with_early(chosen, first, shares)
        fields = {
            name: np.array([getattr(t, name) for t in every], kind)[chosen]
            for name, kind in ROW.items()
            if name not in ("amount", "column")
        }
        self.fields = {
            **fields,
            "amount": np.zeros(len(chosen)),
            "column": np.full(len(chosen), -1, np.int32),
        }
        self._least(first)
        self.conditional = np.zeros(len(chosen), bool)
        for k, t in enumerate(self.templates):
            at = first[self.places[k]]
            if k in shares:
                self._load(t, at, self.row[self.places[k]], shares[k])
            elif k in partial:
                self._some(t, at, partial[k])
            else:
                self._all(t, at, self.row[self.places[k]])
        slots = ([getattr(t, n) for t in every] for n in ("reads", "writes", "clobbers"))
        return Piece(self.fields, self.conditional, *(pick(s, chosen) for s in slots))

    def _with_early(
        self, chosen: np.ndarray, first: np.ndarray, shares: Mapping[int, np.ndarray]
    ) -> list[Template]:
        """All templates, and those of the early records of loads in parts, which `chosen` then names.

        The same as in `Lowering._transfer`: of three records, what is all new, the new part of others, and the rest, only
        the last one writes the tile, and its latency covers that of the second.
        """
        every = list(self.templates)
        for k, share in shares.items():
            t, at, there = self.templates[k], first[self.places[k]], _present(share)
            early = t._replace(writes=(), clobbers=(*t.writes, *t.clobbers))
            whole, mixed = there[:, 0], there[:, 1]
            chosen[at[whole]] = len(every)
            chosen[at[mixed] + whole[mixed]] = len(every) + 1
            every += [early, early._replace(latency=0.0)]
        return every

    def _least(self, first: np.ndarray) -> None:
        """Occupancies that lanes differ in: each record takes the average over its programs."""
        for k, t in enumerate(self.templates):
            if t.least is not None:
                rows = self._rows(t.least, self.row[self.places[k]])
                cycles = averages(rows)
                for part in range(PARTS):
                    there = self.counts[self.places[k]] > part
                    self.fields["occupancy"][first[self.places[k]][there] + part] = cycles[there]

    def _rows(self, x: Any, row: np.ndarray) -> np.ndarray:
        """Numbers of the lanes, one line for each of those rows."""
        if not isinstance(x, np.ndarray) or x.size == 1:
            return np.broadcast_to(np.asarray(x), (len(row), self.lanes))
        rows: np.ndarray = x.reshape(-1, self.lanes)[row]
        return rows

    def meet(self, touch: FirstTouch) -> None:
        """Note down what the loads and stores touch, in their order."""
        sources = self._sources()
        if not sources:
            return
        place = {id(x): i for i, x in enumerate(sources)}
        number = np.full(len(self.templates), -1, np.int32)
        for k, t in enumerate(self.templates):
            if t.source is not None:
                number[k] = place[id(t.source)]
        met = number[self.order]
        mine = met >= 0
        numbers = self.recorder.numbers if self.active is None else self.recorder.numbers[self.active]
        accesses = [(x.tensor, x.region, x.write) for x in sources]
        self.ticket = touch.later(accesses, met[mine], self.row[mine], numbers)
        if not touch.cores:
            touch.settle()

    def _sources(self) -> list[Source]:
        """Each once: one may be met with different slots."""
        return list({id(t.source): t.source for t in self.templates if t.source is not None}.values())

    def _shares(self) -> dict[int, np.ndarray]:
        """By template of a load: for each of its records and each program the part that is read for the first time."""
        if self.ticket is None:
            return {}
        place = {id(x): i for i, x in enumerate(self._sources())}
        out = {}
        for k, t in enumerate(self.templates):
            if t.source is not None:
                found = self.ticket.shares[place[id(t.source)]]
                out[k] = self._rows(found, self.row[self.places[k]])
                self.counts[self.places[k]] = _present(out[k]).sum(axis=1)
        return out

    def _partial(self) -> dict[int, np.ndarray]:
        """By template that not all lanes have: the lanes of its records, without records that none has."""
        out = {}
        for k, t in enumerate(self.templates):
            if t.partial is not None:
                lanes = self._rows(t.partial, self.row[self.places[k]])
                some = lanes.any(axis=1)
                self.counts[self.places[k]] = some
                self.places[k] = self.places[k][some]
                out[k] = lanes[some]
        return out

    def _all(self, t: Template, at: np.ndarray, row: np.ndarray) -> None:
        """Records that all lanes have."""
        amount = t.amount if t.channel >= 0 or t.source is not None else t.occupancy
        if not isinstance(t.amount, np.ndarray):
            if self.active is None:
                self.fields["amount"][at] = t.amount
            else:
                self.fields["column"][at] = self.recorder.shared_column(float(amount), self.active)
                self.conditional[at] = True
            return
        amounts = self._rows(amount, row)
        same = (
            (amounts == amounts[:, :1]).all(axis=1) if self.active is None else np.zeros(len(amounts), bool)
        )
        self.fields["amount"][at[same]] = amounts[same, 0]
        self._table(at[~same], amounts[~same], np.ones_like(amounts[~same], bool), self.active is not None)

    def _some(self, t: Template, at: np.ndarray, lanes: np.ndarray) -> None:
        """Records that not all lanes have."""
        whole = lanes.all(axis=1) if self.active is None else np.zeros(len(lanes), bool)
        self._table(at[~whole], np.full(lanes.shape, t.occupancy)[~whole], lanes[~whole], True)

    def _load(self, t: Template, at: np.ndarray, row: np.ndarray, share: np.ndarray) -> None:
        """A read from HBM, from L2, or one from each (see `_with_early`)."""
        assert t.source is not None
        alike = _alike(share)
        from_memory = share[alike, 0] > 0
        self.fields["channel"][at[alike]] = np.where(from_memory, *t.source.channels)
        self.fields["line"][at[alike]] = np.where(from_memory, *t.source.lines)
        self._all(t, at[alike], row[alike])
        slow = None if t.slow is None else averages(self._rows(t.slow, row))
        if slow is not None:
            memory = alike & (share[:, 0] > 0)
            self.fields["occupancy"][at[memory]] = slow[memory]
            slow = slow[~alike]
        amounts, first, at = self._rows(t.amount, row)[~alike], share[~alike], at[~alike]
        there = _present(share)[~alike]
        offsets = there.cumsum(axis=1) - 1
        parts = (first, first == 1), (first, (first > 0) & (first < 1)), (1.0 - first, first < 1)
        for k, (part, some) in enumerate(parts):
            on = there[:, k]
            here = at[on] + offsets[on, k]
            self.fields["channel"][here] = t.source.channels[k // 2]
            if slow is not None and k < 2:
                self.fields["occupancy"][here] = slow[on]
            self.fields["line"][here] = t.source.lines[k // 2]
            weights = [averages(x[chosen][None, :])[0] for x, chosen in zip(part[on], some[on], strict=True)]
            self.fields["occupancy"][here] *= np.array(weights)
            self._table(here, (amounts * part)[on], some[on], True)

    def _table(self, at: np.ndarray, amounts: np.ndarray, chosen: np.ndarray, conditional: bool) -> None:
        """Give records their amounts by program; programs that are not chosen skip them."""
        table = np.full((len(at), self.recorder.programs), -1.0)
        table[:, slice(None) if self.active is None else self.active] = np.where(chosen, amounts, -1.0)
        self.fields["column"][at] = self.recorder.new_columns(table)
        self.conditional[at] = conditional


def _alike(share: np.ndarray) -> np.ndarray:
    """Records for which all programs read everything for the first time, or nothing."""
    least, most = share.min(axis=1), share.max(axis=1)
    alike: np.ndarray = (least == most) & ((least == 0.0) | (least == 1.0))
    return alike


def _present(share: np.ndarray) -> np.ndarray:
    """(records, 3): which of the records of a load in parts some program has; of one that is no such, the last."""
    whole, some = (share == 1).any(axis=1), ((share > 0) & (share < 1)).any(axis=1)
    apart = ~_alike(share)
    return np.stack([whole & apart, some & apart, np.ones(len(share), bool)], axis=1)
