"""`ascendtile chain`: a chain of operators with formats by tensor: time, errors, blame, and the cheapest that is enough."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..chain_inputs import find_chain, read_choices, read_named
from ..explore_inputs import default_store, read_budget
from ..needs import need_asked, need_options
from ..options import (
    ASCENDC,
    AssignmentCommand,
    assignments,
    chosen_option,
    compiler_option,
    device_options,
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
    from ....kernels.chains import Chain, ChainRun

NUMBERS = "formats modes seed distribution"
PICTURES = (".png", ".svg", ".pdf")


@click.command(cls=AssignmentCommand)
@click.argument("chain", metavar="[NAME|FILE.py]", required=False)
@assignments(
    "--size", help="Sizes of the chain: --size tokens=256 hidden=1024; the others have their usual values."
)
@assignments(
    "--formats",
    callback=read_named,
    metavar="TENSOR=F...",
    help="Formats of tensors, of groups, or of all: --formats all=fp16,y=fp32; without, fp32. One that the product does not "
    "store is a what-if.",
)
@assignments(
    "--modes",
    callback=read_named,
    metavar="STEP=M...",
    help="cubeMathTypes of steps, of groups, or of products: --modes products=USE_HF32; without, KEEP_DTYPE.",
)
@product_option
@compiler_option
@version_option
@l2_option
@set_option
@numerics_option
@input_option
@chosen_option(
    "--distribution", "D", "normal", "Of the random inputs: normal, heavy, lognormal, uniform or cancel."
)
@seed_option("Of the random inputs.")
@need_options("Bits that every output has to keep: --need bits=10. Without them, exit status 1.", "fp32")
@click.option("--lines", is_flag=True, help="Also which lines of every step's kernels make up the errors.")
@click.option(
    "--search", is_flag=True, help="Find the cheapest formats and modes that keep the need, with the proof."
)
@assignments(
    "--space",
    callback=read_choices,
    metavar="NAME=V,V...",
    help="What --search chooses among: --space weights=fp16,bf16 y=fp16,fp32 make_y=KEEP_DTYPE,USE_HF32; without, every "
    "group fp16 or fp32, in every mode.",
)
@click.option("--budget", metavar="N|60s", help="Assignments that --search evaluates at most, or seconds.")
@click.option(
    "--store",
    metavar="FILE",
    help="Where --search keeps results; without, a file in the user's cache folder.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Also draw error and time by step: a .png, .svg or .pdf; of --search those of the answer.",
)
@click.option("--no-time", is_flag=True, help="Values and errors only.")
@click.option("--no-values", is_flag=True, help="Time only.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Run a chain of operators: error, blame, time.

    Blame is which roundings make up the error of an output: by step, by tensor, and with --lines by source line.

    Without a name it lists the chains that come with ascendtile. A file of yours defines CHAIN, a Chain of
    ascendtile.kernels.chains. With --need, --rtol and --atol, or --rule the exit status is 1 where an output does not keep
    it; with --search, where no assignment does, and then the nearest one is shown.

    Example: ascendtile chain mlp --search --need bits=10
    """
    asked = SimpleNamespace(**options)
    _check(ctx, asked)
    from ....simulator.device import device
    from ..progress import stopped_by_signals

    if asked.chain is None:
        _list(asked)
        return
    chain = find_chain(asked.chain)
    made = device_options(asked, ASCENDC)
    with (
        device(asked.product, overrides=asked.overrides, numerics=asked.numerics, **made),
        stopped_by_signals(),
    ):
        if not (_search if asked.search else _run)(chain, asked):
            sys.exit(1)


def _check(ctx: click.Context, asked: SimpleNamespace) -> None:
    """Refuse what contradicts itself before anything is computed."""
    given = [
        p.opts[0]
        for p in ctx.command.params
        if ctx.get_parameter_source(p.name or "") is ParameterSource.COMMANDLINE
    ]
    if asked.chain is None and (odd := [x for x in given if x != "--json"]):
        raise click.UsageError(f"{odd[0]} is of a chain; give its name, or leave it out to list them", ctx)
    need = need_asked(asked)
    if asked.search and need is None:
        raise click.UsageError(
            "--search asks what is enough: give --need bits=10, --rtol and --atol, or --rule", ctx
        )
    for flag in ("--space", "--budget", "--store"):
        if flag in given and not asked.search:
            raise click.UsageError(f"{flag} is of --search; add it, or leave {flag} out", ctx)
    for flag, value in (
        ("--no-time", asked.no_time),
        ("--no-values", asked.no_values),
        ("--lines", asked.lines),
    ):
        if asked.search and value:
            raise click.UsageError(
                f"--search needs times and values, and makes no lines; leave {flag} out", ctx
            )
    if asked.no_values and (asked.no_time or asked.lines or need):
        raise click.UsageError(
            "--no-values leaves no errors: no need, no lines, and with --no-time nothing to do", ctx
        )
    if asked.output is not None:
        _check_output(ctx, asked)
    if asked.input_file and {"--seed", "--distribution"} & set(given):
        raise click.UsageError("--seed and --distribution are of random inputs, --input brings its own", ctx)


def _check_output(ctx: click.Context, asked: SimpleNamespace) -> None:
    """Refuse a picture that could not be drawn or written."""
    if Path(asked.output).suffix.lower() not in PICTURES:
        raise click.UsageError(f"-o {asked.output}: the name must end in one of {', '.join(PICTURES)}", ctx)
    if asked.no_values:
        raise click.UsageError("--no-values leaves no errors to draw; leave -o or it out", ctx)
    from ....simulator.record.files import check_target

    check_target(asked.output)


def _draw(run: ChainRun, asked: SimpleNamespace) -> None:
    """The picture that was asked for, of the first output."""
    if asked.output is None:
        return
    from ...pictures import chain_blame, save
    from ...terminal.console import note

    save(chain_blame(run), asked.output)
    note(f"wrote {asked.output}")


def _list(asked: SimpleNamespace) -> None:
    from ....kernels.chains import chains
    from ...terminal.chains.page import chains_page, listed_chains
    from ...terminal.console import present

    present(asked.as_json, listed_chains, chains_page, chains())


def _given(chain: Chain, asked: SimpleNamespace) -> dict[str, Any]:
    """What a run and a search take."""
    from ....simulator.record.files import picked
    from ..inputs import read_inputs

    sizes: dict[str, Any] = dict(read_sizes(asked.size))
    inputs = read_inputs(asked.input_file) if asked.input_file else None
    return {**picked(asked, NUMBERS), "sizes": sizes, "inputs": inputs, "need": need_asked(asked)}


def _run(chain: Chain, asked: SimpleNamespace) -> bool:
    """Whether what is needed is kept."""
    from ....kernels.chains import ChainRun, run_chain
    from ...terminal.chains.page import run_page
    from ...terminal.console import present

    how = {"values": not asked.no_values, "time": not asked.no_time, "lines": asked.lines}
    run = run_chain(chain, **_given(chain, asked), **how)
    present(asked.as_json, ChainRun.to_dict, run_page, run)
    _draw(run, asked)
    return run.need is None or run.passed


def _search(chain: Chain, asked: SimpleNamespace) -> bool:
    """Whether some assignment keeps what is needed."""
    from ....kernels.chains.assignment import in_short
    from ....tiling import Interrupted
    from ....tiling.chains import ChainSearch, cheapest_chain
    from ...facts.repeat_command import repeat_chain
    from ...terminal.chains.page import search_page
    from ...terminal.console import PAGE_WIDTH, note, present
    from ..progress import exploring

    points, seconds = read_budget(asked.budget)
    kept = {"store": asked.store} if asked.store else {"cache": default_store()}
    try:
        with exploring(f"chain {chain.name}", "time") as report:
            found = cheapest_chain(
                chain,
                **_given(chain, asked),
                space=asked.space,
                budget=points,
                seconds=seconds,
                report=report,
                **kept,
            )
    except Interrupted as stopped:
        note(stopped.exploration.proof)
        raise
    present(asked.as_json, ChainSearch.to_dict, search_page, found)
    if found.run is not None:
        _draw(found.run, asked)
    if found.run is not None and not asked.as_json:
        formats, modes = in_short(chain, found.run.assignment)
        command = repeat_chain(asked.chain, formats, modes, vars(asked), PAGE_WIDTH)
        click.echo(f"\nrun {'it' if found.best else 'the nearest one'}:\n{command}")
    return found.best is not None
