"""The side of `ascendtile run` that runs a script."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from .options import (
    TRITON_ASCEND,
    AssignmentCommand,
    AssignmentOption,
    check_checked,
    check_option,
    check_timed,
    checks_asked,
    chosen_option,
    compiler_option,
    device_options,
    errors_asked,
    errors_options,
    is_numerics_file,
    json_option,
    l2_option,
    masked_option,
    numerics_option,
    outside_option,
    product_option,
    set_option,
    strict_option,
    version_option,
)

if TYPE_CHECKING:
    from ...simulator.triton_shim.scripts.collecting import Collector
    from ...simulator.triton_shim.scripts.script import ScriptOutcome

TIMELINE = 20_000  # instructions kept where a record is to be saved
FAILED = 1  # exit status of a run with faults, where that was asked for
Show = Callable[[SimpleNamespace, "Collector", "ScriptOutcome"], None]


def of_scripts(command: Any) -> click.Command:
    """The script, its arguments and the device: what every command that runs one takes."""
    options = (
        click.argument("script"),
        click.argument("arguments", nargs=-1, type=click.UNPROCESSED),
        click.option("-m", "module", is_flag=True, help="SCRIPT is the name of a module."),
        product_option,
        compiler_option,
        version_option,
        l2_option,
        set_option,
        numerics_option,
        chosen_option("--cube-math-type", "M", "KEEP_DTYPE", "Precision mode of the Cube."),
        outside_option,
        click.option("--cuda", is_flag=True, help='The torch device "cuda" means the simulated device, too.'),
        json_option,
        click.pass_context,
    )
    for option in reversed(options):
        command = option(command)
    settings = {"allow_interspersed_args": False, "ignore_unknown_options": False}
    made: click.Command = click.command(cls=AssignmentCommand, context_settings=settings)(command)
    return made


@of_scripts
@click.option("--no-values", is_flag=True, help="Time only: kernels write nothing.")
@click.option("--no-time", is_flag=True, help="Values only.")
@click.option("--save", metavar="F", help="Keep the launch that took longest as a record.")
@click.option("--out", metavar="DIR", help="Keep a record of each row of the table in DIR.")
@click.option(
    "--explain",
    is_flag=True,
    help="Time each launch again with one limit lifted and one knob changed at a time.",
)
@check_option
@errors_options
@masked_option
@strict_option
def script_command(ctx: click.Context, /, **options: Any) -> None:
    """Run a Triton script as it is and show what its launches took."""
    asked = SimpleNamespace(**options)
    check_timed(ctx, asked)
    check_checked(asked)
    _check_targets(asked)
    run_and_tell(asked, _show)


def run_and_tell(asked: SimpleNamespace, show: Show) -> None:
    """Run the script, `show` what its launches gave, also where it failed, and exit with its status."""
    made = device_options(asked, TRITON_ASCEND) | checks_asked(asked)
    made |= errors_asked(asked) if hasattr(asked, "errors") else {}
    from ...simulator.triton_shim.scripts.collecting import Collector

    found, process = Collector(), os.getpid()
    try:
        outcome = _run(asked, found, made)
        if outcome.status == 0 and os.getpid() == process:
            _check_reference(made.get("reference"), found)
    except BaseException as e:
        if os.getpid() == process and (found.count or asked.as_json):  # what was found out until then
            show(asked, found, _failure(e))
        raise
    if asked.strict and found.faulty:
        outcome = replace(outcome, status=outcome.status or FAILED)
    if os.getpid() == process:  # a process that the script forked leaves the report to the first one
        show(asked, found, outcome)
    sys.exit(outcome.status)


def _check_reference(reference: Any, found: Collector) -> None:
    """Refuse arrays that nothing was compared with: their names are most likely mistyped."""
    named = () if reference is None or callable(reference) else reference
    left = [n for n in named if n not in found.written]
    if left:
        from ...simulator.errors import UsageError

        raise UsageError(
            f"--float64-reference: no launch of this process wrote {', '.join(map(repr, left))}; "
            f"written were {', '.join(sorted(found.written)) or 'none'}: name arrays like parameters that a kernel writes"
        )


def _failure(error: BaseException) -> ScriptOutcome:
    """Exit status and message, as the command line will end with them."""
    from ...simulator.triton_shim.scripts.script import ScriptOutcome
    from .main import explain

    status, message = explain(error)
    return ScriptOutcome(status, message)


def _check_targets(asked: SimpleNamespace) -> None:
    """Refuse what could not be written before anything is computed."""
    if asked.save:
        from ...simulator.record.files import check_target

        check_target(asked.save)
    if asked.out:
        from .commands.demo import make_folder

        make_folder(asked.out)


def _run(asked: SimpleNamespace, found: Collector, made: dict[str, Any]) -> ScriptOutcome:
    from ...simulator.device import device_everywhere
    from ...simulator.precision.numerics_file import chosen_numerics
    from ...simulator.record.files import picked
    from ...simulator.triton_shim.scripts.child_processes import with_children
    from ...simulator.triton_shim.scripts.script import Script, run_script
    from .progress import of_launches

    devices = ("npu", "cuda") if asked.cuda else ("npu",)
    options = picked(asked, "product overrides cube_math_type explain") | made
    options |= {"values": not asked.no_values, "time": not asked.no_time}
    options["numerics"] = chosen_numerics(asked.numerics)  # read here: the script may go to another folder
    options["timeline"] = TIMELINE if asked.save or asked.out else 0
    script = Script(asked.script, asked.arguments, asked.module)
    away = _no_output() if asked.as_json else contextlib.nullcontext()
    plain = {
        n: x for n, x in options.items() if n != "reference"
    }  # functions and arrays stay in this process
    children = with_children(found, plain, devices)
    with device_everywhere(**options), away, of_launches(), children as gatherer:
        return run_script(script, gatherer.tell, devices)


@contextlib.contextmanager
def _no_output() -> Iterator[None]:
    """What the script and the processes that it starts print goes to standard error: standard output is for one object."""
    with contextlib.redirect_stdout(sys.stderr):
        sys.__stdout__.flush() if sys.__stdout__ else None
        try:
            kept = os.dup(1)
            os.dup2(2, 1)
        except OSError:  # closed: nothing can get there
            yield
            return
        try:
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def _show(asked: SimpleNamespace, found: Collector, outcome: ScriptOutcome) -> None:
    from ..terminal.console import show, show_json
    from ..terminal.script_view import script_json, script_page

    sys.stdout.flush()
    dearest = found.dearest
    if dearest is not None and asked.save:
        dearest.save(asked.save)
    if asked.out:
        for number, group in enumerate(found.by_time, 1):
            group.dearest.save(os.path.join(asked.out, f"{number:03}-{group.kernel}.run"))
    _note_unknown(asked.l2, found)
    if asked.as_json:
        show_json(script_json(asked.script, outcome, found, asked.save))
        return
    show(script_page(asked.script, found))
    if dearest is not None and dearest.launches:
        from rich.text import Text

        from ..terminal.record_view import run_report

        show(Text("\nthe launch that took longest\n"))
        show(run_report(dearest, asked.save))


def _note_unknown(l2: Any, found: Collector) -> None:
    """Names of `--l2` that no launch of the script had are most likely mistyped."""
    from ...simulator.l2.state import unknown
    from ..terminal.console import note

    for name in unknown(l2, found.tensors) if found.count else ():
        known = ", ".join(sorted({n.removesuffix("_ptr") for n in found.tensors})) or "none"
        note(f"--l2 {name}=... changed nothing: no launch has a tensor argument {name!r}; they have {known}")


# ---- which of the two ----


def first_argument(args: list[str], commands: Iterable[click.Command]) -> str | None:
    """The first argument that is neither an option nor an option's value; None if there is none."""
    options = [p for c in commands for p in c.params if isinstance(p, click.Option)]
    valued = {f for p in options if not p.is_flag for f in p.opts}
    several = {f for p in options if isinstance(p, AssignmentOption) for f in p.opts}
    flag = ""
    for arg in args:
        if flag in several and not arg.startswith("-") and ("=" in arg or is_numerics_file(arg)):
            continue
        if flag in valued and flag not in several:
            flag = ""
            continue
        flag = arg
        if arg == "-m" or not arg.startswith("-"):
            return arg
    return None


def is_script(argument: str | None) -> bool:
    """Whether the argument names a script: `-m`, a name that ends in .py, or a file, or a folder that is no operator."""
    if argument is None:
        return False
    if os.path.isdir(argument):
        return os.sep in argument or argument == os.curdir or _runs_as_folder(argument)
    return argument == "-m" or argument.endswith(".py") or (os.path.isfile(argument) and os.sep in argument)


def _runs_as_folder(argument: str) -> bool:
    """Whether a folder of the current one is meant: an operator of the same name comes first."""
    from ...simulator.errors import UsageError
    from .options import find_operator

    try:
        find_operator(argument)
    except UsageError:
        return True
    return False
