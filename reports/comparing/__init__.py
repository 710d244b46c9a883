"""Two things side by side: two runs (`runs`), or a run and what a profiler measured (`profile`).

    from . import compare_runs
    d = compare_runs(before, after)  # print(d), d.html("d.html"), d.csv("d.csv"); a notebook shows it

`profile_view` shows a profile in the terminal and as plain data, `table` is two runs as CSV.
"""

from .runs import compare_runs

__all__ = ["compare_runs"]


def __dir__() -> list[str]:
    return __all__
