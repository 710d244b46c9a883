"""Why the loading or a call of an answer ended early, in the words of its log."""

from __future__ import annotations

from typing import Any

from ....simulator.errors import BufferOverflowError, CompileError, NeedsDataError
from ..answer_log import FIT, KERNEL, NEEDS_VALUES, RAISED, Ended

MOST_LETTERS = 4000


def ended(error: BaseException, files: tuple[str, ...], otherwise: str = RAISED) -> Ended:
    """What ended it: a buffer that overflows and a kernel that does not compile say so, also behind other exceptions."""
    kinds = {BufferOverflowError: FIT, CompileError: KERNEL, NeedsDataError: NEEDS_VALUES}
    chain = list(_chain(error))
    known = next(((x, reason) for x in chain for kind, reason in kinds.items() if isinstance(x, kind)), None)
    cause, reason = known or (error, otherwise)
    lines = [line for x in chain if (line := _line(x, files)) is not None]
    return Ended(
        reason=reason,
        name=f"{type(cause).__module__}.{type(cause).__qualname__}",
        text=str(cause)[:MOST_LETTERS],
        line=lines[0] if lines else None,
        **_overflow(cause),
    )


def _overflow(cause: BaseException) -> dict[str, Any]:
    """Buffer and sizes of one that overflows."""
    if not isinstance(cause, BufferOverflowError):
        return {}
    return {"space": cause.space, "need_bytes": cause.need_bytes, "have_bytes": cause.have_bytes}


def _chain(error: BaseException | None) -> list[BaseException]:
    """An exception and those that it was raised from."""
    out: list[BaseException] = []
    while error is not None and error not in out:
        out.append(error)
        error = error.__cause__
    return out


def _line(error: BaseException, files: tuple[str, ...]) -> int | None:
    """The innermost line of the answer that it passed."""
    trace, line = error.__traceback__, None
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename in files else line
        trace = trace.tb_next
    return line
