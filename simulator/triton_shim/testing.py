"""`triton.testing`: benchmarks in simulated time, their tables and plots, comparison of tensors."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..device import current_device
from ..errors import UsageError
from ..l2.chain import chain
from ..observers import watch

if TYPE_CHECKING:
    from ..record.run import Run

NOTHING = "do_bench: nothing was launched, so there is no simulated time (host code and torch are not simulated): nan"


def do_bench(
    fn: Callable[[], Any],
    warmup: int = 25,
    rep: int = 100,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    **_: Any,
) -> Any:
    """Simulated milliseconds of the launches that `fn()` makes; it is called once, since every call takes the same time.

    Triton clears L2 before each call: the first launch finds nothing there, unless the device says otherwise.

    quantiles: as many numbers, all alike. return_mode: "mean", "median", "min", "max", or "all" for a list. A function that
    launches nothing has no simulated time: nan, and a message on standard error.
    """
    if return_mode not in ("min", "max", "mean", "median", "all"):
        raise UsageError(f"return_mode is min, max, mean, median or all, got {return_mode!r}")
    for x in grad_to_none or ():
        x.grad = None
    milliseconds = _milliseconds(fn, cold=True)
    if quantiles is not None:
        return milliseconds if len(quantiles) == 1 else [milliseconds] * len(quantiles)
    return [milliseconds] if return_mode == "all" else milliseconds


def _milliseconds(fn: Callable[[], Any], cold: bool) -> float:
    runs: list[float] = []

    def tell(run: Run) -> None:
        if not run.launches:
            raise UsageError("do_bench needs simulated time, but the device is set to values only")
        runs.append(run.time_us)

    with watch(tell), chain(cold):
        fn()
    if not runs:
        _say_once(NOTHING)
        return float("nan")
    return sum(runs) / 1000


@functools.cache
def _say_once(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def do_bench_npu(
    funcs: Any,
    warmup: int = 5,
    active: int = 30,
    clear_l2_cache: bool = False,
    prof_dir: str | None = None,
    keep_res: bool = False,
) -> Any:
    """Triton-Ascend's `do_bench_npu`: simulated milliseconds of one function, or a list of them for a list.

    Each is called once, whatever warmup and active say, with an empty L2 if `clear_l2_cache`, else as in a loop. With
    `keep_res` the table of launches (`kernel_details.csv`) is left in `prof_dir`.
    """
    from .profiler.profiler import profile, tensorboard_trace_handler

    handler = tensorboard_trace_handler(prof_dir) if keep_res else None
    with profile(on_trace_ready=handler):
        found = [_milliseconds(f, clear_l2_cache) for f in (funcs if isinstance(funcs, list) else [funcs])]
    return found if isinstance(funcs, list) and len(found) > 1 else found[0]


def assert_close(x: Any, y: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Raise `AssertionError` if x and y differ by more than the tolerances; without, 1e-2 and 0 as Triton has it.

    Tolerances may be functions of the element type.
    """
    a, b = _float_array(x), _float_array(y)
    dtype = getattr(x, "dtype", None)
    absolute, relative = _tolerance(atol, dtype, 1e-2), _tolerance(rtol, dtype, 0.0)
    np.testing.assert_allclose(a, b, atol=absolute, rtol=relative, equal_nan=True, err_msg=err_msg)


def _tolerance(given: Any, dtype: Any, otherwise: float) -> float:
    return float(given(dtype) if callable(given) else otherwise if given is None else given)


def _float_array(x: Any) -> np.ndarray:
    if hasattr(x, "detach"):  # torch
        x = x.detach().double().numpy() if x.is_floating_point() else x.numpy()
    return np.asarray(x, dtype=None if np.asarray(x).dtype.kind in "iub" else np.float64)


@dataclass
class Benchmark:
    """What a benchmark runs over and how it is drawn: names, values and lines, as `triton.testing.Benchmark`."""

    x_names: Sequence[str]
    x_vals: Sequence[Any]
    line_arg: str
    line_vals: Sequence[Any]
    line_names: Sequence[str]
    plot_name: str
    args: dict[str, Any] = field(default_factory=dict)
    xlabel: str = ""
    ylabel: str = ""
    x_log: bool = False
    y_log: bool = False
    styles: Sequence[tuple[str, str]] | None = None


@dataclass
class Mark:
    """A function with its benchmarks."""

    fn: Callable[..., Any]
    benchmarks: Benchmark | Sequence[Benchmark]

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str | os.PathLike[str] = "",
        return_df: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Run them. print_data: a table on standard output. save_path: a folder for one .csv and one .png each.

        return_df: pandas data frames where pandas is installed. Plots are never shown, only saved.
        """
        one = isinstance(self.benchmarks, Benchmark)
        benchmarks = [self.benchmarks] if isinstance(self.benchmarks, Benchmark) else list(self.benchmarks)
        if show_plots:
            sys.stderr.write("plots are saved (save_path=...), not shown\n")
        frames = [_run(self.fn, b, print_data, save_path, return_df, kwargs) for b in benchmarks]
        return (frames[0] if one else frames) if return_df else None


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., Any]], Mark]:
    """`triton.testing.perf_report`: mark a function with its benchmarks."""
    return lambda fn: Mark(fn, benchmarks)


def _run(
    fn: Callable[..., Any],
    b: Benchmark,
    print_data: bool,
    save_path: str | os.PathLike[str],
    return_df: bool,
    kwargs: dict[str, Any],
) -> Any:
    header = [*b.x_names, *(f"{n} ({b.ylabel})" if b.ylabel else n for n in b.line_names)]
    rows = [[*x, *(_measure(fn, b, x, y, kwargs) for y in b.line_vals)] for x in map(_tuple(b), b.x_vals)]
    if print_data:
        sys.stdout.write(f"{b.plot_name}:\n{_table(header, rows)}\n")
    if save_path:
        _save(b, header, rows, Path(save_path))
    return _frame(header, rows) if return_df else None


def _tuple(b: Benchmark) -> Callable[[Any], tuple[Any, ...]]:
    """A value of x for every name of x."""
    return lambda x: tuple(x) if isinstance(x, tuple | list) else (x,) * len(b.x_names)


def _measure(fn: Callable[..., Any], b: Benchmark, x: tuple[Any, ...], y: Any, kwargs: dict[str, Any]) -> Any:
    """What the function gives for one point; of (value, low, high) the value."""
    given = dict(zip(b.x_names, x, strict=True))
    found = fn(**given, **{b.line_arg: y}, **b.args, **kwargs)
    return found[0] if isinstance(found, tuple | list) else found


def _table(header: list[str], rows: list[list[Any]]) -> str:
    cells = [header, *([f"{x:.6g}" if isinstance(x, float) else str(x) for x in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    return "\n".join("  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in cells)


def _save(b: Benchmark, header: list[str], rows: list[list[Any]], folder: Path) -> None:
    import csv

    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{b.plot_name}.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    for i, name in enumerate(b.line_names):
        color, style = b.styles[i] if b.styles else (None, "-")
        x = [row[0] for row in rows]
        axes.plot(x, [row[len(b.x_names) + i] for row in rows], label=name, color=color, linestyle=style)
    axes.set(xlabel=b.xlabel or b.x_names[0], ylabel=b.ylabel, title=b.plot_name)
    axes.set_xscale("log" if b.x_log else "linear")
    axes.set_yscale("log" if b.y_log else "linear")
    axes.legend()
    figure.savefig(folder / f"{b.plot_name}.png")


def _frame(header: list[str], rows: list[list[Any]]) -> Any:
    try:
        import pandas
    except ModuleNotFoundError:
        raise UsageError("return_df=True needs pandas, which is not installed; use print_data=True") from None
    return pandas.DataFrame(rows, columns=header)


def get_dram_gbps(device: Any = None) -> float:
    """Bandwidth of the product's HBM in GB/s."""
    return current_device().product.number("memory.bandwidth_tb_per_s") * 1000


NAMES = {
    "Benchmark": Benchmark,
    "Mark": Mark,
    "assert_close": assert_close,
    "do_bench": do_bench,
    "do_bench_cudagraph": do_bench,
    "do_bench_npu": do_bench_npu,
    "get_dram_gbps": get_dram_gbps,
    "perf_report": perf_report,
}
