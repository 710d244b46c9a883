"""The page of one run, read from top to bottom in half a minute. A sample:

    rms_norm_grad  llama3-8b  float16
    device  Ascend 910B3 (ascend910b3)
    tiling  strategy=full_row  rows=1  cols=4096  cores=40  combine=atomic
            buffers=2
    time    40.5 us [37.8 .. 48.7]: 63,422 cycles at 1800 MHz + 5.25 us launch
            overhead
    bound   HBM bandwidth allows 29.2 us; the run reaches 72 % of it
    figures 85 % measured, 14 % assumed
    held by Vector unit (AIV.V): 14 % less time without it; launch overhead 13 %;
            waiting for a free buffer 4 %
    try     no change of one knob is faster; 4 were timed
    work    41 programs in 2 launches, 53,410 instructions

    launches                       grid                    us       cycles    cores
    zero_fill                      (1, 1, 1)            0.706          371        1
    full_row                       (40, 1, 1)            39.8       63,051       40

    lower bounds                               us   of run
    HBM bandwidth                            29.2     72 % ██████████████░░░░░░
    Vector unit (AIV.V)                      27.6     68 % ██████████████░░░░░░
    L2 bandwidth                             6.61     16 % ███░░░░░░░░░░░░░░░░░
    launch overhead                          5.25     13 % ███░░░░░░░░░░░░░░░░░
    loading (AIV.MTE2)                       4.34     11 % ██░░░░░░░░░░░░░░░░░░
    storing (AIV.MTE3)                       2.35      6 % █░░░░░░░░░░░░░░░░░░░
      1 more, none above 0.149 us

    pipes          busy cycles  share                      waits most for
    AIV.MTE2            51,460   81 % ████████████████░░░░ shared bandwidth (69 %)
    AIV.V               48,986   77 % ███████████████░░░░░ data (15 %)
    AIV.MTE3            34,131   54 % ███████████░░░░░░░░░ shared bandwidth (47 %)
    AIV.S                  265    0 % ░░░░░░░░░░░░░░░░░░░░ the scalar issue (90 %)

    buffers at their peak                     KiB       of
    UB  75 %                                144.1    192.0 ███████████████░░░░░
      gamma  4096 fp32                       16.0          rms_norm_grad_tiles.py:54
      dgamma  4096 fp32                      16.0          rms_norm_grad_tiles.py:67
      load for x  1x4096 fp16                16.0 2 copies rms_norm_grad_tiles.py:61
      xh  1x4096 fp32                        16.0          rms_norm_grad_tiles.py:63
      load for dy  1x4096 fp16               16.0 2 copies rms_norm_grad_tiles.py:62
      and 5 smaller

    error against float64    max abs   max rel  mean rel      rmse   max ulp   bits
    dx                      1.95e-03  1.42e-01  1.76e-04  2.09e-04     0.596   12.5
    dgamma                  3.83e-05  4.62e-04  1.05e-06  8.07e-06  6.08e+03   22.5

    the lines that cost most
      70 %     44,440 cycles  rms_norm_grad_tiles.py:70
            tl.store(dx_ptr + offsets, dx.to(dx_ptr.dtype.element_ty), mask=alive)
      23 %     14,618 cycles  rms_norm_grad_tiles.py:69
            dx = (t - xh * c[:, None]) * rstd
       1 %        650 cycles  rms_norm_grad_tiles.py:74
            tl.atomic_add(dgamma_ptr + cols, dgamma)

    keep    run.save("x.run") or --save x.run; then: ascendtile report x.run

How to read it: the times in brackets are those of the fast and the slow ends of what was published about the product, and
`figures` says what the time rests on; `bound` names the limit that no schedule can beat and how near the run comes to it;
`held by` is found by timing the run again without one limit at a time, `try` with one knob changed at a time;
`lower bounds` are all such limits; a pipe that is busy most of the time is the one to relieve, `waits most for` says what
holds up the others.
A page is at most 80 columns wide. `sections.py` makes its parts.
"""

from __future__ import annotations

import io

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ascendtile.reports import sections
from ascendtile.reports.console import PAGE_WIDTH
from ascendtile.simulator.run import Run


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
