"""From bits to answers: each question by elimination, then what the answers say together, then every bit once more.

findings = decide(observed)         # words by name of the experiment, as result files have them
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .all_experiments import NARROW, all_experiments
from .assumed import assumed_vectors, judge
from .cube_experiments import FORMATS, MOST_STEP
from .elimination import agreeing, nearest, same
from .experiment import Words, values_of
from .findings import NAMED, NONE, OPEN, SEVERAL, ProbeAnswer, ProbeFindings
from .measured import measured_answers
from .predict import predict
from .questions import QUESTIONS, STEPS, SUMS, Question
from .range_experiments import seen_hf32
from .space import Choices, distinct, steps_text, units_of
from .steps import MORE, Steps, names_of, read_steps


@dataclass
class _State:
    """errors: by experiment, why it has no result. steps: of formats for which they are known.

    left: by question, the configurations that agree with its bits.
    """

    observed: Mapping[str, Words]
    errors: Mapping[str, str]
    named: Choices = field(default_factory=dict)
    steps: dict[str, Steps] = field(default_factory=dict)
    answers: list[ProbeAnswer] = field(default_factory=list)
    left: dict[str, list[Choices]] = field(default_factory=dict)

    @property
    def sizes(self) -> dict[str, int]:
        """Products of a step by format."""
        return {fmt: s.size for fmt, s in self.steps.items() if s.size is not None}

    def missing(self, experiments: Iterable[str]) -> str:
        """Which of them have no result, and why; empty if all have."""
        gone = [n for n in experiments if n not in self.observed]
        if not gone:
            return ""
        why = self.errors.get(gone[0], "not run")
        return f"no result of {', '.join(gone)} ({why})"


def decide(
    observed: Mapping[str, Words],
    errors: Mapping[str, str] | None = None,
    product: str = "",
    versions: Mapping[str, str] | None = None,
) -> ProbeFindings:
    """Answers to every question. observed: words of the outputs by experiment, in the shape that it has.

    errors: of experiments that have no result, why. product, versions: as the results have them.
    """
    state = _State(observed, errors or {})
    _steps(state)
    for question in QUESTIONS:
        _ask(question, state)
    _agree(state)
    _check(state)
    answers = (*state.answers, *measured_answers(observed, state.errors))
    return ProbeFindings(product, versions or {}, answers, _choices(state), tuple(_vectors(state)))


# -- steps


def _steps(state: _State) -> None:
    for fmt in FORMATS:
        gone = state.missing(names_of(fmt))
        if gone:
            state.answers.append(ProbeAnswer(_steps_question(fmt), OPEN, detail=gone))
            continue
        found = read_steps(fmt, state.observed)
        state.answers.append(_steps_answer(fmt, found))
        if found.size is not None:
            state.steps[fmt] = found
    orders = _name_steps(state)
    if len(orders) > 1:
        values = {"cube_k_order": tuple(sorted(orders))}
        detail = "formats differ, which no choice of the numerics can say"
        state.answers.append(ProbeAnswer("order of steps of all formats", NONE, values, detail=detail))


def _name_steps(state: _State) -> set[str]:
    """What the formats whose steps are known say together; the orders that they have."""
    orders = {s.order for s in state.steps.values() if s.order}
    told: Choices = {"cube_k_order": next(iter(orders))} if len(orders) == 1 else {}
    if "fp16" in state.steps:
        told["fp16_accumulator"] = "on" if state.steps["fp16"].accumulator == "fp16" else "off"
    if state.steps:
        told["cube_block_k"] = steps_text(state.sizes)
    state.named = {n: x for n, x in state.named.items() if n not in STEPS} | told
    return orders


def _steps_question(fmt: str) -> str:
    return f"steps of {fmt.upper()} products"


def _steps_answer(fmt: str, found: Steps) -> ProbeAnswer:
    about = _steps_question(fmt), names_of(fmt), found.bits
    if found.size is None:
        detail = f"{found.mixed} pairs of products fit no size of steps"
        return ProbeAnswer(about[0], NONE, {}, *about[1:], detail)
    values: dict[str, tuple[Any, ...]] = {"cube_block_k": (f"{fmt}={found.size}",)}
    if fmt == "fp16":
        values["fp16_accumulator"] = ("on" if found.accumulator == "fp16" else "off",)
    if found.size == MORE:
        detail = f"more than {MOST_STEP} products in a step, or an accumulator that left the Cube between two products"
        return ProbeAnswer(about[0], SEVERAL, {"cube_block_k": (f"{fmt}>{MOST_STEP}",)}, *about[1:], detail)
    return ProbeAnswer(about[0], NAMED, {**values, "cube_k_order": (found.order,)}, *about[1:])


# -- the other questions


def _ask(question: Question, state: _State) -> None:
    if question.choices == SUMS and state.named.get("fp16_accumulator") == "on":
        question = replace(question, choices=(*SUMS, "overflow_mode"))  # sums reach the end of 11 bits
    names = _answerable(question, state)
    lacks = _lacks(question, names, state)
    if lacks:
        state.answers.append(
            ProbeAnswer(question.name, OPEN, dict.fromkeys(question.choices, ()), detail=lacks)
        )
        return
    experiments = [all_experiments()[n] for n in names]
    bits = sum(state.observed[n].nbytes * 8 for n in names)
    tried = distinct(question.candidates(), state.sizes)
    left = agreeing(tried, state.named, experiments, state.observed)
    if not left:
        best = nearest(tried, state.named, experiments, state.observed)
        told = " ".join(f"{n}={x}" for n, x in best.choices.items())
        detail = f"nearest is {told}: {best.differing} of {best.elements} elements differ; {best.where}"
        state.answers.append(ProbeAnswer(question.name, NONE, {}, tuple(names), bits, detail))
        return
    state.left[question.name] = left
    values = {n: tuple(dict.fromkeys(c[n] for c in left)) for n in question.choices}
    state.answers.append(ProbeAnswer(question.name, NAMED, values, tuple(names), bits))
    state.named |= {n: x[0] for n, x in values.items() if len(x) == 1 and n in SUMS}


def _lacks(question: Question, names: list[str], state: _State) -> str:
    """Why a question cannot be decided; empty if it can, with the experiments `names`."""
    gone = state.missing(names or question.experiments)
    unknown = [n for n in question.needs if n not in state.named]
    if gone or unknown:
        return gone or f"needs {', '.join(unknown)}"
    return "" if names else f"needs the steps of {' or '.join(question.formats)}"


def _answerable(question: Question, state: _State) -> list[str]:
    """Experiments with a result and, of the Cube, with steps that are known."""
    if not question.formats:
        return list(question.experiments)
    pairs = zip(question.formats, question.experiments, strict=True)
    found = [n for f, n in pairs if n in state.observed and f in state.sizes]
    if (
        "sums_fp16" in found
    ):  # a wide accumulator shows in both; a narrow one has no room for the sums of the first
        found.append(f"sums_fp16_{NARROW}_bits")
        if state.named.get("fp16_accumulator") == "on":
            found.remove("sums_fp16")
    return [n for n in found if n in state.observed]


# -- together


def _agree(state: _State) -> None:
    """Leave of each question what the others allow; where nothing is left the two that differ are named."""
    changed = True
    while changed:
        allowed = _allowed(state.left.values())
        changed = False
        for name, left in state.left.items():
            kept = [c for c in left if all(x in allowed[n] for n, x in c.items())]
            changed |= len(kept) < len(left)
            state.left[name] = kept
    state.answers = [_together(a, state) for a in state.answers]


def _allowed(relations: Iterable[Sequence[Choices]]) -> dict[str, set[Any]]:
    out: dict[str, set[Any]] = {}
    for left in relations:
        for name in left[0] if left else ():
            values = {c[name] for c in left}
            out[name] = out[name] & values if name in out else values
    return out


def _together(answer: ProbeAnswer, state: _State) -> ProbeAnswer:
    left = state.left.get(answer.question)
    if left is None:
        return answer
    if not left:
        others = [
            q.name for q in QUESTIONS if q.name != answer.question and set(q.choices) & set(answer.values)
        ]
        detail = f"its bits and those of {' and '.join(others)} agree with no one configuration"
        return replace(answer, verdict=NONE, detail=detail)
    values = {n: tuple(dict.fromkeys(c[n] for c in left)) for n in answer.values}
    several = [n for n, x in values.items() if len(x) > 1 and not _named_elsewhere(n, answer, state)]
    detail = (
        f"{', '.join(several)}: no operand of these experiments tells the values apart" if several else ""
    )
    return replace(answer, verdict=SEVERAL if several else NAMED, values=values, detail=detail)


def _named_elsewhere(name: str, answer: ProbeAnswer, state: _State) -> bool:
    others = (left for q, left in state.left.items() if q != answer.question and left and name in left[0])
    return any(len({c[name] for c in left}) == 1 for left in others)


def _choices(state: _State) -> Choices:
    """The named ones: of steps, and those of which one value is left."""
    steps = {a: x for a, x in state.named.items() if a in STEPS}
    if "cube_block_k" in steps:
        steps["cube_block_k"] = steps_text({f: k for f, k in state.sizes.items() if k != MORE})
    failed = {n for a in state.answers if a.verdict == NONE for n in a.values}
    found = {
        n: next(iter(x)) for n, x in _allowed(state.left.values()).items() if len(x) == 1 and n not in failed
    }
    return {n: x for n, x in {**steps, **found}.items() if x != ""}


# -- every bit once more


def _check(state: _State) -> None:
    """The steps of the Cube were read off a pattern; the units have to give all of its bits under what was named."""
    chosen = _choices(state)
    if not set(SUMS) <= set(chosen):
        return
    for i, answer in enumerate(state.answers):
        names = [n for n in answer.experiments if n.startswith("steps_")]
        wrong = [n for n in names if not _as_named(n, chosen, state)]
        if wrong and answer.verdict == NAMED:
            detail = f"the pattern is that of {_told(answer)}, but {', '.join(wrong)} has bits that the units do not give"
            state.answers[i] = replace(answer, verdict=NONE, values={}, detail=detail)
            state.steps.pop(names[0].split("_")[1])
            _name_steps(state)


def _as_named(name: str, chosen: Choices, state: _State) -> bool:
    experiment = all_experiments()[name]
    return same(predict(experiment, units_of(chosen)), state.observed[name], experiment)


def _told(answer: ProbeAnswer) -> str:
    return ", ".join(f"{n}={x[0]}" for n, x in answer.values.items())


# -- the assumed vectors


def _vectors(state: _State) -> list[Any]:
    seen: dict[str, dict[int, int]] = {}
    for name in {v.experiment for v in assumed_vectors()} - {None}:
        if name in state.observed:
            seen[str(name)] = _seen(str(name), state.observed[str(name)])
    return judge(seen, _choices(state).get("overflow_mode"))


def _seen(name: str, words: Words) -> dict[int, int]:
    """What became of FP32 words in an experiment, as FP32 words."""
    experiment = all_experiments()[name]
    if name == "operands_hf32":
        return seen_hf32(experiment, words)
    given = experiment.inputs["x"].words
    out = np.ascontiguousarray(values_of(words, experiment.output.dtype)).view(np.uint32)
    return dict(zip(map(int, given), map(int, out), strict=True))
