"""`torch_npu.profiler`: the launches of a block with their simulated times, in the file that the vendor's tools read.

`tensorboard_trace_handler(folder)` writes `<worker>_<pid>_<time>_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv`, one
row a launch, with the columns of torch_npu's own file (its `_csv_headers.py`) and those of the metric PipeUtilization. What
torch itself computes takes no simulated time and has no row. What the model does not have (waiting time before a launch,
misses of the instruction cache) is "N/A".
"""

from __future__ import annotations

import csv
import json
import os
import socket
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import UsageError
from ...observers import watch
from ...record.files import picked
from ..torch_npu.clock import CLOCK
from . import choices
from .launch_columns import ABSENT, INPUTS, OUTPUTS, core_type, shape_columns, unit_columns

if TYPE_CHECKING:
    from ...record.run import Launch, Run

OUTPUT = "ASCEND_PROFILER_OUTPUT"
KERNELS = "kernel_details.csv"
BASE = (
    "Device_id", "Name", "Type", "Accelerator Core", "Start Time(us)", "Duration(us)", "Wait Time(us)",
    "Block Num",
)  # fmt: skip
UNTIMED = "the profiler needs simulated time, but the device is set to values only: run without --no-time"


class ProfilerActivity(Enum):
    """What to record: rows are of NPU; the host's side (CPU) is not simulated."""

    CPU = 0
    NPU = 1


@dataclass(frozen=True)
class LaunchRow:
    """One launch: its step, its beginning in us since the shim was installed, and the columns behind the base."""

    step: int
    kernel: str
    start_us: float
    time_us: float
    core: str
    programs: int
    shapes: dict[str, str]
    pipes: dict[str, Any]


def _row(step: int, start_us: float, launch: Launch) -> LaunchRow:
    shapes = shape_columns(launch.arguments, launch.directions)
    pipes = {**unit_columns(launch, "aic"), **unit_columns(launch, "aiv")}
    head = (step, launch.kernel, start_us, launch.time_us, core_type(launch), launch.programs)
    return LaunchRow(*head, shapes, pipes)


class profile:
    """`with torch_npu.profiler.profile(schedule=..., on_trace_ready=...) as prof:` records launches.

    `prof.step()` ends a step; without a schedule all launches are recorded. `on_trace_ready(prof)` is called after each
    cycle of the schedule and at the end; `prof.rows` has the launches then. The other options concern what is not
    simulated, or columns that are there anyway. `UsageError` where the device computes values only.
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], Any] | None = None,
        on_trace_ready: Callable[[Any], Any] | None = None,
        experimental_config: Any = None,
        **options: Any,
    ) -> None:
        known = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules", "use_cuda")
        more = ("execution_trace_observer", "custom_trace_id_callback")
        wrong = sorted(set(options) - {*known, *more})
        if wrong:
            raise UsageError(
                f"torch_npu.profiler.profile has no option {wrong[0]!r}; it has {', '.join(known)}"
            )
        self.activities = list(activities or ProfilerActivity)
        self.schedule = schedule or (lambda step: choices.ProfilerAction.RECORD)
        self.has_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.experimental_config = experimental_config
        self.metadata: dict[str, Any] = {}
        self.rows: list[LaunchRow] = []
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._watching: AbstractContextManager[None] | None = None
        self._end_us = 0.0

    def start(self) -> None:
        """Begin to record."""
        self._watching = watch(self._tell)
        self._watching.__enter__()

    def stop(self) -> None:
        """End, and hand over what was recorded since the last time."""
        if self._watching is None:
            return
        self._watching.__exit__(None, None, None)
        self._watching = None
        if self.rows:
            self._ready()

    def step(self) -> None:
        """The next step begins."""
        done = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if done.name == "RECORD_AND_SAVE":
            self._ready()

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def _tell(self, run: Run) -> None:
        if not self.current_action.name.startswith("RECORD"):
            return
        if not run.launches:
            raise UsageError(UNTIMED)
        start = max(self._end_us, CLOCK.now_us - run.time_us)  # the clock was told before, if torch is there
        for launch in run.launches:
            self.rows.append(_row(self.step_num, start, launch))
            start += launch.time_us
        self._end_us = start

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)
        self.rows = []

    # -- what is made of it ------------------------------------------------------------------------------------------

    def add_metadata(self, key: str, value: str) -> None:
        """A text that is kept beside the table."""
        self.metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """A JSON text that is kept beside the table."""
        self.metadata[key] = json.loads(value)

    def export_chrome_trace(self, output_path: str) -> None:
        """The recorded launches as a trace for chrome://tracing or Perfetto; call it before the profiler stops."""
        events = [
            {"name": r.kernel, "ph": "X", "pid": "NPU", "tid": "launches", "ts": r.start_us, "dur": r.time_us}
            for r in self.rows
        ]
        Path(output_path).write_text(json.dumps({"traceEvents": events}), encoding="utf-8")

    def export_stacks(self, *_: Any, **__: Any) -> None:
        raise UsageError("export_stacks: the host's side is not simulated; use export_chrome_trace")

    def export_memory_timeline(self, *_: Any, **__: Any) -> None:
        raise UsageError(
            "export_memory_timeline: memory of the device is the CPU's here; use export_chrome_trace"
        )

    def write_kernels(self, folder: str | os.PathLike[str]) -> Path:
        """Write kernel_details.csv into `folder`; gives its path."""
        path = Path(folder) / KERNELS
        columns = ("Step Id",) * self.has_steps + (*BASE, *INPUTS, *OUTPUTS)
        metrics = list(self.rows[0].pipes) if self.rows else []
        with open(path, "w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow([*columns, *metrics])
            out.writerows([*self._cells(r), *map(_number, r.pipes.values())] for r in self.rows)
        return path

    def _cells(self, row: LaunchRow) -> list[Any]:
        start, duration = _number(row.start_us), _number(row.time_us)
        base = [0, row.kernel, row.kernel, row.core, start, duration, ABSENT, row.programs]
        return [*([row.step] if self.has_steps else []), *base, *row.shapes.values()]


def _number(x: Any) -> Any:
    return f"{x:.6g}" if isinstance(x, float) else x


def tensorboard_trace_handler(
    dir_name: str | None = None,
    worker_name: str | None = None,
    analyse_flag: bool = True,
    async_mode: bool = False,
) -> Callable[[profile], None]:
    """What writes the table into a folder of its own below `dir_name` (the current folder); says where on standard error."""
    worker = f"{worker_name or socket.gethostname()}_{os.getpid()}"

    def handle(found: profile) -> None:
        stamp = datetime.now().astimezone().strftime("%Y%m%d%H%M%S%f")
        folder = Path(dir_name or os.curdir) / f"{worker}_{stamp}_ascend_pt" / OUTPUT
        folder.mkdir(parents=True, exist_ok=True)
        path = found.write_kernels(folder)
        if found.metadata:
            text = json.dumps(found.metadata, indent=2)
            (folder.parent / "profiler_metadata.json").write_text(text, encoding="utf-8")
        sys.stderr.write(f"profiler: {len(found.rows)} launches with simulated times in {path}\n")

    return handle


def supported_activities() -> set[ProfilerActivity]:
    """Both; rows are of NPU."""
    return set(ProfilerActivity)


NAMES = {
    **picked(choices, "AiCMetrics ExportType HostSystem ProfilerAction ProfilerLevel"),
    "ProfilerActivity": ProfilerActivity,
    "_ExperimentalConfig": choices.ExperimentalConfig,
    "profile": profile,
    "schedule": choices.Schedule,
    "supported_activities": supported_activities,
    "tensorboard_trace_handler": tensorboard_trace_handler,
}
