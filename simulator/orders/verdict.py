"""What a comparison found: the same for all, a counterexample, or neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

SAME, DIFFERS, NOT_PROVEN = "same", "differs", "not proven"


@dataclass(frozen=True)
class ElementOrder:
    """How one configuration makes an element. text: from where it parts from the other one; of_inputs: what is left of it
    where only the inputs of the counterexample are not 0.
    """

    configuration: str
    text: str
    of_inputs: str = ""
    value: str = ""
    bits: str = ""


@dataclass(frozen=True)
class Counterexample:
    """Two configurations, an element of an output and its two orders.

    inputs: elements that tell them apart, by name (the largest first), as far as they are not 0; empty where none were
    found. other: how many more elements of these inputs are not 0.
    """

    output: str
    index: tuple[int, ...]
    orders: tuple[ElementOrder, ElementOrder]
    inputs: Mapping[str, float] = field(default_factory=dict)
    other: int = 0


@dataclass(frozen=True)
class SameBits:
    """Of one subject under all its configurations.

    kind: SAME (proven), DIFFERS (shown by values) or NOT_PROVEN. configurations: those that were compared, by name.
    elements: how many of the outputs were compared. zero_signs: whether zeros may come with either sign, where that does
    not count.
    depends: places where the course goes by data -> inputs by which it goes: the verdict is for the data that was run.
    unknowns: places that were not followed, with why. tries: sets of inputs that were run. laws: what holds beyond the
    configurations, with why. advice: what would make it the same.
    """

    subject: str
    kind: str
    configurations: Sequence[str]
    elements: int
    outputs: Sequence[str]
    zero_signs: bool = False
    finite: bool = True
    depends: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unknowns: Mapping[str, str] = field(default_factory=dict)
    differing: Sequence[tuple[str, str]] = ()
    counterexample: Counterexample | None = None
    tries: int = 0
    laws: Sequence[str] = ()
    notes: Sequence[str] = ()
    advice: Sequence[str] = ()

    @property
    def same(self) -> bool:
        """Whether the bits are proven to be the same for all configurations."""
        return self.kind == SAME

    def __str__(self) -> str:
        return self.words

    @property
    def words(self) -> str:
        """The verdict in a sentence."""
        count = len(self.configurations)
        if self.kind == SAME:
            zeros = ", but for the sign of zeros" if self.zero_signs else ""
            finite = " for all finite inputs" if self.finite else " for all inputs"
            return f"{self.subject}: same bits in all {count} configurations{zeros}, proven{finite}"
        found = self.counterexample
        if self.kind == DIFFERS and found is not None:
            a, b = found.orders
            return f"{self.subject}: {place(found)} differs between {a.configuration} and {b.configuration}"
        return f"{self.subject}: not proven{self.why}"

    @property
    def why(self) -> str:
        """Why nothing was proven."""
        if self.kind != NOT_PROVEN:
            return ""
        if self.differing:
            return f": orders differ, no difference found in {self.tries} tries"
        if self.unknowns:
            return f": {next(iter(self.unknowns.values()))}"
        if self.depends:
            names = ", ".join(sorted({n for ns in self.depends.values() for n in ns}))
            return f": the orders are the same for the data that was run, but its course goes by {names}"
        return ": only one configuration ran"


def place(found: Counterexample) -> str:
    """ "out[0,3]" """
    return f"{found.output}[{','.join(map(str, found.index))}]"
