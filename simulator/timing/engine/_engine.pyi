from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascendtile.simulator.timing.engine._code import Code

MAX_PIPES: Final[int]
MAX_UNITS: Final[int]
MAX_CHANNELS: Final[int]
MAX_RESOURCES: Final[int]
SHARE_BITS: Final[int]
MAX_SHARES: Final[int]
BARRIERS: Final[int]

_Rows = npt.NDArray[Any]
_Floats = npt.NDArray[np.float64]

def run(
    pipes: _Rows,
    units: int,
    channels: _Rows,
    capacity: _Floats,
    dispatch: float,
    core_start: float,
    cross: float,
    issue: float,
    expected: npt.NDArray[np.int64],
    code: Code,
    queue_times: _Floats,
    queue_records: npt.NDArray[np.int32],
    core_cycles: _Floats,
    core_dispatch: _Floats,
    core_programs: npt.NDArray[np.int64],
    core_records: npt.NDArray[np.int64],
    busy: _Floats,
    stalls: _Floats,
    line_busy: _Floats,
    line_stalls: _Floats,
    line_exposed: _Floats,
    channel_bytes: _Floats,
    spans: _Rows,
    told: npt.NDArray[np.uint8],
    timeline: _Rows,
    timeline_until: _Floats,
    counters: npt.NDArray[np.int64],
    by_line: bool,
    buffers: bool,
) -> tuple[int, int, int] | None: ...
