from typing import Any, Final

import numpy as np
import numpy.typing as npt

MAX_PIPES: Final[int]
MAX_UNITS: Final[int]
MAX_CHANNELS: Final[int]
MAX_RESOURCES: Final[int]
MEETINGS: Final[int]

_Rows = npt.NDArray[Any]
_Floats = npt.NDArray[np.float64]

def run(
    pipes: _Rows,
    units: int,
    channels: _Rows,
    capacity: _Floats,
    dispatch: float,
    cross: float,
    issue: float,
    expected: npt.NDArray[np.int64],
    records: _Rows,
    deps: npt.NDArray[np.int32],
    table: _Floats,
    programs: _Rows,
    runs: _Rows,
    order: npt.NDArray[np.int32],
    keep: npt.NDArray[np.int64],
    kept: _Floats,
    queue_times: _Floats,
    queue_records: npt.NDArray[np.int32],
    core_cycles: _Floats,
    core_dispatch: _Floats,
    core_programs: npt.NDArray[np.int64],
    busy: _Floats,
    stalls: _Floats,
    line_busy: _Floats,
    line_stalls: _Floats,
    line_exposed: _Floats,
    channel_bytes: _Floats,
    spans: _Rows,
    timeline: _Rows,
    timeline_until: _Floats,
    counters: npt.NDArray[np.int64],
    by_line: bool,
) -> tuple[int, int, int] | None: ...
