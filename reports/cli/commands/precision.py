"""`ascendtile precision`: one operator in every mode and data type, on the same data."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from ..needs import need_asked, need_options
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
    read_assignments,
    read_sizes,
    seed_option,
    set_option,
    version_option,
)

if TYPE_CHECKING:
    from ....kernels.operator.operator import Operator
    from ....kernels.study.results import Study


EXPORTS = ("csv", "latex", "markdown")
BEST = "best"


def read_tilings(ctx: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, str] | str:
    """Knobs by name, or the word best."""
    return BEST if given == (BEST,) else read_assignments(ctx, option, given)


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
@assignments(
    "--tiling",
    callback=read_tilings,
    help="Knobs of every row: --tiling accumulate=blas; the others are chosen for the first row, and the same in all. "
    "--tiling best searches the best of each row.",
)
@chosen_option(
    "--modes",
    "M,M",
    "all",
    "cubeMathTypes: KEEP_DTYPE,USE_HF32. all is the vendor's; splits is ours, which make FP32 products of slices of FP16, "
    "BF16 or INT8: --modes all,splits, or one such as FP16X3.",
)
@chosen_option(
    "--dtypes",
    "D,D",
    "all",
    "Data types of the inputs; float32+float16 is one for each, mixed is every such mixture. Of matmul also number formats, "
    "as a what-if: e4m3, hif8, e3m4:bias=5, FILE.toml; formats is all of the catalogue.",
)
@click.option(
    "--rounding",
    metavar="MODE",
    help="How inputs are stored: RINT, ROUND, TRUNC, FLOOR, CEIL, ODD, RNZ or STOCHASTIC (with --seed); without, as each "
    "format has it.",
)
@input_option
@click.option(
    "--reference",
    metavar="FILE.npz",
    help="Outputs by name of another device on the same inputs: adds the dual-benchmark rule to --json.",
)
@chosen_option(
    "--distribution",
    "D",
    "normal",
    "Of the random inputs: normal, heavy, lognormal, uniform, cancel or outliers.",
)
@seed_option("Of the random inputs.")
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="ROWS",
    help="Values of a block of so many rows and columns only (matmul; others say why they have none); without, all "
    "or what takes about a second a row.",
)
@click.option(
    "--sweep",
    metavar="S[=V,V]",
    help="k (length of the sums), another size, scale (of one input, exponents of two) or distribution, over usual values "
    "or those given: --sweep k=1024,8192.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Sets of random inputs: what is needed has to be kept with each, and the bits have a spread.",
)
@need_options(
    "Name the cheapest mode with so many bits: --need bits=12. Without one, exit status 1.",
    "the finest data type of the rows",
)
@click.option("--export", type=click.Choice(EXPORTS), help="Print a table instead; csv has every figure.")
@assignments("--option", "options", help="Arguments of the op itself.")
@click.option("--no-time", is_flag=True, help="Values and errors only.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Compare cubeMathTypes and data types of an operator.

    One table of time, errors and acceptance verdicts, on the same numbers in every row. Errors are told
    apart: what the mode loses (float64 of the exact inputs) and what the kernel adds (float64 of the
    inputs as they are multiplied). Modes that the product refuses are listed with status and reason.

    With --need, --rtol and --atol, or --rule one line names the cheapest mode that is exact enough, or the nearest one, and
    then the exit status is 1, as it is where every row is refused.

    Example: ascendtile precision matmul --case 1024 --need bits=12
    """
    asked = SimpleNamespace(**options)
    _check(ctx, asked)
    from ....simulator.device import device

    op = find_operator(asked.op)
    made = device_options(asked, ASCENDC)
    with device(asked.product, overrides=asked.overrides, numerics=asked.numerics, **made):
        if not (_study if asked.sweep is None else _sweep)(op, asked):
            sys.exit(1)


def _check(ctx: click.Context, asked: SimpleNamespace) -> None:
    check_inputs(ctx, asked, "study")
    if asked.reference and asked.sweep:
        raise click.UsageError("--reference is for one study, --sweep makes many; give one of them", ctx)
    if asked.export and asked.as_json:
        raise click.UsageError("--export and --json both print data; give one of them", ctx)
    if asked.no_time and asked.tiling == BEST:
        raise click.UsageError("--tiling best is the fastest, --no-time has no times; leave one out", ctx)
    if asked.seeds > 1 and asked.input_file:
        raise click.UsageError("--seeds is for random inputs, --input gives them; leave one out", ctx)


def _arguments(op: Operator, asked: SimpleNamespace) -> dict[str, Any]:
    """What a study and a sweep take."""
    from ....simulator.record.files import picked
    from ....tiling import best_tilings
    from ..inputs import read_inputs

    given = picked(asked, "tiling modes dtypes distribution seed seeds sample options rounding")
    if given["tiling"] == BEST:
        given["tiling"] = best_tilings(op)
    return given | {
        "case": read_sizes(asked.size) or asked.case,
        "inputs": read_inputs(asked.input_file, op) if asked.input_file else None,
        "time": not asked.no_time,
        "need": need_asked(asked),
    }


def _study(op: Operator, asked: SimpleNamespace) -> bool:
    """Whether some row was computed, and keeps what is needed."""
    from ....kernels.study.study import precision_study
    from ...facts.study.json_form import study_json
    from ...terminal.console import present
    from ...terminal.precision_view import study_page
    from ..inputs import read_inputs

    reference = read_inputs(asked.reference) if asked.reference else None
    study = _of_file(precision_study(op, **_arguments(op, asked), reference=reference), asked)
    if asked.export:
        _export(asked.export, [study])
    else:
        present(asked.as_json, study_json, study_page, study)
    return _answered([study])


def _sweep(op: Operator, asked: SimpleNamespace) -> bool:
    """Whether some row was computed, and keeps what is needed at every point."""
    from ....kernels.study.study import precision_sweep
    from ...facts.study.json_form import sweep_json
    from ...terminal.console import present
    from ...terminal.precision_view import sweep_page

    parameter, values = _read_sweep(asked.sweep)
    made = precision_sweep(op, parameter, **_arguments(op, asked), values=values)
    studies = [_of_file(s, asked) for s in made]
    if asked.export:
        _export(asked.export, studies)
    else:
        present(asked.as_json, sweep_json, sweep_page, parameter, studies)
    return _answered(studies)


def _answered(studies: Sequence[Study]) -> bool:
    """Whether some row was computed at all, and one keeps what is needed at every point."""
    from ....kernels.study.results import Answer

    if all(row.status for study in studies for row in study.rows):
        return False
    return studies[0].need is None or Answer(studies).cheapest is not None


def _of_file(study: Study, asked: SimpleNamespace) -> Study:
    """The study of given inputs with the name of their file in its case."""
    if not asked.input_file:
        return study
    return replace(study, case=f"{Path(asked.input_file).name}: {study.case}")


def _read_sweep(text: str) -> tuple[str, list[Any] | None]:
    """ "k=1024,8192" is over these values, "k" over the usual ones."""
    name, equals, values = text.partition("=")
    if not equals:
        return name, None
    parts = [x.strip() for x in values.split(",")]
    if not all(parts):
        raise click.BadParameter(f"{text!r} lacks a value; write --sweep {name}=1024,8192")
    return name.strip(), [_point(x) for x in parts]


def _point(text: str) -> int | str | tuple[int, ...]:
    """64, 8x3x5, or a name."""
    dims = text.split("x")
    if len(dims) > 1 and all(x.isascii() and x.isdigit() and len(x) < 19 for x in dims):
        return tuple(map(int, dims))
    return int(text) if text.removeprefix("-").isdecimal() else text


def _export(form: str, studies: Sequence[Study]) -> None:
    from ....kernels.study.results import Answer
    from ...facts.study.exports import exported
    from ...terminal.console import note

    click.echo(exported(form, studies), nl=False)
    if studies[0].need is not None:
        note(Answer(studies).words)
