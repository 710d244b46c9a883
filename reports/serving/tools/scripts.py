"""A script of the client, run as `ascendtile run SCRIPT.py --json` runs one."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from ....simulator.errors import AscendtileError, UsageError
from .output import tailed
from .tool import Arguments, checked_files
from .writing import written

if TYPE_CHECKING:
    from ....simulator.triton_shim.scripts.collecting import Collector
    from ....simulator.triton_shim.scripts.script import ScriptOutcome

NAME = "script.py"
OF_DEVICE = ("product", "cube_math_type", "compiler", "check", "errors", "explain")


def run_text(arguments: Arguments) -> dict[str, Any]:
    """The JSON of the script's launches, and `output`: the end of what it printed."""
    from ....simulator.triton_shim.scripts.collecting import Collector
    from ...terminal.script_view import script_json

    found = Collector()
    files = {**checked_files(arguments, NAME), NAME: arguments["script"]}
    with written(files) as folder, contextlib.chdir(folder), tailed() as tail:
        outcome = _outcome(arguments, found)
    return {**script_json(NAME, outcome, found, None), "output": tail.text()}


def _outcome(arguments: Arguments, found: Collector) -> ScriptOutcome:
    from ....simulator.device import device_everywhere
    from ....simulator.triton_shim.scripts.script import Script, ScriptOutcome, run_script

    script = Script(NAME, tuple(arguments.get("arguments", ())))
    devices = ("npu", "cuda") if arguments.get("cuda") else ("npu",)
    try:
        with device_everywhere(**device_options(arguments)):
            return run_script(script, found.tell, devices)
    except AscendtileError as e:
        return ScriptOutcome(2 if isinstance(e, UsageError) else 1, str(e))


def device_options(arguments: Arguments) -> dict[str, Any]:
    """Options of `simulator.device` that a client may give."""
    given = {n: arguments[n] for n in OF_DEVICE if n in arguments}
    wanted = {n: arguments.get(n, True) for n in ("values", "time")}
    return {**given, **wanted, "overrides": arguments.get("set")}
