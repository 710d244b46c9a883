"""What a verdict says for the next step: how far its time can be trusted, and what to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .assembling import launches_of
from .judged_case import JudgedCase
from .pricing.confidence import confidence
from .pricing.floors import nbytes
from .pricing.suggestion import suggestion
from .verdict import Verdict


def advised(verdict: Verdict, cases: Sequence[JudgedCase]) -> Verdict:
    """The verdict with confidence and suggestion."""
    logs = sorted(launches_of(cases), key=lambda x: -x.time_us)
    level, reason = confidence(logs if verdict.time_us is not None else ())
    told = replace(verdict, confidence=level, confidence_reason=reason)
    return replace(told, suggestion=suggestion(told, logs, _needed_bytes(cases)))


def _needed_bytes(cases: Sequence[JudgedCase]) -> int | None:
    """Of inputs and outputs of all cases, once each; None where a task does not say them."""
    if any(case.form.outputs is None for case in cases):
        return None
    tensors = [t for case in cases for t in (*case.form.inputs, *(case.form.outputs or ())) if t is not None]
    return sum(map(nbytes, tensors))
