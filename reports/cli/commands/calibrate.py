"""`ascendtile calibrate`: figures of a product fitted to a profile of the user's own board."""

from __future__ import annotations

import click

from ..options import json_option, product_option, seed_option


@click.command()
@click.argument("profile", metavar="FILE.csv")
@product_option
@click.option("-o", "--output", metavar="MINE.toml", help="Write the product file, for --product MINE.toml.")
@click.option("--force", is_flag=True, help="Replace the file of --output if it is there.")
@click.option(
    "--leave-out",
    type=click.FloatRange(0.0, 0.9),
    default=0.25,
    show_default=True,
    help="Part of the kernels that is not fitted but predicted, for the errors before and after.",
)
@seed_option("Which kernels are left out.")
@click.option(
    "--most-rows",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="Of more kernels those are used that take the most time in all.",
)
@json_option
def command(
    profile: str,
    product: str | None,
    output: str | None,
    force: bool,
    leave_out: float,
    seed: int,
    most_rows: int,
    as_json: bool,
) -> None:
    """Fit figures of a product to your own board.

    FILE.csv is an op_summary_*.csv of msProf (with --task-time=l1), a kernel_details.csv of the PyTorch profiler (with
    record_shapes and Level1), or a table as `validate --table` reads. Launch, bandwidths and clock are fitted: kernels of
    known operators are simulated, and a figure moves as far as they tell, and stays near the product's value where they
    do not. Kernels that were left out of the fit tell the error before and after.

    Example: ascendtile calibrate op_summary_0.csv --product ascend910b3 -o mine.toml
    """
    from ....kernels.validation.calibration import calibrate
    from ....kernels.validation.calibration.calibrating import USUAL_PRODUCT
    from ....kernels.validation.calibration.product_file import check_output
    from ...terminal.calibration_view import calibration_json, calibration_page
    from ...terminal.console import note, present
    from ..progress import shown

    if output is not None:
        check_output(output, force)
    elif force:
        raise click.UsageError("--force is for the file of --output; give one, or leave it out")
    with shown("kernels") as progress:
        found = calibrate(
            profile,
            product or USUAL_PRODUCT,
            leave_out=leave_out,
            seed=seed,
            most_rows=most_rows,
            progress=progress,
        )
    if output is not None:
        found.save(output, force)
    present(as_json, calibration_json, calibration_page, found)
    if output is not None:
        note(f"wrote {output}; use it with --product {output}")
