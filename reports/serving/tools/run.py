"""The tool `run`: an operator, or a Triton script, on one product."""

from __future__ import annotations

from typing import Any

from ....simulator.errors import UsageError
from .scripts import run_text
from .tool import (
    CASE,
    COMPILER,
    DTYPE,
    FILES,
    MODE,
    OP,
    OPTIONS,
    PRODUCT,
    SET,
    SIZES,
    Arguments,
    Tool,
    case_of,
    choice,
    flag,
    named,
    number,
    one_of,
    source,
    text,
    words,
)

ABOUT = (
    "Run one operator, or a Triton or Triton-Ascend script as it is, on a simulated Ascend AI Core: values, error against "
    "float64, time in us, cycles, buffers, the lines that cost, faults. The same figures every time, to the bit. "
    "Give op or script. The result is that of `ascendtile run --json`; of a script also `output`: what it printed, the end."
)
OF_OPERATORS = ("case", "sizes", "dtype", "tiling", "options", "seed", "distribution")
OF_SCRIPTS = ("arguments", "cuda", "files")
DISTRIBUTIONS = ("normal", "heavy", "lognormal", "uniform", "cancel", "outliers")
PROPERTIES = {
    "op": OP,
    "script": source("Text of a Python script that launches kernels; `import triton` finds the simulator."),
    "path": text("The script as a path below the server's --root instead of its text.", 1000),
    "case": CASE,
    "sizes": SIZES,
    "dtype": DTYPE,
    "tiling": named('Knobs of an operator, such as {"rows": 2}; it chooses the others.'),
    "options": OPTIONS,
    "seed": number("Of the random inputs of an operator.", 0, 2**32 - 1, 0),
    "distribution": choice("Of the random inputs of an operator; normal without.", *DISTRIBUTIONS),
    "arguments": words("What the script finds in sys.argv."),
    "cuda": flag('Whether the torch device "cuda" means the simulated device, too.', False),
    "files": FILES,
    "product": PRODUCT,
    "set": SET,
    "compiler": COMPILER,
    "cube_math_type": MODE,
    "values": flag(
        "Whether values are computed; false is time only, which needs no memory for tensors.", True
    ),
    "time": flag("Whether time is computed.", True),
    "check": flag("Every check: races, reads of what nobody wrote, missing flags. Slower.", False),
}


def work(arguments: Arguments) -> dict[str, Any]:
    """One operator or one script."""
    kind = one_of(arguments, "op", "script")
    check_kind(arguments, kind)
    check_wanted(arguments)
    return run_operator(arguments) if kind == "op" else run_text(arguments)


def check_kind(arguments: Arguments, kind: str) -> None:
    """No argument of the other kind."""
    for name in OF_SCRIPTS if kind == "op" else OF_OPERATORS:
        if name in arguments:
            raise UsageError(f"{name} is for {'a script' if kind == 'op' else 'an operator'}; leave it out")


def check_wanted(arguments: Arguments) -> None:
    """Something is left to do, and what looks at values has them."""
    values, time = arguments.get("values", True), arguments.get("time", True)
    if not values and not time:
        raise UsageError("values and time are both false, which leaves nothing to do")
    if arguments.get("check") and not values:
        raise UsageError("check is about values; leave values out or make it true")


def run_operator(arguments: Arguments) -> dict[str, Any]:
    """The JSON of one run of an operator."""
    from ....kernels import run_op
    from ....simulator.device import device
    from ...facts.json_view import run_json

    given = {n: arguments[n] for n in RUN_OP if n in arguments}
    on = {n: arguments[n] for n in ("compiler", "check") if n in arguments}
    with device(**on):
        made = run_op(
            arguments["op"], case_of(arguments), **given, overrides=arguments.get("set"), explain=True
        )
    return run_json(made.run)


RUN_OP = ("dtype", "product", "cube_math_type", "tiling", "options", "seed", "distribution", "values", "time")
TOOL = Tool("run", "Run an operator or a script", ABOUT, PROPERTIES, work, paths={"path": "script"})
