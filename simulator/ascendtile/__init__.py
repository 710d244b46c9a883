"""Tiled kernels on the Ascend AI Core, without one: values, numerical error, time and buffer fit of a kernel.

    ascendtile.simulator   one kernel on one device: `jit`, `device`, the language, the record of a run
    ascendtile.kernels     the operators that come with it, with named cases and precision studies
    ascendtile.tiling      the fastest tiling of an operator or of a kernel of yours, with its proof
    ascendtile.reports     what the command line `ascendtile` prints, pages, pictures and traces
    ascendtile.calibrate   figures of a product fitted to a profile of your own board
    ascendtile.judge       the answer to a task of a benchmark: right, how fast, does it fit

In a terminal: `ascendtile demo`, then `ascendtile --help`.

An operator, for its time only:

    from ascendtile.kernels import run_op
    print(run_op("rms_norm_grad", "llama3-8b", "float16", product="ascend910b3", values=False).run)

A kernel of your own, values and time:

    import numpy as np
    import ascendtile.simulator as sim
    import ascendtile.simulator.language as tl

    @sim.jit
    def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)

    x = np.ones(100_000, np.float16)
    y = np.empty_like(x)
    print(double[(13,)](x, y, x.size, BLOCK=8192))

This file is `simulator/ascendtile/__init__.py`: the build maps the top-level folders into this package, see setup.py.
"""

from ascendtile._names import public_names

__version__ = "0.1.0"
__all__ = ["kernels", "reports", "simulator", "tiling"]
LATER = {
    "calibrate": "ascendtile.kernels.validation.calibration",
    "judge": "ascendtile.reports.judging.judge",
}
__getattr__, __dir__ = public_names(__name__, ["__version__", *LATER], __all__, LATER)
