"""`ascendtile run`: one operator on one product, its page, and its record if it is to be kept.

A path to a Python file instead of an operator (or `-m module`) runs a script: `script_command.py` has that side.
"""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from ..options import (
    ASCENDC,
    AssignmentCommand,
    assignments,
    check_checked,
    check_inputs,
    check_option,
    check_timed,
    checks_asked,
    chosen_option,
    compiler_option,
    device_options,
    errors_asked,
    errors_options,
    find_operator,
    input_option,
    json_option,
    l2_option,
    masked_option,
    numerics_option,
    outside_option,
    product_option,
    read_sizes,
    seed_option,
    set_option,
    strict_option,
    version_option,
)
from ..script_command import first_argument, is_script, script_command

if TYPE_CHECKING:
    from ....kernels.operator.operator import Operator
    from ....kernels.running.run_op import OpResult
    from ....simulator.spread import Spread


class RunCommand(AssignmentCommand):
    """The command for an operator. What runs a script is a command of its own: options after the script are the script's."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        argument = first_argument(args, [self, script_command])
        _check_no_record(argument)
        if is_script(argument):
            return script_command.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def _check_no_record(argument: str | None) -> None:
    """A record is shown, not run."""
    if argument is not None and argument.endswith(".run") and os.path.isfile(argument):
        raise click.UsageError(f"{argument} is a record of a run: `ascendtile report {argument}` shows it")


@click.command(cls=RunCommand)
@click.argument("op", metavar="OP | SCRIPT.py")
@click.option(
    "--case", metavar="NAME", help="A case of `ascendtile ops OP`; without, the first one listed there."
)
@assignments("--size", help="Sizes of your own instead of a case: --size rows=64 cols=512.")
@click.option(
    "--dtype", metavar="D", help="Data type of the inputs; without, the first that the product takes."
)
@product_option
@compiler_option
@version_option
@l2_option
@set_option
@numerics_option
@chosen_option(
    "--cube-math-type",
    "M",
    "KEEP_DTYPE",
    "Precision mode of the Cube: KEEP_DTYPE, ALLOW_FP32_DOWN_PRECISION, USE_FP16, USE_HF32 or USE_FP32_ADD; or 0 to 4. "
    "Or a split of FP32 operands, ours: FP16X2, FP16X3, BF16X2, BF16X3, BF16X6, BF16X9, INT8X2, INT8X3 or INT8X4.",
)
@assignments("--tiling", help="Knobs: --tiling rows=2 cols=1024. The op chooses the others.")
@assignments("--option", "options", help="Arguments of the op itself: --option reduction=sum.")
@input_option
@seed_option("Of the random inputs.")
@chosen_option(
    "--distribution",
    "D",
    "normal",
    "Of the random inputs: normal, heavy (the tails of real gradients), lognormal, uniform, cancel or outliers.",
)
@click.option("--no-values", is_flag=True, help="Time only: no tensor is made.")
@click.option("--no-time", is_flag=True, help="Values and errors only.")
@click.option(
    "--explain",
    is_flag=True,
    help="Time launches again with one limit lifted and one knob changed at a time: "
    "always done for operators, on demand for scripts.",
)
@click.option(
    "--atomic-seeds",
    type=click.IntRange(min=1, max=1000),
    metavar="N",
    help="Also run in N drawn orders of the programs: how far the undefined order of atomics moves the outputs.",
)
@check_option
@errors_options
@masked_option
@outside_option
@strict_option
@click.option("--save", metavar="F", help="Keep the run as a record for `ascendtile report`.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Run an operator and show its page, or a Triton script as it is.

    The page has time and bounds, pipes, buffers, errors against float64 and the lines that cost most.

    Example: ascendtile run RmsNormGrad --dtype bfloat16 --tiling rows=2 --save x.run

    A Python file is run with the simulator in Triton's place; `ascendtile run x.py --help` is the script's help, options
    for ascendtile stand before it: ascendtile run [--product P] [--compiler C] [--set NAME=VALUE...] [--cube-math-type M]
    [--no-values | --no-time] [--explain] [--check] [--errors | --error-lines |
    --float64-reference F] [--masked M] [--out-of-bounds O] [--strict] [--save F] [--out DIR]
    [--cuda] [--json] SCRIPT.py [ARGUMENTS...], or -m MODULE for a module. `ascendtile check SCRIPT.py` lists its faults.
    """
    asked = SimpleNamespace(**options)
    _check(ctx, asked)
    from ....simulator.device import device

    judged = {"errors": "lines"} if asked.error_lines else {}  # errors themselves an operator has in any case
    with device(numerics=asked.numerics, **device_options(asked, ASCENDC), **checks_asked(asked), **judged):
        result = _run(asked)
        if asked.save:
            result.run.save(asked.save)
        _show(asked, result, _spread(asked))
    if asked.strict and result.run.faults:
        sys.exit(1)


def _check(ctx: click.Context, asked: SimpleNamespace) -> None:
    """Refuse what contradicts itself, and a record that could not be written, before anything is computed."""
    check_timed(ctx, asked)
    check_checked(asked)
    if asked.float64_reference:
        raise click.UsageError(
            "--float64-reference is for scripts: an operator has a reference of its own", ctx
        )
    errors_asked(asked)
    if asked.no_values and asked.atomic_seeds:
        raise click.UsageError("--atomic-seeds compares values, which --no-values leaves out", ctx)
    check_inputs(ctx, asked, "run on")
    if asked.save:
        from ....simulator.record.files import check_target

        check_target(asked.save)


def _run(asked: SimpleNamespace) -> OpResult:
    from ....kernels import run_op
    from ..progress import shown

    op = find_operator(asked.op)
    with shown(f"{op.name} {asked.case or ''}".strip()) as progress:
        return run_op(op, **_arguments(op, asked), time=not asked.no_time, explain=True, progress=progress)


def _spread(asked: SimpleNamespace) -> dict[str, Spread]:
    """The same run in other orders of the programs, values only."""
    if asked.atomic_seeds is None:
        return {}
    from ....kernels import run_op
    from ....simulator.spread import atomic_spread

    op = find_operator(asked.op)
    arguments = _arguments(op, asked)
    return atomic_spread(
        lambda: run_op(op, **arguments, time=False, errors=False).outputs, asked.atomic_seeds
    )


def _arguments(op: Operator, asked: SimpleNamespace) -> dict[str, Any]:
    from ....simulator.record.files import picked
    from ..inputs import read_inputs

    inputs = read_inputs(asked.input_file, op) if asked.input_file else None
    case = read_sizes(asked.size) or asked.case
    given = picked(asked, "dtype product overrides cube_math_type tiling options seed distribution")
    return {**given, "case": case, "inputs": inputs, "values": not asked.no_values}


def _show(asked: SimpleNamespace, result: OpResult, spread: dict[str, Spread]) -> None:
    from ...terminal.console import show, show_json
    from ...terminal.record_view import spread_json, spread_table

    if asked.as_json:
        from ...facts.json_view import run_json

        show_json(run_json(result.run, asked.save) | spread_json(spread))
        return
    from ...terminal.record_view import run_report

    show(run_report(result.run, asked.save))
    if spread:
        show(spread_table(spread))
