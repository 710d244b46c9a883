"""A sweep leaves out what only pages show; what it ranks by is the same."""

import ascendtile.simulator as sim
from ascendtile.kernels import run_op


def test_without_details_time_pipes_and_buffers_are_those_with_them():
    with sim.device("ascend910b3", timeline=0):
        whole = run_op("matmul", case="1024", values=False).launches[-1]
        with sim.device(details=False):
            brief = run_op("matmul", case="1024", values=False).launches[-1]
    for name in ("cycles", "time_us", "pipes", "buffers", "bounds", "resources", "warnings"):
        assert getattr(brief, name) == getattr(whole, name), name
    assert whole.lines
    assert whole.roofs
    assert whole.grades
    assert (brief.lines, brief.roofs, brief.grades) == ((), {}, {})
