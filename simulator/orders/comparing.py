"""Compares the expressions of an output's elements between configurations, and looks for inputs that tell them apart."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import AscendtileError, UsageError
from .arithmetic import Arithmetic
from .drawing import draw
from .elementwise import fold
from .expressions import INPUT, ExpressionKind, ExpressionTable
from .launches import Followed, LaunchSequence, expressions_of, values_of
from .rendering import ALL_TERMS, Words, inputs_of, parting
from .variations import Configuration, Variations
from .verdict import DIFFERS, NOT_PROVEN, SAME, Counterexample, ElementOrder, SameBits
from .witness import Element, Witness, search

TRIES = 60
SECONDS = 20.0  # of looking for inputs
MORE_WITNESSES, FEW = 4, 4  # that are tried for a simpler one, which has so many elements that are not 0
MOST_CANDIDATES = 64  # differing elements among which the one of fewest inputs is taken


@dataclass(frozen=True)
class DifferingElements:
    """Two configurations (by place) and the elements of an output, as rows of indices, whose expressions differ."""

    pair: tuple[int, int]
    output: str
    indices: np.ndarray


def compare(
    subject: Variations,
    tries: int = TRIES,
    signed_zeros: bool = False,
    finite: bool = True,
    seconds: float = SECONDS,
) -> SameBits:
    """Whether all configurations give the same bits.

    tries, seconds: how many sets of inputs are run at most, and how long, where orders differ. signed_zeros: whether -0 and
    0 are different bits. finite: whether the inputs are neither infinite nor NaN. All NaN are equal. Raises `UsageError`.
    """
    if not seconds > 0:
        raise UsageError(f"same bits: inputs are looked for in a number of seconds above 0, got {seconds}")
    if len(subject.configurations) < 2:
        only = subject.configurations[0].name if subject.configurations else "none"
        why = "".join(f"; {note}" for note in subject.notes)
        raise UsageError(
            f"{subject.name}: there is one configuration to compare ({only}); vary something else{why}"
        )
    return _Comparison(subject, signed_zeros, finite).verdict(tries, seconds)


class _Comparison:
    """The expressions of all configurations of a subject."""

    def __init__(self, subject: Variations, signed_zeros: bool, finite: bool) -> None:
        self.subject = subject
        self.signed_zeros = signed_zeros
        self.finite = finite
        self.arithmetic = Arithmetic(ExpressionTable(), fold)
        self.followed = [self._followed(c) for c in subject.configurations]
        self.zero_signs = False
        self.differences = self._differences()

    def _followed(self, configuration: Configuration) -> Followed:
        launches = configuration.launches(self.subject.inputs)
        unknown = {n: x for n, x in launches.inputs.items() if n not in self.subject.given}
        followed = LaunchSequence(launches.calls, unknown, launches.outputs)
        try:
            return expressions_of(followed, self.arithmetic, self.finite)
        except AscendtileError as e:
            raise UsageError(f"{self.subject.name} does not run with {configuration.name}: {e}") from None

    def _differences(self) -> list[DifferingElements]:
        out = []
        for i, j in itertools.combinations(range(len(self.followed)), 2):
            for name in (n for n in self.followed[i].outputs if n in self.followed[j].outputs):
                a, b = common(self.followed[i].outputs[name], self.followed[j].outputs[name])
                apart = np.argwhere(self._apart(a, b))
                out += [DifferingElements((i, j), name, apart)] if len(apart) else []
        return out

    def _apart(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Which elements differ; without signs of zeros, if these do not count."""
        apart = a != b
        if self.signed_zeros or not apart.any():
            return np.asarray(apart)
        left, right = (self._unsigned(x) for x in (a, b))
        self.zero_signs |= bool((apart & (left == right)).any())
        return np.asarray(left != right)

    def _unsigned(self, numbers: np.ndarray) -> np.ndarray:
        found, where = np.unique(numbers, return_inverse=True)
        made = np.array([x if x < 0 else self.arithmetic.unsigned(x) for x in found.tolist()], np.int64)
        return np.asarray(made[where].reshape(numbers.shape))

    # -- the verdict -------------------------------------------------------------------------------------------------

    def verdict(self, tries: int, seconds: float) -> SameBits:
        """Looks for inputs where orders differ."""
        names = [c.name for c in self.subject.configurations]
        pairs = list(dict.fromkeys((names[d.pair[0]], names[d.pair[1]]) for d in self.differences))
        depends, unknowns = self._doubts()
        found, turns = None, 0
        if self.differences:
            found, turns = self._search(tries, seconds, depends)
        proven = not (self.differences or depends or unknowns)
        return SameBits(
            self.subject.name,
            DIFFERS if found else SAME if proven else NOT_PROVEN,
            names,
            max(sum(x.size for x in f.outputs.values()) for f in self.followed),
            list(self.followed[0].outputs),
            zero_signs=self.zero_signs,
            finite=self.finite,
            depends={place: sorted(by) for place, by in depends.items()},
            unknowns=unknowns,
            differing=pairs,
            counterexample=self._counterexample(found),
            tries=turns,
            laws=self.subject.laws,
            notes=self.subject.notes,
            advice=self.subject.advice(pairs),
        )

    def _doubts(self) -> tuple[dict[str, set[str]], dict[str, str]]:
        depends: dict[str, set[str]] = {}
        unknowns = dict(self.subject.doubts)
        for f in self.followed:
            unknowns |= f.unknowns
            unknowns |= {n: f"no launch writes {n}" for n, x in f.outputs.items() if (x < 0).any()}
            for place, names in f.depends.items():
                depends.setdefault(place, set()).update(names)
        return depends, unknowns

    def _search(
        self, tries: int, seconds: float, depends: Mapping[str, set[str]]
    ) -> tuple[Witness | None, int]:
        """Integers by which the course goes stay as they are: another index may lie outside of its tensor."""
        by = {name for names in depends.values() for name in names}
        fixed = self.subject.given | {n for n in by if self.subject.inputs[n].dtype.kind in "iub"}
        involved = sorted({k for d in self.differences for k in d.pair})
        end = time.monotonic() + seconds
        for turn in range(tries):
            inputs = draw(self.subject.inputs, fixed, turn, self.finite)
            found = search(self.subject.configurations, involved, inputs, self.signed_zeros, self._fewest)
            if found is not None:
                return self._simplest(found, turn, fixed, involved, end), turn + 1
            if time.monotonic() > end:
                return None, turn + 1
        return None, tries

    def _simplest(
        self, found: Witness, turn: int, fixed: frozenset[str], involved: Sequence[int], end: float
    ) -> Witness:
        """Of those that this and the next sets of inputs give, the one with the fewest elements that are not 0."""
        best = self._made_simple(found, end)
        for more in range(1, MORE_WITNESSES):
            if self._left(best) <= FEW or time.monotonic() > end:
                break
            inputs = draw(self.subject.inputs, fixed, turn + more, self.finite)
            again = search(self.subject.configurations, involved, inputs, self.signed_zeros, self._fewest)
            best = min([best, *([] if again is None else [self._made_simple(again, end)])], key=self._left)
        return best

    def _made_simple(self, found: Witness, end: float) -> Witness:
        made = self._elements(found.pair, found.output, found.index)
        return found.simplest(self.subject.configurations, made, self.signed_zeros, end)

    def _left(self, found: Witness) -> int:
        return sum(found.is_kept(e) for e in self._elements(found.pair, found.output, found.index))

    def _fewest(self, pair: tuple[int, int], output: str, indices: np.ndarray) -> tuple[int, ...]:
        """Of elements that differ the one that the fewest elements of inputs make."""
        chosen = [tuple(int(k) for k in row) for row in indices[:MOST_CANDIDATES]]
        return min(chosen, key=lambda index: (self._size(pair, output, index), index))

    def _size(self, pair: tuple[int, int], output: str, index: tuple[int, ...]) -> int:
        return len(self._elements(pair, output, index))

    def _elements(self, pair: tuple[int, int], output: str, index: tuple[int, ...]) -> list[Element]:
        """The elements of inputs that make an element in one of two configurations."""
        both = [int(self.followed[k].outputs[output][index]) for k in pair]
        made = self.arithmetic.of.made
        return [made[x].detail for x in inputs_of(self.arithmetic.of, [x for x in both if x >= 0])]

    def _counterexample(self, found: Witness | None) -> Counterexample | None:
        """With inputs that show it; else the first two orders that differ."""
        if found is None and not self.differences:
            return None
        if found is None:
            first = self.differences[0]
            pair, output, index = (
                first.pair,
                first.output,
                self._fewest(first.pair, first.output, first.indices),
            )
        else:
            pair, output, index = found.pair, found.output, found.index
        numbers = [int(self.followed[k].outputs[output][index]) for k in pair]
        names = [self.subject.configurations[k].name for k in pair]
        texts = [
            self._text(x) for x in (parting(self.arithmetic.of, *numbers) if min(numbers) >= 0 else numbers)
        ]
        if found is None:
            a, b = (ElementOrder(n, t) for n, t in zip(names, texts, strict=True))
            return Counterexample(output, index, (a, b))
        elements = self._elements(pair, output, index)
        kept = frozenset(self._number_of(e) for e in elements if found.is_kept(e))
        short = [self._text(x, kept) for x in numbers]
        a, b = (
            ElementOrder(n, t, s, *v) for n, t, s, v in zip(names, texts, short, found.shown, strict=True)
        )
        return Counterexample(output, index, (a, b), *found.nonzero(elements))

    def _number_of(self, element: Element) -> int:
        return self.arithmetic.of.number(ExpressionKind(INPUT, element))

    def _text(self, x: int, kept: frozenset[int] | None = None) -> str:
        if x < 0:
            return "not written"
        return (
            Words(self.arithmetic.of).text(x)
            if kept is None
            else Words(self.arithmetic.of, kept, ALL_TERMS).text(x)
        )


def common(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The elements of two outputs that both have."""
    region = tuple(slice(0, min(m, n)) for m, n in zip(a.shape, b.shape, strict=True))
    return a[region], b[region]


__all__ = ["Configuration", "Variations", "compare", "values_of"]
