"""Views of the demo: a run in a few lines, and the table of all runs. A sample:

rms_norm_grad  llama3-8b  float16
time    40.5 us, 63,422 cycles
bound   HBM bandwidth allows 29.2 us; the run reaches 72 % of it
pipes   AIV.MTE2 81 %  AIV.V 77 %  AIV.MTE3 54 %  AIV.S 0 %
UB      144.1 of 192.0 KiB (75 %)

error against float64    max abs   max rel  mean rel      rmse   max ulp   bits
dx                      1.95e-03  1.42e-01  1.76e-04  2.09e-04     0.596   12.5
dgamma                  3.83e-05  4.62e-04  1.05e-06  8.07e-06  6.08e+03   22.5

the lines that cost most
  70 %     44,440 cycles  tiles.py:70
        tl.store(dx_ptr + offsets, dx.to(dx_ptr.dtype.element_ty), mask=alive)
  23 %     14,618 cycles  tiles.py:69
        dx = (t - xh * c[:, None]) * rstd
   1 %        650 cycles  tiles.py:74
        tl.atomic_add(dgamma_ptr + cols, dgamma)
open    ascendtile report ascendtile-demo/rms_norm_grad-llama3-8b-float16.run

summary
op                        dtype          us    cycles          bound    UB  bits
rms_norm_grad             float16      40.5    63,422       HBM 72 %  75 %  12.5
rms_norm_grad             bfloat16     40.5    63,417       HBM 72 %  75 %  9.47
rms_norm_grad             float32      64.0   105,683       HBM 91 %  92 %  22.4
bce_with_logits_backward  float16       124   215,396       HBM 94 % 100 %  12.5
bound: what binds, and how near it is; bits: effective bits of the worst output
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ...simulator.record.run import Run
from ..facts import facts, words
from ..facts.words import clean
from . import sections


def compact(run: Run, record: str) -> RenderableType:
    """The page of a run in a few lines."""
    bound = facts.binding(run)
    pipes = sorted(run.pipes.items(), key=lambda item: -item[1].busy_cycles)
    shares = "  ".join(f"{name} {words.percent(pipe.share)}" for name, pipe in pipes if pipe.busy_cycles > 0)
    ub = run.buffers.get("UB")
    rows = [
        sections.title_line(run),
        sections.fact("time", f"{words.micros(run.time_us)} us, {words.count(run.cycles)} cycles"),
        sections.fact("bound", sections.bound_words(bound) if bound else "none"),
        sections.fact("pipes", shares or "none used"),
        sections.fact("UB", ub_words(ub.peak_bytes, ub.capacity_bytes) if ub else "not used"),
        *sections.errors(run),
        *sections.lines(run),
        *sections.opening(record),
    ]
    return Group(*rows)


def ub_words(peak: int, capacity: int) -> str:
    """172.0 of 192.0 KiB (90 %)"""
    return f"{words.kib(peak)} of {words.kib(capacity)} KiB ({words.percent(facts.share(peak, capacity))})"


def summary(runs: Sequence[Run]) -> RenderableType:
    """All runs, a row each."""
    table = sections.make_table(
        ("op", 25), ("dtype", 9), (">us", 7), (">cycles", 9), (">bound", 14), (">UB", 5), (">bits", 5)
    )
    for run in runs:
        sections.add_row(table, *_cells(run))
    legend = "bound: what binds, and how near it is; bits: effective bits of the worst output"
    return Group(Text("summary", style="bold"), table, Text(legend, style="dim"))


def _cells(run: Run) -> tuple[str, ...]:
    bound = facts.binding(run)
    ub = run.buffers.get("UB")
    bits = min((e.effective_bits for e in run.errors.values()), default=None)
    return (
        clean(run.op or run.name),
        run.dtype or "",
        words.micros(run.time_us),
        words.count(run.cycles),
        f"{bound.name} {words.percent(bound.fraction)}" if bound else "",
        words.percent(facts.share(ub.peak_bytes, ub.capacity_bytes)) if ub else "",
        "" if bits is None else words.figure(bits),
    )
