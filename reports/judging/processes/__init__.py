"""Functions that run in processes of their own, with limits, without network, and with an empty folder for files."""

from .arrays import packed, unpacked
from .limits import Limits, Reply
from .pool import CancelledError, Job, Pool, QueueFullError
from .zygote import Cancellation, NotStartedError, Zygote

__all__ = [
    "Cancellation",
    "CancelledError",
    "Job",
    "Limits",
    "NotStartedError",
    "Pool",
    "QueueFullError",
    "Reply",
    "Zygote",
    "packed",
    "unpacked",
]
