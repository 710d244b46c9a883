"""Which of some configurations agree with every observed bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .experiment import BoardTensor, Experiment, Words
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
    candidates: Sequence[Choices],
    base: Choices,
    experiments: Sequence[Experiment],
    observed: Mapping[str, Words],
) -> list[Choices]:
    """Candidates, each with what `base` says of other choices, that give every observed bit."""
    left = [(c, units_of(base | c)) for c in candidates]
    for experiment in experiments:
        for part, words in _parts(experiment, observed[experiment.name]):
            left = [(c, units) for c, units in left if same(predict(part, units), words, part)]
    return [c for c, _ in left]


def _parts(experiment: Experiment, words: Words) -> Iterator[tuple[Experiment, Words]]:
    """Program by program: the first ones leave few candidates for the others."""
    if experiment.kernel != "dot_chain":
        yield experiment, words
        return
    for p in range(len(words)):
        one = {n: BoardTensor(x.dtype, x.words[p : p + 1]) for n, x in experiment.inputs.items()}
        out = {n: BoardTensor(x.dtype, x.words[p : p + 1]) for n, x in experiment.outputs.items()}
        yield replace(experiment, inputs=one, outputs=out, grid=(1,)), words[p : p + 1]


def same(a: Words, b: Words, experiment: Experiment) -> bool:
    return not differing(a, b, experiment).any()


def differing(a: Words, b: Words, experiment: Experiment) -> np.ndarray:
    """Elements with other bits; a NaN is a NaN whatever its payload, of which no document speaks."""
    out = experiment.output
    if out.dtype == "int32":
        return np.asarray(a != b)
    x, y = (BoardTensor(out.dtype, w).values for w in (a, b))
    return np.asarray((a != b) & ~(np.isnan(x) & np.isnan(y)))


def nearest(
    candidates: Sequence[Choices],
    base: Choices,
    experiments: Sequence[Experiment],
    observed: Mapping[str, Words],
) -> Nearest:
    """The best of candidates of which none agrees."""
    best, fewest = candidates[0], sum(observed[e.name].size for e in experiments) + 1
    for choices in candidates:
        units, count = units_of(base | choices), 0
        for part, words in (p for e in experiments for p in _parts(e, observed[e.name])):
            count += int(differing(predict(part, units), words, part).sum())
            if count >= fewest:  # no better one: the rest need not be computed
                break
        else:
            best, fewest = choices, count
    return Nearest(best, fewest, *_shown(best, base, experiments, observed))


def _shown(
    choices: Choices, base: Choices, experiments: Sequence[Experiment], observed: Mapping[str, Words]
) -> tuple[int, str]:
    """Elements that were compared, and the first one that differs."""
    units, where = units_of(base | choices), ""
    for experiment in experiments:
        expected, seen = predict(experiment, units), observed[experiment.name]
        wrong = differing(expected, seen, experiment)
        if wrong.any() and not where:
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            where = f"{experiment.name}{list(at)} is {_hex(seen[at])}, the model gives {_hex(expected[at])}"
    return sum(observed[e.name].size for e in experiments), where


def _hex(word: np.generic) -> str:
    return f"0x{int(word) & (1 << 8 * word.itemsize) - 1:0{2 * word.itemsize}x}"
