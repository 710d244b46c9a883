"""Kernels in tests: asserts of time, fit, error and faults, a baseline that is committed, and what changed between commits.

    def test_double_takes_what_it_did():
        run = double.time((13,), sim.shape((100_000,), "float16"), sim.shape((100_000,), "float16"), 100_000, BLOCK=8192)
        assert_cycles(run)                    # as ascendtile-baseline.json has it: `pytest --ascendtile-update` writes it
        assert_cycles(run, max=2_000)         # or a limit of your own
        assert_fits(run, ub="64KiB")
        assert_no_faults(run)

The asserts are functions of this package and fixtures of the same names. The plug-in of pytest (`plugin.py`) is there once
ascendtile is installed, and loads nothing until one of them is used. Simulated times are the same to the bit in every run,
so figures are compared exactly unless a test allows a difference.

The page of this folder, README.md, shows it; example/ is a project to copy.
"""

from ascendtile._names import public_names

_LATER = {
    "assert_cycles": ".cycles",
    "assert_fits": ".fits",
    "assert_no_faults": ".faults",
    "assert_ulp": ".ulp",
    "read_baseline": ".baseline.file",
    "compare_baselines": ".ci.changes",
}
__all__ = [*_LATER]
__getattr__, __dir__ = public_names(__name__, __all__, (), _LATER)
