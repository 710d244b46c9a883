"""A judgement from end to end: which process is asked what, and what is made of its answers.

The process of the task and the process of the answer are forked from one that has loaded neither. The first makes the
inputs and, later, the reference, always from the same seed; the second gets inputs and gives outputs back, and knows
neither the task nor the seed. Decisions are made here and in the first one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...simulator.errors import RunError, UsageError
from .answer_log import AnswerLog, AnswerRequest, CallLog
from .cheats.evidence import CallEvidence
from .cheats.values import ValueFacts
from .descriptions import description
from .judged_case import CaseForm, JudgedCase
from .pricing.operation import HostOp
from .processes.limits import Limits, Reply
from .processes.pool import Job
from .tasks.files import AnswerFile, TaskFile, seed_of
from .tasks.tolerances import AKG, GROUPED, KERNELBENCH
from .verdict import ComparedOutput

DESCRIBE = "ascendtile.reports.judging.tasks.describing:described"
VALUES = "ascendtile.reports.judging.tasks.reference:values"
JUDGE = "ascendtile.reports.judging.tasks.reference:judged"
VALUES_AT = "ascendtile.reports.judging.sampling.of_task:values_at"
JUDGE_AT = "ascendtile.reports.judging.sampling.of_task:judged_at"
ANSWER = "ascendtile.reports.judging.answering.run:answer_calls"

# What is judged whole, without being asked to: about half a second of values for two calls.
WHOLE_ELEMENTS = 1 << 21
WHOLE_FLOPS = 1 << 30
GROUP_ELEMENTS = 1 << 24  # of cases that are judged together


class TaskError(RunError):
    """The process of the task was killed from outside, or is faulty: there is no verdict on the answer."""


@dataclass(frozen=True)
class JudgeRequest:
    """What is to be judged and how. device: options of the device, of plain data."""

    task: TaskFile
    answer: AnswerFile
    device: Mapping[str, Any]
    values: bool = True
    full: bool = False
    seed: int | None = None
    trials: bool = True
    limits: Limits = field(default_factory=Limits)

    @property
    def benchmark(self) -> str:
        """Whose rule says what is equal."""
        if self.task.grouped:
            return GROUPED
        return AKG if self.answer.of_akg else KERNELBENCH

    @property
    def needs_torch(self) -> bool:
        """Whether one of the files imports it."""
        return self.task.needs_torch or self.answer.needs_torch


@dataclass(frozen=True)
class Judgement:
    """Judges by calls of one job."""

    asked: JudgeRequest
    job: Job

    def cases(self) -> list[JudgedCase]:
        """All cases, judged."""
        forms, init = self._described()
        whole = [f for f in forms if self.asked.values and self._is_whole(f)]
        rest = [f for f in forms if f not in whole]
        judged = [case for group in _groups(whole) for case in self._with_values(group, init)]
        if self.asked.values and self.asked.needs_torch:
            judged += [self._sampled(form, init) for form in rest]
        elif rest:
            judged += self._timed(rest, init)
        return sorted(judged, key=lambda case: case.form.index)

    def _is_whole(self, form: CaseForm) -> bool:
        small = form.elements <= WHOLE_ELEMENTS and form.flops <= WHOLE_FLOPS
        return self.asked.full or small

    @property
    def _seed(self) -> int:
        return seed_of(self.asked.task, self.asked.answer, self.asked.seed)

    # ---- the process of the task ----

    def _described(self) -> tuple[list[CaseForm], dict[str, Any]]:
        found = description(
            self.job,
            self.asked.task,
            self.asked.limits,
            self._seed,
            lambda: self._of_task(DESCRIBE, {}, {})[0],
        )
        made = None if found["made"] is None else tuple(map(HostOp.from_json, found["made"]))
        return [CaseForm.of(k, data, made) for k, data in enumerate(found["cases"])], found["init"]

    def _of_task(
        self, function: str, request: Mapping[str, Any], fds: Mapping[str, int]
    ) -> tuple[dict[str, Any], dict[str, int]]:
        message = {**self.asked.task.to_request(), "seed": self._seed, **request}
        reply = self.job.call(function, message, fds, self.asked.limits)
        if reply.status == "ok":
            return reply.answer, reply.fds
        if reply.answer.get("raised") == "UsageError":
            raise UsageError(str(reply.answer["message"]))
        if "raised" in reply.answer:
            raise TaskError(f"the process of the task failed: {reply.answer['traceback']}")
        if reply.status in ("time", "memory"):
            raise UsageError(f"the task {self.asked.task.path.name} {reply.reason}")
        raise TaskError(f"the process of the task failed: {reply.reason}")

    # ---- the process of the answer ----

    def _with_values(self, forms: Sequence[CaseForm], init: dict[str, Any]) -> list[JudgedCase]:
        """Cases whose values are compared, all of them."""
        numbers = [f.index for f in forms]
        try:
            given, files = self._of_task(VALUES, {"cases": numbers}, {})
        except UsageError as e:  # which had no values to make when it was described
            return self._deferred(forms, init, str(e))
        parts = {n: given[n] for n in ("init", "state", "layouts")}
        request = self._request(values=True, cases=given["first"], second=given["second"], **parts)
        with _closing(files), self._answered(request, files) as (log, outputs, failed):
            cases = _cases(forms, log, failed)
            done = [k for k, case in enumerate(cases) if _returned(case)]
            if not done:
                return cases
            try:
                compared = self._compared(JUDGE, [cases[k] for k in done], log.layout, outputs)
            except UsageError as e:
                return [_unknown(case, str(e)) for case in cases]
            facts = map(ValueFacts.from_json, compared["values"])
            for k, found, values in zip(done, _outputs(compared), facts, strict=True):
                cases[k] = replace(cases[k], outputs=found, values=values)
            return cases

    def _deferred(self, forms: Sequence[CaseForm], init: dict[str, Any], why: str) -> list[JudgedCase]:
        """Of cases that have no reference the time alone."""
        return [_unknown(case, why) for case in self._timed(forms, init)]

    def _sampled(self, form: CaseForm, init: dict[str, Any]) -> JudgedCase:
        """A case whose values are compared at some positions; only timed where that cannot be, and why."""
        try:
            given, files = self._of_task(VALUES_AT, {"cases": [form.index]}, {})
        except UsageError as e:
            return self._deferred([form], init, str(e))[0]
        if "refused" in given:
            return self._deferred([form], init, _or_full(given["refused"]))[0]
        parts = {n: given[n] for n in ("init", "state", "layouts")}
        request = self._request(
            values=False, sampled=True, cases=given["first"], second=given["second"], **parts
        )
        with _closing(files), self._answered(request, files) as (log, outputs, failed):
            case = _cases([form], log, failed)[0]
            refused = next((call.not_sampled for call in case.calls if call.not_sampled), "")
            if not refused and not _returned(case):
                return case
            compared = {} if refused else self._compared(JUDGE_AT, [case], log.layout, outputs)
        refused = refused or compared.get("refused", "")
        if refused:
            return self._deferred([form], init, _or_full(refused))[0]
        return replace(case, outputs=_outputs(compared)[0], sampled=True)

    def _compared(
        self,
        function: str,
        cases: Sequence[JudgedCase],
        layout: Mapping[str, Any],
        outputs: Mapping[str, int],
    ) -> dict[str, Any]:
        request = {
            "habits": [_touches_inputs(case) for case in cases],
            "cases": [case.form.index for case in cases],
            "calls": [[call.outputs for call in case.calls] for case in cases],
            "layout": layout,
            "benchmark": self.asked.benchmark,
        }
        return self._of_task(function, request, outputs)[0]

    def _timed(self, forms: Sequence[CaseForm], init: dict[str, Any]) -> list[JudgedCase]:
        """Cases of which only the time is found: zeros for inputs."""
        request = self._request(values=False, cases=[f.arguments for f in forms], init=init)
        with self._answered(request, {}) as (log, _, failed):
            return _cases(forms, log, failed)

    def _request(self, **parts: Any) -> AnswerRequest:
        answer = self.asked.answer
        given: dict[str, Any] = {n: tuple(x) if n in ("cases", "second") else x for n, x in parts.items()}
        return AnswerRequest(
            text=answer.text,
            name=answer.path.name,
            entry=answer.entry,
            is_class=answer.is_class,
            torch=self.asked.needs_torch,
            siblings=answer.siblings,
            device=dict(self.asked.device),
            extra=answer.of_akg,
            trials=self.asked.trials,
            **given,
        )

    @contextlib.contextmanager
    def _answered(
        self, request: AnswerRequest, fds: Mapping[str, int]
    ) -> Iterator[tuple[AnswerLog, dict[str, int], str]]:
        """The log, its files, and what ended the process from outside."""
        reply = self.job.call(ANSWER, request.to_json(), fds, self.asked.limits)
        with _closing(reply.fds):
            if reply.status != "ok":
                yield AnswerLog(), {}, _failure(reply, self.asked.limits)
                return
            try:
                log = AnswerLog.from_json(reply.answer)
                _check(log)
            except UsageError as e:
                yield AnswerLog(), {}, f"the answer's process gave no log: {e}"
                return
            yield log, reply.fds, ""


@contextlib.contextmanager
def _closing(fds: Mapping[str, int]) -> Iterator[None]:
    from .processes.messages import close_all

    try:
        yield
    finally:
        close_all(list(fds.values()))


def _groups(forms: Sequence[CaseForm]) -> Iterator[list[CaseForm]]:
    """Neighbours that are judged together: as many as have `GROUP_ELEMENTS`, one at least."""
    group: list[CaseForm] = []
    for form in forms:
        if group and sum(f.elements for f in group) + form.elements > GROUP_ELEMENTS:
            yield group
            group = []
        group.append(form)
    if group:
        yield group


def _cases(forms: Sequence[CaseForm], log: AnswerLog, failed: str) -> list[JudgedCase]:
    """Each case with its calls; where the process ended early, those that it did not reach say why."""
    calls: list[tuple[CallLog, ...]] = [*log.calls, *[()] * (len(forms) - len(log.calls))]
    return [
        JudgedCase(form, found, ended=log.ended, failed="" if found else failed, cheats=log.cheats)
        for form, found in zip(forms, calls, strict=False)
    ]


def _unknown(case: JudgedCase, why: str) -> JudgedCase:
    """The values of a case that ended well are not known, as its task says why."""
    return case if case.end or case.failed else replace(case, deferred=f"values are not known: {why}")


def _or_full(why: str) -> str:
    """Why a case has no values at positions, and what computes them all."""
    return why if "--full" in why else f"{why}; --full computes everything"


def _outputs(compared: Mapping[str, Any]) -> list[tuple[ComparedOutput, ...]]:
    """Of each case the outputs that the process of the task compared."""
    return [tuple(map(ComparedOutput.from_json, case)) for case in compared["outputs"]]


def _check(log: AnswerLog) -> None:
    """Raise `UsageError` where a call's log is none: everything in it is read later."""
    for call in (call for case in log.calls for call in case):
        CallEvidence.from_json(call.evidence)
        for op in call.host_ops:
            HostOp.from_json(op)


def _touches_inputs(case: JudgedCase) -> bool:
    """Whether the answer writes to inputs, or returns one: the task's Model may do so, too."""
    seen = [CallEvidence.from_json(call.evidence) for call in case.calls]
    return any(x.changed_inputs or any(t.of_input is not None for t in x.returned) for x in seen)


def _returned(case: JudgedCase) -> bool:
    return len(case.calls) == 2 and case.end is None and all(c.outputs is not None for c in case.calls)


def _failure(reply: Reply, limits: Limits) -> str:
    """Why it ended, without figures that differ from time to time."""
    if reply.status == "time":
        return f"the answer took more than {limits.cpu_s:g} s of processor time or {limits.wall_s:g} s"
    if reply.status == "memory":
        return f"the answer took more memory than {limits.memory_bytes} bytes"
    if "raised" in reply.answer:
        return f"the answer's process raised {reply.answer['raised']}: {reply.answer['message']}"
    return (
        "the answer's process ended without an answer"
        if reply.status == "crashed"
        else "the answer's process was killed"
    )
