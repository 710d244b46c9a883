"""The page of one run, read from top to bottom in half a minute. A sample:

    rms_norm_grad  llama3-8b  float16
    device  Ascend 910B3 (ascend910b3)
    tiling  strategy=full_row  rows=1  cols=4096  cores=40  combine=atomic
            buffers=2
    time    52.6 us [49.5 .. 57.0]: 82,689 cycles at 1800 MHz + 6.65 us launch
            overhead
    bound   Vector unit (AIV.V) allows 39.1 us; the run reaches 74 % of it
    figures 84 % measured, 15 % assumed
    held by Vector unit (AIV.V): 40 % less time without it; launch overhead 13 %;
            waiting for a free buffer 1 %
    try     no change of one knob is faster; 4 were timed
    work    41 programs in 2 launches, 53,410 instructions

    launches                       grid                    us       cycles    cores
    zero_fill                      (1, 1, 1)             1.43          414        1
    full_row                       (40, 1, 1)            51.2       82,275       40

    lower bounds                               us   of run
    Vector unit (AIV.V)                      39.1     74 % ███████████████░░░░░
    HBM bandwidth                            23.1     44 % █████████░░░░░░░░░░░
    loading (AIV.MTE2)                       11.4     22 % ████░░░░░░░░░░░░░░░░
    L2 bandwidth                             8.80     17 % ███░░░░░░░░░░░░░░░░░
    launch overhead                          6.65     13 % ███░░░░░░░░░░░░░░░░░
    storing (AIV.MTE3)                       2.93      6 % █░░░░░░░░░░░░░░░░░░░
      1 more, none above 0.122 us

    pipes          busy cycles  share                      waits most for
    AIV.V               69,320   84 % █████████████████░░░ data (12 %)
    AIV.MTE2            42,803   52 % ██████████░░░░░░░░░░ a free buffer (43 %)
      of which          22,715   27 % for shared bandwidth
    AIV.MTE3             7,100    9 % ██░░░░░░░░░░░░░░░░░░ data (90 %)
      of which           1,902    2 % for shared bandwidth
    AIV.S                  216    0 % ░░░░░░░░░░░░░░░░░░░░ the scalar issue (91 %)

    buffers at their peak                     KiB       of
    UB  75 %                                144.1    192.0 ███████████████░░░░░
      gamma  4096 fp32                       16.0          tiles.py:56
      dgamma  4096 fp32                      16.0          tiles.py:68
      load for x  1x4096 fp16                16.0 2 copies tiles.py:62
      xh  1x4096 fp32                        16.0          tiles.py:64
      load for dy  1x4096 fp16               16.0 2 copies tiles.py:63
      and 5 smaller

    error against float64    max abs   max rel  mean rel      rmse   max ulp   bits
    dx                      1.95e-03  1.42e-01  1.76e-04  2.09e-04     0.596   12.5
    dgamma                  3.83e-05  4.62e-04  1.05e-06  8.07e-06  6.08e+03   22.5

    the lines that cost most
      23 %     18,947 cycles  tiles.py:70
            dx = (t - xh * c[:, None]) * rstd
      16 %     13,069 cycles  tiles.py:22
            x = tl.sum(tl.reshape(x, (x.shape[0], x.shape[1] // 64, 64)), axis=1)
      14 %     11,726 cycles  tiles.py:63
            dy = tl.load(dy_ptr + at + tile, mask=alive, other=0.0).to(tl.float32)

    keep    run.save("x.run") or --save x.run; then: ascendtile report x.run

How to read it: the times in brackets are those of the fast and the slow ends of what was published about the product, and
`figures` says what the time rests on; `bound` names the limit that no schedule can beat and how near the run comes to it;
`held by` is found by timing the run again without one limit at a time, `try` with one knob changed at a time;
`lower bounds` are all such limits; a pipe that is busy most of the time is the one to relieve, `waits most for` says what
holds up the others; `of which` is the part of its busy time by which transfers took longer as they shared bandwidth.
A page is at most 80 columns wide. `sections.py` makes its parts.
"""

from __future__ import annotations

import io

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ...simulator.record.run import Run
from . import sections
from .console import PAGE_WIDTH


def run_report(run: Run, record: str | None = None) -> RenderableType:
    """The page. record: the file that holds the run, if it is saved."""
    parts = (
        sections.heading(run),
        sections.time(run),
        sections.launches(run),
        sections.bounds(run),
        sections.pipes(run),
        sections.buffers(run),
        sections.errors(run),
        sections.numerics(run),
        sections.lines(run),
        sections.remarks(run),
        [Text()],
        sections.opening(record),
    )
    return Group(*(block for part in parts for block in part))


class _Ascii(io.StringIO):
    """What is printed may go anywhere, so bars are # and dots."""

    encoding = "ascii"


def run_text(run: Run) -> str:
    """The page as plain text, at most 80 columns: what `print(run)` shows."""
    out = _Ascii()
    console = Console(
        file=out, width=PAGE_WIDTH, color_system=None, force_terminal=False, force_jupyter=False
    )
    console.print(run_report(run))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
