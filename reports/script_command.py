"""The side of `ascendtile run` that runs a script."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ascendtile.reports.options import (
    AssignmentCommand,
    AssignmentOption,
    json_option,
    product_option,
    set_option,
)

if TYPE_CHECKING:
    from ascendtile.reports.collecting import Collector

TIMELINE = 20_000  # instructions kept where a record is to be saved


@dataclass(frozen=True)
class ScriptRequest:
    """What was asked for on the command line."""

    script: str
    arguments: tuple[str, ...]
    module: bool
    product: str | None
    overrides: dict[str, str]
    cube_math_type: str
    no_values: bool
    no_time: bool
    save: str | None
    out: str | None
    cuda: bool
    as_json: bool


@click.command(
    cls=AssignmentCommand,
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False},
)
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("-m", "module", is_flag=True, help="SCRIPT is the name of a module.")
@product_option()
@set_option()
@click.option(
    "--cube-math-type",
    metavar="M",
    default="KEEP_DTYPE",
    show_default=True,
    help="Precision mode of the Cube.",
)
@click.option("--no-values", is_flag=True, help="Time only: kernels write nothing.")
@click.option("--no-time", is_flag=True, help="Values only.")
@click.option("--save", metavar="F", help="Keep the launch that took longest as a record.")
@click.option("--out", metavar="DIR", help="Keep a record of each row of the table in DIR.")
@click.option("--cuda", is_flag=True, help='The torch device "cuda" means the simulated device, too.')
@json_option()
@click.pass_context
def script_command(ctx: click.Context, /, **asked: Any) -> None:
    """Run a Triton script as it is and show what its launches took."""
    request = ScriptRequest(**asked)
    if request.no_values and request.no_time:
        raise click.UsageError("--no-values and --no-time together leave nothing to do", ctx)
    _check_targets(request)
    from ascendtile.reports.collecting import Collector

    found = Collector()
    try:
        status = _run(request, found)
    except BaseException:
        if found.count and not request.as_json:  # what was found out until then
            _show(request, found, 1)
        raise
    _show(request, found, status)
    sys.exit(status)


def _check_targets(request: ScriptRequest) -> None:
    """Refuse what could not be written before anything is computed."""
    if request.save:
        from ascendtile.simulator.files import check_target

        check_target(request.save)
    if request.out:
        from ascendtile.reports.commands.demo import make_folder

        make_folder(request.out)


def _run(request: ScriptRequest, found: Collector) -> int:
    from ascendtile.reports.script import Script, run_script
    from ascendtile.simulator import device

    devices = ("npu", "cuda") if request.cuda else ("npu",)
    away = contextlib.redirect_stdout(sys.stderr) if request.as_json else contextlib.nullcontext()
    with (
        device(
            request.product,
            overrides=request.overrides,
            cube_math_type=request.cube_math_type,
            values=not request.no_values,
            time=not request.no_time,
            timeline=TIMELINE if request.save or request.out else 0,
        ),
        away,
    ):
        return run_script(Script(request.script, request.arguments, request.module), found, devices)


def _show(request: ScriptRequest, found: Collector, status: int) -> None:
    from ascendtile.reports.console import show, show_json
    from ascendtile.reports.script_view import script_json, script_page

    sys.stdout.flush()
    dearest = found.dearest
    if dearest is not None and request.save:
        dearest.save(request.save)
    if request.out:
        for number, group in enumerate(found.by_time, 1):
            group.dearest.save(os.path.join(request.out, f"{number:03}-{group.kernel}.run"))
    if request.as_json:
        show_json(script_json(request.script, status, found, request.save))
        return
    show(script_page(request.script, found))
    if dearest is not None and dearest.launches:
        from rich.text import Text

        from ascendtile.reports.terminal import run_report

        show(Text("\nthe launch that took longest\n"))
        show(run_report(dearest, request.save))


# ---- which of the two ----


def first_word(args: list[str], commands: Iterable[click.Command]) -> str | None:
    """The first argument that is neither an option nor an option's value; None if there is none."""
    options = [p for c in commands for p in c.params if isinstance(p, click.Option)]
    valued = {f for p in options if not p.is_flag for f in p.opts}
    several = {f for p in options if isinstance(p, AssignmentOption) for f in p.opts}
    flag = ""
    for arg in args:
        if flag in several and "=" in arg and not arg.startswith("-"):
            continue
        if flag in valued and flag not in several:
            flag = ""
            continue
        flag = arg
        if arg == "-m" or not arg.startswith("-"):
            return arg
    return None


def is_script(word: str | None) -> bool:
    """Whether the first word names a script: `-m`, a name that ends in .py, or a file that is no operator."""
    if word is None:
        return False
    return word == "-m" or word.endswith(".py") or (os.path.isfile(word) and os.sep in word)
