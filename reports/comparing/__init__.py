"""Two things side by side: two runs, or a run and what a profiler measured (`profile`).

    from ascendtile.reports.comparing import compare_runs
    d = compare_runs(before, after)  # print(d), d.html("d.html"), d.csv("d.csv"); a notebook shows it

`profile` shows one in the terminal and as plain data, too; `table` is two runs as CSV.
"""

from ..facts.differences import RunDifference

__all__ = ["compare_runs"]

compare_runs = RunDifference.of


def __dir__() -> list[str]:
    return __all__
