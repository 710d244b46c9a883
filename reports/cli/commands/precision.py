"""`ascendtile precision`: one operator in every mode and data type, on the same data."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from ..options import (
    ASCENDC,
    AssignmentCommand,
    assignments,
    check_inputs,
    chosen_option,
    compiler_option,
    device_options,
    find_operator,
    input_option,
    json_option,
    l2_option,
    numerics_option,
    product_option,
    read_sizes,
    seed_option,
    set_option,
    version_option,
)

if TYPE_CHECKING:
    from ....kernels.operator.operator import Operator


@click.command(cls=AssignmentCommand)
@click.argument("op")
@click.option("--case", metavar="NAME", help="A case of `ascendtile ops OP`; without, the first.")
@assignments("--size", help="Sizes of your own instead: --size m=64 n=64 k=512.")
@product_option
@compiler_option
@version_option
@l2_option
@set_option
@numerics_option
@assignments("--tiling", help="Knobs, the same in every row: --tiling accumulate=blas.")
@chosen_option("--modes", "M,M", "all", "cubeMathTypes: KEEP_DTYPE,USE_HF32.")
@chosen_option(
    "--dtypes",
    "D,D",
    "all",
    "Data types of the inputs; float32+float16 is one for each, mixed is every such mixture.",
)
@input_option
@click.option(
    "--reference",
    metavar="FILE.npz",
    help="Outputs by name of another device on the same inputs: adds the dual-benchmark rule to --json.",
)
@chosen_option(
    "--distribution", "D", "normal", "Of the random inputs: normal, heavy, lognormal, uniform or cancel."
)
@seed_option("Of the random inputs.")
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="ROWS",
    help="Values of a block of so many rows and columns only (matmul; others say why they have none); without, all "
    "or what takes about a second a row.",
)
@click.option("--sweep", metavar="S", help="k (length of the sums), scale (of one input) or distribution.")
@assignments("--option", "options", help="Arguments of the op itself.")
@click.option("--no-time", is_flag=True, help="Values and errors only.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Compare cubeMathTypes and data types of an operator.

    One table of time, errors and acceptance verdicts, on the same numbers in every row. Errors are told
    apart: what the mode loses (float64 of the exact inputs) and what the kernel adds (float64 of the
    inputs as they are multiplied). Modes that the product refuses are listed with status and reason.

    Example: ascendtile precision matmul --case 1024 --product ascend910b3
    """
    asked = SimpleNamespace(**options)
    _check(ctx, asked)
    from ....simulator.device import device

    op = find_operator(asked.op)
    made = device_options(asked, ASCENDC)
    with device(asked.product, overrides=asked.overrides, numerics=asked.numerics, **made):
        (_study if asked.sweep is None else _sweep)(op, asked)


def _check(ctx: click.Context, asked: SimpleNamespace) -> None:
    check_inputs(ctx, asked, "study")
    if asked.reference and asked.sweep:
        raise click.UsageError("--reference is for one study, --sweep makes many; give one of them", ctx)


def _arguments(op: Operator, asked: SimpleNamespace) -> dict[str, Any]:
    """What a study and a sweep take."""
    from ....simulator.record.files import picked
    from ..inputs import read_inputs

    given = picked(asked, "tiling modes dtypes distribution seed sample options")
    return given | {
        "case": read_sizes(asked.size) or asked.case,
        "inputs": read_inputs(asked.input_file, op) if asked.input_file else None,
        "time": not asked.no_time,
    }


def _study(op: Operator, asked: SimpleNamespace) -> None:
    from ....kernels.study.study import precision_study
    from ...facts.study_json import study_json
    from ...terminal.console import present
    from ...terminal.precision_view import study_page
    from ..inputs import read_inputs

    reference = read_inputs(asked.reference) if asked.reference else None
    study = precision_study(op, **_arguments(op, asked), reference=reference)
    present(asked.as_json, study_json, study_page, study)


def _sweep(op: Operator, asked: SimpleNamespace) -> None:
    from ....kernels.study.study import precision_sweep
    from ...facts.study_json import sweep_json
    from ...terminal.console import present
    from ...terminal.precision_view import sweep_page

    studies = precision_sweep(op, asked.sweep, **_arguments(op, asked))
    present(asked.as_json, sweep_json, sweep_page, asked.sweep, studies)
