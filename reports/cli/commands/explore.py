"""`ascendtile explore`: the best tiling of an operator with its proof, for one case, many cases, or changed machines."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ..explore_inputs import (
    read_budget,
    read_changes,
    read_space,
    read_tiling,
    store_path,
)
from ..options import (
    AssignmentCommand,
    AssignmentOption,
    find_operator,
    json_option,
    product_option,
    set_option,
)
from .run import read_sizes

if TYPE_CHECKING:
    from ....tiling import Exploration

EXPORTS = ("csv", "json", "python")


@dataclass(frozen=True)
class ExploreRequest:
    """What was asked for on the command line."""

    op: str
    case: str | None
    cases: str | None
    size: dict[str, str]
    dtype: str | None
    product: str | None
    overrides: dict[str, str]
    cube_math_type: str
    option: dict[str, str]
    space: dict[str, str]
    objective: str
    budget: str | None
    workers: str
    fallback: bool
    sampler: str
    seed: int
    store: str | None
    resume: bool
    what_if: dict[str, str]
    diff: tuple[str, str] | None
    top: int
    export: str | None
    as_json: bool


@click.command(cls=AssignmentCommand)
@click.argument("op", metavar="OP")
@click.option(
    "--case", metavar="C", help="A case of `ascendtile ops OP`; without, the first one listed there."
)
@click.option(
    "--cases", metavar="all|C1,C2", help="Several cases: a table, and the best single tiling for them."
)
@click.option(
    "--size", cls=AssignmentOption, help="Sizes of your own instead of a case: --size m=64 n=512 k=80."
)
@click.option("--dtype", metavar="D", help="Data type; without, the first that the product takes.")
@product_option()
@set_option()
@click.option(
    "--cube-math-type", metavar="M", default="KEEP_DTYPE", show_default=True, help="Mode of the Cube."
)
@click.option("--option", cls=AssignmentOption, help="Arguments of the op itself: --option reduction=sum.")
@click.option(
    "--space",
    cls=AssignmentOption,
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
@click.option("--budget", metavar="N|60s", help="Tilings to evaluate at most, or seconds of this command.")
@click.option(
    "--workers", default="1", show_default=True, metavar="N|ADDRESS", help="Processes, or tcp://host:8786."
)
@click.option("--fallback", is_flag=True, help="Go on in this process if no cluster answers.")
@click.option(
    "--sampler",
    type=click.Choice(("auto", "exact", "tpe", "nsga2", "random")),
    default="auto",
    show_default=True,
    help="auto: exact where the space can be listed, else tpe.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of sampler and inputs."
)
@click.option(
    "--store", metavar="FILE", help="Where results are kept; without, a file in the user's cache folder."
)
@click.option("--resume", is_flag=True, help="Go on with an interrupted sweep: the store must be there.")
@click.option(
    "--what-if",
    cls=AssignmentOption,
    metavar="NAME=V1,V2...",
    help="Changed figures: buffers.ub=128KiB,256KiB.",
)
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
@json_option()
def command(**asked: Any) -> None:
    """Find the best tiling of an operator, and prove it.

    Every legal tiling gets a closed-form lower bound; the engine times them in the order of their bounds until no bound is
    below the best time. Results are kept: an interrupted sweep goes on where it was, repeated tilings are free.

    Example: ascendtile explore matmul --case 1024 --dtype float16 --space buffers=2 --workers 2
    """
    request = ExploreRequest(**asked)
    _check(request)
    with _terminated():
        _run(request)


def _check(request: ExploreRequest) -> None:
    """Refuse what contradicts itself before anything is computed."""
    asked = {"--case": request.case, "--cases": request.cases, "--size": request.size}
    given = [flag for flag, x in asked.items() if x]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} each say what to explore; give one of them")
    kinds = {"--cases": request.cases, "--what-if": request.what_if, "--diff": request.diff}
    views = [flag for flag, x in kinds.items() if x]
    if len(views) > 1:
        raise click.UsageError(f"{' and '.join(views)} are tables of their own; give one of them")
    if request.export and request.as_json:
        raise click.UsageError("--export and --json both print data; give one of them")
    for flag, x in (("--store", request.store), ("--cases", request.cases), ("--case", request.case)):
        if x is not None and not x.strip():
            raise click.UsageError(f"{flag} is empty; give it a value, or leave it out")
    if request.export and (request.diff or request.what_if):
        raise click.UsageError(f"--export has no form for {views[0]}; take --json")
    if request.store and request.resume:
        _require_store(request.store)


def _require_store(path: str) -> None:
    from pathlib import Path

    if not Path(path).is_file():
        raise click.UsageError(f"--resume: there is no store {path}; leave --resume out to begin a sweep")


def _run(request: ExploreRequest) -> None:
    if request.diff:
        _diff(request, request.diff)
    elif request.cases:
        _cases(request, request.cases)
    elif request.what_if:
        _what_if(request)
    else:
        _one(request)


def _options(request: ExploreRequest) -> dict[str, Any]:
    """Arguments of `explore` that every form takes."""
    path = store_path(request.store)
    if request.resume:
        _require_store(path)
    points, seconds = read_budget(request.budget)
    return {
        "dtype": request.dtype,
        "product": request.product,
        "overrides": request.overrides,
        "cube_math_type": request.cube_math_type,
        "options": request.option,
        "space": read_space(request.space),
        "objective": request.objective,
        "budget": points,
        "seconds": seconds,
        "workers": request.workers,
        "fallback": request.fallback,
        "sampler": request.sampler,
        "seed": request.seed,
        "store": path,
    }


def _case(request: ExploreRequest) -> Any:
    return read_sizes(request.size) or request.case


def _one(request: ExploreRequest) -> None:
    from ....tiling import Interrupted, explore
    from ..explore_progress import exploring

    op = find_operator(request.op)
    try:
        with exploring(f"{op.name} {request.case or ''}".strip(), request.objective) as report:
            began = click.get_current_context().obj
            found = explore(op, case=_case(request), report=report, began=began, **_options(request))
    except Interrupted as stopped:
        _show_one(request, stopped.exploration)
        raise
    _show_one(request, found)


def _show_one(request: ExploreRequest, found: Exploration) -> None:
    from ...terminal.console import show, show_json
    from ...terminal.explore_view import exploration_page
    from ..explore_export import as_csv, as_python

    if request.as_json:
        show_json(found.documented(request.top))
    elif request.export == "csv":
        click.echo(as_csv(found), nl=False)
    elif request.export == "json":
        show_json(found.to_dict(len(found.found)))
    elif request.export == "python":
        click.echo(as_python(found), nl=False)
    else:
        show(exploration_page(found, request.top))
        _repeat(request, found)
        return
    _notes(found)


def _repeat(request: ExploreRequest, found: Exploration) -> None:
    """The command that runs the best tiling once more."""
    from ..explore_repeat import repeating

    if found.best is not None:
        click.echo(f"\nrun the best one:\n{repeating(found.op, found.best.point, vars(request))}")


def _notes(found: Exploration) -> None:
    """What the data on standard output has no place for."""
    from ...terminal.console import note

    for message, count in found.failed.items():
        note(f"{count:,} tilings failed: {message}")
    for words in found.notes:
        note(words)


def _cases(request: ExploreRequest, cases: str) -> None:
    from ....tiling import explore_shapes
    from ...terminal.console import show_json
    from ...terminal.explore_tables import shapes_page
    from ..explore_export import shapes_csv
    from ..explore_progress import exploring

    op = find_operator(request.op)
    names: Any = "all" if cases == "all" else cases.split(",")
    with exploring(f"{op.name} {cases}", request.objective) as report:
        found = explore_shapes(op, names, report=report, **_options(request))
    if request.export == "csv":
        click.echo(shapes_csv(found), nl=False)
    elif request.export == "python":
        click.echo(found.to_python(), nl=False)
    elif request.export == "json":
        show_json(found.to_dict())
    else:
        _show(request, found, shapes_page)


def _what_if(request: ExploreRequest) -> None:
    from ....tiling import what_if
    from ...terminal.explore_tables import variants_page
    from ..explore_progress import exploring

    op = find_operator(request.op)
    with exploring(op.name, request.objective) as report:
        found = what_if(
            op, read_changes(request.what_if), case=_case(request), report=report, **_options(request)
        )
    _show(request, found, variants_page)


def _diff(request: ExploreRequest, tilings: tuple[str, str]) -> None:
    from ....tiling import difference
    from ...terminal.explore_tables import difference_page

    op = find_operator(request.op)
    first, second = (read_tiling(t) for t in tilings)
    options: dict[str, Any] = {"case": _case(request), "dtype": request.dtype, "product": request.product}
    options |= {
        "overrides": request.overrides,
        "cube_math_type": request.cube_math_type,
        "options": request.option,
    }
    _show(request, difference(op.name, first, second, **options), difference_page)


def _show(request: ExploreRequest, found: Any, page: Callable[[Any], Any]) -> None:
    from ...terminal.console import show, show_json

    if request.as_json:
        show_json(found.to_dict())
    else:
        show(page(found))


@contextmanager
def _terminated() -> Iterator[None]:
    """SIGTERM stops the sweep as Ctrl-C does: what is done is kept and shown."""

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
