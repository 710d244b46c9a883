"""Functions that run in processes of their own, with limits, without network, and with an empty folder for files."""

from .arrays import packed, unpacked
from .limits import Limits, Reply
from .pool import CancelledError, Pool, QueueFullError, Job
from .zygote import Cancellation, Zygote, ZygoteDiedError

__all__ = [
    "Cancellation",
    "CancelledError",
    "Limits",
    "Pool",
    "QueueFullError",
    "Reply",
    "Job",
    "Zygote",
    "ZygoteDiedError",
    "packed",
    "unpacked",
]
