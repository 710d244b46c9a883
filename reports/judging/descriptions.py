"""What tasks are like, kept in the pool for the next answers to them.

It hangs on the task alone where its inputs are made without random numbers (on meta tensors none are drawn), and else on the
seed, too, which is another for every answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from .processes.limits import Limits
from .processes.pool import Job
from .tasks.files import TaskFile


def description(
    job: Job, task: TaskFile, limits: Limits, seed: int, describe: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """What `tasks.describing.described` says of a task: from the pool of this job, or by `describe()`."""
    alone, seeded = (_key(task, limits, hangs_on) for hangs_on in (None, seed))
    found = job.recalled(alone) or job.recalled(seeded)
    if found is None:
        found = describe()
        job.keep(seeded if found["seeded"] else alone, found)
    return found


def _key(task: TaskFile, limits: Limits, seed: int | None) -> str:
    text = json.dumps([task.to_request(), limits.to_json(), seed], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
