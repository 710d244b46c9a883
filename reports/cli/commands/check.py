"""`ascendtile check`: what is wrong or undefined on the device in the launches of a script."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from ..options import find_operator
from ..script_command import is_script, of_scripts, run_and_tell

if TYPE_CHECKING:
    from ....simulator.triton_shim.scripts.collecting import Collector
    from ....simulator.triton_shim.scripts.script import ScriptOutcome

AS_IT_IS = {"no_values": False, "no_time": False, "explain": False, "save": None, "out": None}


@of_scripts
def command(ctx: click.Context, /, **options: Any) -> None:
    """Run a Triton script with every check and list its faults.

    A fault is what is wrong or undefined on the device, whatever the values here: races, reads of what nobody wrote,
    missing flags, addresses that overflow (simulator/README.md has the list). What-ifs, which no board of the product
    computes, are told apart from them. Options for ascendtile stand before SCRIPT.

    Exit status: 0 no faults, 1 faults, what-ifs or a script that failed, 2 wrong usage or input.

    Example: ascendtile check softmax.py --rows 64
    """
    _refuse_operator(options["script"], options["module"])
    run_and_tell(SimpleNamespace(**options, **AS_IT_IS, check=True, masked="zero", strict=True), _show)


def _refuse_operator(name: str, module: bool) -> None:
    """An operator is no script; `run` checks it."""
    if module or os.path.exists(name) or is_script(name):
        return
    from ....simulator.errors import UsageError

    try:
        op = find_operator(name).name
    except UsageError:
        return
    raise click.UsageError(
        f"{name} is an operator, not a script: `ascendtile run {op} --check --strict` checks it"
    )


def _show(asked: SimpleNamespace, found: Collector, outcome: ScriptOutcome) -> None:
    from ...terminal.console import show, show_json
    from ...terminal.script_view import check_page, script_json

    if asked.as_json:
        show_json(script_json(asked.script, outcome, found, None))
    else:
        show(check_page(asked.script, found))
