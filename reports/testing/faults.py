"""`assert_no_faults`: nothing in a run is wrong or undefined on the device."""

from __future__ import annotations

from ...simulator.errors import UsageError
from ..facts.texts import clean
from .runs import one_run

__tracebackhide__ = True  # pytest shows the line of the test
NAME = "assert_no_faults"
MOST_SHOWN = 20


def assert_no_faults(run: object) -> None:
    """Fail if `run` has faults: what is wrong or undefined on the device, whatever was computed here.

    Faults are found where values are computed. Those that take time to look for (races, reads of what nobody wrote, flags
    that are missing) are looked for where the launch is made with every check: `with sim.device(check=True):`.

    Args:
        run: a `Run`, an `OpResult`, or a list of them.

    Raises:
        AssertionError: the text has every fault with its line.
        UsageError: a run was made for time only, so that nobody looked.
    """
    whole = one_run(run, NAME, timed=False)
    if whole.faults:
        shown = [f"  {clean(str(m))}" for m in whole.faults[:MOST_SHOWN]]
        more = len(whole.faults) - MOST_SHOWN
        count = f"{len(whole.faults)} fault{'s' * (len(whole.faults) > 1)}"
        raise AssertionError(
            "\n".join(
                [
                    f"{whole.name} has {count}, wrong or undefined on the device:",
                    *shown,
                    *([f"  and {more} more"] if more > 0 else []),
                ]
            )
        )
    if whole.values_seconds is None:
        raise UsageError(
            f"{NAME}: {clean(whole.name, 60)} was run for time only, faults show where values are computed; launch it with "
            "values"
        )
