"""`ascendtile precision`: one operator in every mode and data type, on the same data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..options import (
    AssignmentCommand,
    AssignmentOption,
    find_operator,
    json_option,
    numerics_option,
    product_option,
    set_option,
)

if TYPE_CHECKING:
    from ....kernels.operator.operator import Operator


@dataclass(frozen=True)
class PrecisionRequest:
    """What was asked for on the command line."""

    op: str
    case: str | None
    size: dict[str, str]
    product: str | None
    overrides: dict[str, str]
    numerics: dict[str, str]
    tiling: dict[str, str]
    modes: str
    dtypes: str
    input_file: str | None
    reference: str | None
    distribution: str
    seed: int
    sample: int | None
    sweep: str | None
    option: dict[str, str]
    no_time: bool
    as_json: bool


@click.command(cls=AssignmentCommand)
@click.argument("op")
@click.option("--case", metavar="NAME", help="A case of `ascendtile ops OP`; without, the first.")
@click.option("--size", cls=AssignmentOption, help="Sizes of your own instead: --size m=64 n=64 k=512.")
@product_option()
@set_option()
@numerics_option()
@click.option(
    "--tiling", cls=AssignmentOption, help="Knobs, the same in every row: --tiling accumulate=blas."
)
@click.option(
    "--modes", metavar="M,M", default="all", show_default=True, help="cubeMathTypes: KEEP_DTYPE,USE_HF32."
)
@click.option(
    "--dtypes",
    metavar="D,D",
    default="all",
    show_default=True,
    help="Data types of the inputs; float32+float16 is one for each, mixed is every such mixture.",
)
@click.option(
    "--input", "input_file", metavar="FILE.npz", help="Inputs by name instead of a case (.npy for one)."
)
@click.option(
    "--reference",
    metavar="FILE.npz",
    help="Outputs by name of another device on the same inputs: adds the dual-benchmark rule to --json.",
)
@click.option(
    "--distribution",
    metavar="D",
    default="normal",
    show_default=True,
    help="Of the random inputs: normal, heavy, lognormal, uniform or cancel.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the random inputs."
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="ROWS",
    help="Values of a block of so many rows and columns only (matmul; others say why they have none); without, all "
    "or what takes about a second a row.",
)
@click.option("--sweep", metavar="S", help="k (length of the sums), scale (of one input) or distribution.")
@click.option("--option", cls=AssignmentOption, help="Arguments of the op itself.")
@click.option("--no-time", is_flag=True, help="Values and errors only.")
@json_option()
@click.pass_context
def command(ctx: click.Context, /, **asked: Any) -> None:
    """Compare cubeMathTypes and data types of an operator.

    One table of time, errors and acceptance verdicts, on the same numbers in every row. Errors are told
    apart: what the mode loses (float64 of the exact inputs) and what the kernel adds (float64 of the
    inputs as they are multiplied). Modes that the product refuses are listed with status and reason.

    Example: ascendtile precision matmul --case 1024 --product ascend910b3
    """
    request = PrecisionRequest(**asked)
    _check(ctx, request)
    from ....simulator.device import device

    op = find_operator(request.op)
    with device(request.product, overrides=request.overrides, numerics=request.numerics):
        if request.sweep is None:
            _study(op, request)
        else:
            _sweep(op, request)


def _check(ctx: click.Context, request: PrecisionRequest) -> None:
    sources = {"--case": request.case, "--size": request.size, "--input": request.input_file}
    found = [flag for flag, value in sources.items() if value]
    if len(found) > 1:
        raise click.UsageError(f"{' and '.join(found)} each say what to study; give one of them", ctx)
    if request.reference and request.sweep:
        raise click.UsageError("--reference is for one study, --sweep makes many; give one of them", ctx)
    for name in ("seed", "distribution"):
        if request.input_file and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} is for random inputs, --input brings its own; give one", ctx)


def _arguments(op: Operator, request: PrecisionRequest) -> dict[str, Any]:
    from ..inputs import read_inputs
    from .run import read_sizes

    return {
        "case": read_sizes(request.size) or request.case,
        "tiling": request.tiling,
        "modes": request.modes,
        "dtypes": request.dtypes,
        "inputs": read_inputs(request.input_file, op) if request.input_file else None,
        "distribution": request.distribution,
        "seed": request.seed,
        "sample": request.sample,
        "options": request.option,
        "time": not request.no_time,
    }


def _study(op: Operator, request: PrecisionRequest) -> None:
    from ....kernels.study.study import precision_study
    from ...facts.study_json import study_json
    from ...terminal import precision_view as view
    from ...terminal.console import show, show_json
    from ..inputs import read_arrays

    reference = read_arrays(request.reference) if request.reference else None
    study = precision_study(op, **_arguments(op, request), reference=reference)
    if request.as_json:
        show_json(study_json(study))
    else:
        show(view.study_page(study))


def _sweep(op: Operator, request: PrecisionRequest) -> None:
    from ....kernels.study.sweep import precision_sweep
    from ...facts.study_json import sweep_json
    from ...terminal import precision_view as view
    from ...terminal.console import show, show_json

    assert request.sweep is not None
    studies = precision_sweep(op, request.sweep, **_arguments(op, request))
    if request.as_json:
        show_json(sweep_json(request.sweep, studies))
    else:
        show(view.sweep_page(request.sweep, studies))
