"""Types of the arguments of phase 1: what a C compiler would look at before any check of the operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, ParamSpec

from .building import Answer, CheckedCall, Idle, Interface, first_phase
from .status import PARAM_INVALID, described, failed, is_flag, is_whole
from .tensor import aclBoolArray, aclIntArray, aclTensor

P = ParamSpec("P")
# Annotation of a parameter -> whether a value is of it, and what it must be.
KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "aclTensor | None": (lambda x: x is None or isinstance(x, aclTensor), "made by aclCreateTensor"),
    "aclIntArray | None": (lambda x: x is None or isinstance(x, aclIntArray), "made by aclCreateIntArray"),
    "aclBoolArray | None": (lambda x: x is None or isinstance(x, aclBoolArray), "made by aclCreateBoolArray"),
    "int": (is_whole, "a whole number"),
    "bool": (is_flag, "True or False"),
}


def phase_one(
    interface: Interface,
    within: Callable[[Mapping[str, Any]], AbstractContextManager[object]] = lambda given: nullcontext(),
) -> Callable[[Callable[P, CheckedCall | Idle]], Callable[P, Answer]]:
    """Phase 1 of an interface, made of the function that checks its arguments: it gives (status, workspace size, executor).

    161002 for the first argument whose type is not that of its annotation. within: what arguments decide for the device.
    """

    def around(prepare: Callable[P, CheckedCall | Idle]) -> Callable[P, Answer]:
        kinds = {n: KINDS[str(t)] for n, t in prepare.__annotations__.items() if n != "return"}
        shape = inspect.signature(prepare)

        @wraps(prepare)
        def phase(*args: P.args, **kwargs: P.kwargs) -> Answer:
            given = shape.bind(*args, **kwargs).arguments
            for name, x in given.items():
                takes, rule = kinds[name]
                if not takes(x):
                    message = f"{name} is {described(x)}; it must be {rule}"
                    return failed(interface.api, PARAM_INVALID, message), 0, None
            with within(given):
                return first_phase(interface, lambda: prepare(*args, **kwargs))

        phase.__signature__ = shape.replace(return_annotation="Answer")  # type: ignore[attr-defined]
        return phase

    return around
