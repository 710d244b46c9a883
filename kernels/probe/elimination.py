"""Which of some configurations agree with every observed bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .experiment import Experiment, Operand, Words
from .predict import predict
from .space import Choices, units_of


@dataclass(frozen=True)
class Nearest:
    """The configuration with the fewest elements that differ, where none agrees. where: the first of them, in words."""

    choices: Choices
    differing: int
    elements: int
    where: str


def agreeing(
    candidates: Sequence[Choices], base: Choices, experiments: Sequence[Experiment], observed: Mapping[str, Words]
) -> list[Choices]:
    """Candidates, each with what `base` says of other choices, that give every observed bit."""
    left = list(candidates)
    for experiment in experiments:
        for part, words in _parts(experiment, observed[experiment.name]):
            left = [c for c in left if same(predict(part, units_of(base | c)), words, part)]
    return left


def _parts(experiment: Experiment, words: Words) -> Iterator[tuple[Experiment, Words]]:
    """Program by program: the first ones leave few candidates for the others."""
    if experiment.kernel != "dot_chain":
        yield experiment, words
        return
    for p in range(len(words)):
        one = {n: Operand(x.dtype, x.words[p : p + 1]) for n, x in experiment.inputs.items()}
        out = {n: Operand(x.dtype, x.words[p : p + 1]) for n, x in experiment.outputs.items()}
        yield replace(experiment, inputs=one, outputs=out, grid=(1,)), words[p : p + 1]


def same(a: Words, b: Words, experiment: Experiment) -> bool:
    return not differing(a, b, experiment).any()


def differing(a: Words, b: Words, experiment: Experiment) -> np.ndarray:
    """Elements with other bits; a NaN is a NaN whatever its payload, of which no document speaks."""
    out = experiment.output
    if out.dtype == "int32":
        return np.asarray(a != b)
    x, y = (Operand(out.dtype, w).values for w in (a, b))
    return np.asarray((a != b) & ~(np.isnan(x) & np.isnan(y)))


def nearest(
    candidates: Sequence[Choices], base: Choices, experiments: Sequence[Experiment], observed: Mapping[str, Words]
) -> Nearest:
    """The best of candidates of which none agrees."""
    best: Nearest | None = None
    for choices in candidates:
        found = _differences(choices, base, experiments, observed)
        if best is None or found.differing < best.differing:
            best = found
    assert best is not None
    return best


def _differences(
    choices: Choices, base: Choices, experiments: Sequence[Experiment], observed: Mapping[str, Words]
) -> Nearest:
    count, elements, where = 0, 0, ""
    for experiment in experiments:
        expected, seen = predict(experiment, units_of(base | choices)), observed[experiment.name]
        wrong = differing(expected, seen, experiment)
        if wrong.any() and not where:
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            where = f"{experiment.name}{list(at)} is {_hex(seen[at])}, the model gives {_hex(expected[at])}"
        count, elements = count + int(wrong.sum()), elements + wrong.size
    return Nearest(choices, count, elements, where)


def _hex(word: np.generic) -> str:
    return f"0x{int(word) & (1 << 8 * word.itemsize) - 1:0{2 * word.itemsize}x}"
