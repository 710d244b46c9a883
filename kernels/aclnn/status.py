"""Status codes of the interface, the text of the last refusal, and names of the interface in messages.

Codes: hicann/opbase, include/nnopbase/opdev/op_errno.h; docs/zh/context/aclnn_return_code.md of hicann/ops-nn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import numpy as np

SUCCESS = 0
PARAM_NULLPTR = 161001
PARAM_INVALID = 161002
RUNTIME_ERROR = 361001
INNER = 561000
INNER_TILING_ERROR = 561002
INNER_FIND_KERNEL_ERROR = 561003
INNER_NULLPTR = 561103

NAMES = {
    SUCCESS: "ACLNN_SUCCESS",
    PARAM_NULLPTR: "ACLNN_ERR_PARAM_NULLPTR",
    PARAM_INVALID: "ACLNN_ERR_PARAM_INVALID",
    RUNTIME_ERROR: "ACLNN_ERR_RUNTIME_ERROR",
    INNER: "ACLNN_ERR_INNER",
    INNER_TILING_ERROR: "ACLNN_ERR_INNER_TILING_ERROR",
    INNER_FIND_KERNEL_ERROR: "ACLNN_ERR_INNER_FIND_KERNEL_ERROR",
    INNER_NULLPTR: "ACLNN_ERR_INNER_NULLPTR",
}

_recent: ContextVar[str] = ContextVar("aclnn_recent_message", default="")


class Refused(Exception):
    """A check that failed: its status and a message that names the parameter, the rule and both values."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def failed(api: str, status: int, message: str) -> int:
    """Keep the message for `aclGetRecentErrMsg`, with the name of the function once; gives the status."""
    _recent.set(f"{api}: {message.removeprefix(f'{api} ')} [{status} {NAMES[status]}]")
    return status


def aclGetRecentErrMsg() -> str:
    """The text of the last call that failed, empty if there is none; reading it clears it."""
    text = _recent.get()
    _recent.set("")
    return text


def translated(message: str, names: Mapping[str, str]) -> str:
    """A message of the Python face in the names of the C interface: `names` gives its parameters by ours."""
    text = re.sub(r"^[a-z_]*: ", "", message)
    pattern = re.compile(r"(?<![\w'])(" + "|".join(map(re.escape, names)) + r")(?!\w|'(?!s\b))")
    return pattern.sub(lambda found: names[found[0]], text)


def is_whole(x: Any) -> bool:
    """Whether C would take it as an integer without a change: 2, True, numpy's integers; not 2.0."""
    return isinstance(x, bool | int | np.integer | np.bool_)


def is_flag(x: Any) -> bool:
    """Whether it is a bool of C: True, False, 1 or 0."""
    return is_whole(x) and x in (0, 1)


def described(x: Any) -> str:
    """A value in a message: its text where it is short, else its type."""
    if x is None:
        return "null"
    if isinstance(x, bool | int | float | str | np.generic):
        return repr(x.item() if isinstance(x, np.generic) else x)
    return f"of the Python type {type(x).__name__}"
