"""`ascendtile explore`: the best tiling of an operator with its proof, for one case, many cases, or changed machines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from ..explore_inputs import (
    default_store,
    read_budget,
    read_changes,
    read_space,
    read_tiling,
    tell_of_earlier,
)
from ..options import (
    ASCENDC,
    AssignmentCommand,
    assignments,
    at_most_one,
    chosen_option,
    compiler_option,
    device_options,
    find_operator,
    input_option,
    json_option,
    l2_option,
    product_option,
    read_sizes,
    seed_option,
    set_option,
    version_option,
)

if TYPE_CHECKING:
    from ....tiling import Exploration

EXPORTS = ("csv", "json", "python")


MACHINE = "dtype product overrides cube_math_type options"


@click.command(cls=AssignmentCommand)
@click.argument("op", metavar="OP")
@click.option(
    "--case", metavar="C", help="A case of `ascendtile ops OP`; without, the first one listed there."
)
@click.option(
    "--cases", metavar="all|C1,C2", help="Several cases: a table, and the best single tiling for them."
)
@assignments("--size", help="Sizes of your own instead of a case: --size m=64 n=512 k=80.")
@input_option
@click.option("--dtype", metavar="D", help="Data type; without, the first that the product takes.")
@product_option
@compiler_option
@version_option
@l2_option
@set_option
@chosen_option("--cube-math-type", "M", "KEEP_DTYPE", "Mode of the Cube.")
@assignments("--option", "options", help="Arguments of the op itself: --option reduction=sum.")
@assignments(
    "--space",
    metavar="NAME=V1,V2...",
    help="Values of a knob, of dtype or cube_math_type: block_m=64,128, 16..256 (powers of two), 32..96+32 (steps).",
)
@click.option(
    "--objective",
    type=click.Choice(("time", "error", "ub")),
    default="time",
    show_default=True,
    help="Made small.",
)
@click.option(
    "--constraint",
    "constraints",
    multiple=True,
    metavar="FIGURE<X",
    help="What a tiling must be below: error<1e-3, time<20 (us) or ub<131072 (bytes). May repeat.",
)
@click.option("--budget", metavar="N|60s", help="Tilings to evaluate at most, or seconds of this command.")
@chosen_option("--workers", "N|ADDRESS", "1", "Processes, or tcp://host:8786.")
@click.option("--fallback", is_flag=True, help="Go on in this process if no cluster answers, or it is lost.")
@click.option(
    "--worker-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="After which a worker process without a sign of life (stopped, frozen) is replaced.",
)
@click.option(
    "--sampler",
    type=click.Choice(("auto", "exact", "tpe", "nsga2", "random")),
    default="auto",
    show_default=True,
    help="auto: exact where the space can be listed, else tpe.",
)
@seed_option("Of sampler and inputs.")
@click.option(
    "--store",
    metavar="FILE",
    help="Where results are kept; without, a file in the user's cache folder, or memory.",
)
@click.option("--resume", is_flag=True, help="Go on with an interrupted sweep: the store must be there.")
@assignments("--what-if", metavar="NAME=V1,V2...", help="Changed figures: buffers.ub=128KiB,256KiB.")
@click.option(
    "--diff", nargs=2, metavar="A B", help="Compare two tilings pipe by pipe: block_m=64,group=1 block_m=128."
)
@click.option(
    "--top", type=click.IntRange(min=1, max=1000), default=5, show_default=True, help="Tilings to list."
)
@click.option(
    "--export",
    type=click.Choice(EXPORTS),
    help="Print all results as CSV or JSON, or a Python dict to paste.",
)
@json_option
def command(**options: Any) -> None:
    """Find the best tiling of an operator, and prove it.

    Every legal tiling gets a closed-form lower bound; the engine times them in the order of their bounds until no bound is
    below the best time. Results are kept: an interrupted sweep goes on where it was, repeated tilings are free.

    Example: ascendtile explore matmul --case 1024 --dtype float16 --space buffers=2 --workers 2
    """
    asked = SimpleNamespace(**options)
    _check(asked)
    form = _diff if asked.diff else _cases if asked.cases else _what_if if asked.what_if else _one
    from ....simulator.device import device
    from ..progress import stopped_by_signals

    with stopped_by_signals(), device(**device_options(asked, ASCENDC)):
        form(asked)


def _check(asked: SimpleNamespace) -> None:
    """Refuse what contradicts itself before anything is computed."""
    sources = {"--case": asked.case, "--cases": asked.cases, "--size": asked.size}
    sources["--input"] = asked.input_file
    at_most_one(sources, "each say what to explore")
    at_most_one({"--input": asked.input_file, "--diff": asked.diff}, "do not go together")
    kinds = {"--cases": asked.cases, "--what-if": asked.what_if, "--diff": asked.diff}
    views = at_most_one(kinds, "are tables of their own")
    if asked.export and asked.as_json:
        raise click.UsageError("--export and --json both print data; give one of them")
    for flag, x in (("--store", asked.store), ("--cases", asked.cases), ("--case", asked.case)):
        if x is not None and not x.strip():
            raise click.UsageError(f"{flag} is empty; give it a value, or leave it out")
    if asked.export and (asked.diff or asked.what_if):
        raise click.UsageError(f"--export has no form for {views[0]}; take --json")
    if asked.store and asked.resume:
        _require_store(asked.store)


def _require_store(path: str | None) -> None:
    from pathlib import Path

    if path is None or not Path(path).is_file():
        raise click.UsageError(f"--resume: there is no store {path}; leave --resume out to begin a sweep")


def _options(asked: SimpleNamespace) -> dict[str, Any]:
    """Arguments of `explore` that every form takes."""
    from ....simulator.record.files import picked

    usual = default_store()
    if asked.resume:
        _require_store(asked.store or usual)
    elif not asked.store:
        tell_of_earlier(usual)
    points, seconds = read_budget(asked.budget)
    given = picked(asked, f"{MACHINE} objective workers fallback worker_timeout sampler seed")
    given |= {"store": asked.store or usual} if asked.store or asked.resume else {"cache": usual}
    given["constraint"] = list(asked.constraints)
    return {**given, "space": read_space(asked.space), "budget": points, "seconds": seconds}


def _inputs(asked: SimpleNamespace) -> Any:
    """The arrays of --input; None for a case."""
    from ..inputs import read_inputs

    return read_inputs(asked.input_file, find_operator(asked.op)) if asked.input_file else None


def _case(asked: SimpleNamespace) -> Any:
    return read_sizes(asked.size) or asked.case


def _one(asked: SimpleNamespace) -> None:
    from ....tiling import Interrupted, explore
    from ..progress import exploring

    op = find_operator(asked.op)
    try:
        with exploring(f"{op.name} {asked.case or ''}".strip(), asked.objective) as report:
            began = click.get_current_context().obj
            found = explore(
                op, case=_case(asked), inputs=_inputs(asked), report=report, began=began, **_options(asked)
            )
    except Interrupted as stopped:
        _show_one(asked, stopped.exploration)
        raise
    _show_one(asked, found)


def _show_one(asked: SimpleNamespace, found: Exploration) -> None:
    from ...facts.repeat_command import repeat_tiling
    from ...terminal.console import PAGE_WIDTH, note, show, show_json
    from ...terminal.explore_view import exploration_page
    from ..explore_export import as_python, exploration_csv

    if asked.as_json:
        show_json(found.documented(asked.top))
    elif asked.export == "json":
        show_json(found.to_dict(len(found.found)))
    elif asked.export:
        click.echo((exploration_csv if asked.export == "csv" else as_python)(found), nl=False)
    else:
        show(exploration_page(found, asked.top))
        if found.best is not None:
            command = repeat_tiling(found.op, found.best.point, vars(asked), PAGE_WIDTH)
            click.echo(f"\nrun the best one:\n{command}")
        return
    for message, count in found.failed.items():  # what data has no place for
        note(f"{count:,} tilings failed: {message}")
    for text in found.notes:
        note(text)


def _cases(asked: SimpleNamespace) -> None:
    from ....tiling import Shapes, explore_shapes
    from ...terminal.console import present
    from ...terminal.explore_tables import shapes_page
    from ..explore_export import shapes_csv
    from ..progress import exploring

    op = find_operator(asked.op)
    names: Any = "all" if asked.cases == "all" else asked.cases.split(",")
    with exploring(f"{op.name} {asked.cases}", asked.objective) as report:
        found = explore_shapes(op, names, report=report, **_options(asked))
    if asked.export in ("csv", "python"):
        click.echo(shapes_csv(found) if asked.export == "csv" else found.to_python(), nl=False)
    else:
        present(asked.as_json or asked.export == "json", Shapes.to_dict, shapes_page, found)


def _what_if(asked: SimpleNamespace) -> None:
    from ....tiling import Variants, what_if
    from ...terminal.console import present
    from ...terminal.explore_tables import variants_page
    from ..progress import exploring

    op = find_operator(asked.op)
    with exploring(op.name, asked.objective) as report:
        given = {"case": _case(asked), "inputs": _inputs(asked), **_options(asked)}
        found = what_if(op, read_changes(asked.what_if), report=report, **given)
    present(asked.as_json, Variants.to_dict, variants_page, found)


def _diff(asked: SimpleNamespace) -> None:
    from ....simulator.record.files import picked
    from ....tiling import Difference, difference
    from ...terminal.console import present
    from ...terminal.explore_tables import difference_page

    op = find_operator(asked.op)
    first, second = (read_tiling(t) for t in asked.diff)
    found = difference(op.name, first, second, case=_case(asked), **picked(asked, MACHINE))
    present(asked.as_json, Difference.to_dict, difference_page, found)
