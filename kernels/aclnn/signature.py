"""Types of the arguments of phase 1: what a C compiler would look at before any check of the operator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from .executor import aclOpExecutor
from .status import PARAM_INVALID, described, failed, is_flag, is_whole
from .tensor import aclBoolArray, aclIntArray, aclTensor

P = ParamSpec("P")
Answer = tuple[int, int, aclOpExecutor | None]
# Annotation of a parameter -> whether a value is of it, and what it must be.
KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "aclTensor | None": (lambda x: x is None or isinstance(x, aclTensor), "made by aclCreateTensor"),
    "aclIntArray | None": (lambda x: x is None or isinstance(x, aclIntArray), "made by aclCreateIntArray"),
    "aclBoolArray | None": (lambda x: x is None or isinstance(x, aclBoolArray), "made by aclCreateBoolArray"),
    "int": (is_whole, "a whole number"),
    "bool": (is_flag, "True or False"),
}


def as_in_c(api: str) -> Callable[[Callable[P, Answer]], Callable[P, Answer]]:
    """A phase 1 that gives 161002 for the first argument whose type is not that of its annotation."""

    def around(phase: Callable[P, Answer]) -> Callable[P, Answer]:
        kinds = {n: KINDS[str(t)] for n, t in phase.__annotations__.items() if n != "return"}
        shape = inspect.signature(phase)

        @wraps(phase)
        def checked(*args: P.args, **kwargs: P.kwargs) -> Answer:
            for name, x in shape.bind(*args, **kwargs).arguments.items():
                takes, rule = kinds[name]
                if not takes(x):
                    return (
                        failed(api, PARAM_INVALID, f"{name} is {described(x)}; it must be {rule}"),
                        0,
                        None,
                    )
            return phase(*args, **kwargs)

        return checked

    return around
