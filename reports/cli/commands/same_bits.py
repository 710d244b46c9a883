"""`ascendtile same-bits`: whether results have the same bits however they are made."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from ..options import (
    AssignmentCommand,
    assignments,
    at_most_one,
    chosen_option,
    find_operator,
    json_option,
    numerics_option,
    product_option,
    read_assignments,
    read_sizes,
    set_option,
)
from ..script_command import is_script

if TYPE_CHECKING:
    from ....simulator.call import Call
    from ....simulator.errors import UsageError
    from ....simulator.orders.verdict import SameBits

DIFFERENT = 1  # exit status
OF_OPERATORS = ("case", "size", "dtype", "tiling", "options", "cube_math_type")
OF_SCRIPTS = ("batch_name", "given")


def read_names(ctx: click.Context, option: click.Parameter, text: str | None) -> tuple[str, ...]:
    """ "a,b" as a tuple."""
    return tuple(part.strip() for part in text.split(",") if part.strip()) if text else ()


def read_numbers(ctx: click.Context, option: click.Parameter, text: str | None) -> tuple[int, ...]:
    """ "1,4" as numbers."""
    parts = read_names(ctx, option, text)
    bad = [part for part in parts if not (part.isascii() and part.isdigit() and len(part) < 10 and int(part))]
    if bad:
        raise click.BadParameter(f"{bad[0]!r} is no number from 1 on; write 1,4,16", ctx, option)
    return tuple(map(int, parts))


def read_values(ctx: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, list[str]]:
    """ "BLOCK=64,128" as values by name."""
    out = {
        name: [x.strip() for x in text.split(",")]
        for name, text in read_assignments(ctx, option, given).items()
    }
    for name, values in out.items():
        if not all(values):
            raise click.BadParameter(f"{name} lacks a value; write {name}=64,128", ctx, option)
    return out


@click.command(cls=AssignmentCommand)
@click.argument("target", metavar="OP|SCRIPT[:KERNEL]")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENT...]")
@click.option(
    "--vary",
    metavar="A,A",
    default="batch,tiling,cores,order",
    show_default=True,
    callback=read_names,
    help="What is varied, one at a time: batch, tiling, cores, order (of programs), product.",
)
@assignments(
    "--tilings",
    callback=read_values,
    help="Values to compare: --tilings BLOCK=64,128 (a compile-time size of a kernel, a knob of an operator). Without, some "
    "that do the same work.",
)
@click.option(
    "--batch", metavar="N,N", callback=read_numbers, help="Batches; of an operator the largest is run whole."
)
@click.option(
    "--batch-name", metavar="NAME", help="The integer argument of a kernel that is its batch, or grid."
)
@click.option(
    "--given", metavar="X,X", callback=read_names, help="Tensors of a kernel whose values are as they are."
)
@click.option(
    "--products", metavar="P,P", callback=read_names, help="Products to compare; without, all that run it."
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=4, show_default=True, help="Drawn orders of programs."
)
@click.option(
    "--tries",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    help="Sets of inputs that are run where orders differ.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=20.0,
    show_default=True,
    help="Of looking for inputs where orders differ.",
)
@click.option(
    "--signed-zeros", is_flag=True, help="-0 and 0 are different bits; without, a zero may have either sign."
)
@click.option("--any-inputs", is_flag=True, help="Inputs may be infinite or NaN; without, they are finite.")
@click.option("--case", metavar="NAME", help="A case of `ascendtile ops OP`; without, tiny.")
@assignments("--size", help="Sizes of your own instead: --size rows=8 cols=64.")
@click.option("--dtype", metavar="D", help="Data type of an operator's inputs.")
@assignments("--tiling", help="Knobs of an operator in every configuration: --tiling combine=two_phase.")
@assignments("--option", "options", help="Arguments of the op itself.")
@product_option
@set_option
@numerics_option
@chosen_option("--cube-math-type", "M", "KEEP_DTYPE", "Precision mode of the Cube.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Prove that results have the same bits, or show an input.

    Each element of a result is compared between batches, tilings, numbers of cores, orders of programs, products. The
    expression of each element (the tree of its additions and all else) is compared between configurations. Equal ones
    are a proof; for different ones inputs are searched that give different bits, and made as few as possible. Of a script
    each kernel's first launch is looked at, with its own data and grid; arguments of the script stand behind --.

    Exit status: 0 the same for all, proven; 1 not; 2 wrong usage or input.

    Examples: ascendtile same-bits rms_norm_grad --vary cores,order

              ascendtile same-bits softmax.py:kernel --vary tiling --tilings BLOCK=128,256
    """
    asked = SimpleNamespace(**options, failed=False, not_compared={})
    name, _, kernel = asked.target.rpartition(":")
    script = asked.target if is_script(asked.target) else name if is_script(name) else ""
    at_most_one({"--case": asked.case, "--size": asked.size}, "each say what to compare", ctx)
    verdicts = (
        _of_script(ctx, asked, script, kernel if script == name else "") if script else [_of_op(ctx, asked)]
    )
    from ...terminal.console import present
    from ...terminal.orders.page import same_bits_json, same_bits_page

    def as_json(found: list[SameBits]) -> dict[str, Any]:
        return same_bits_json(found, asked.not_compared, not asked.failed)

    present(asked.as_json, as_json, same_bits_page, verdicts)
    whole = not asked.failed and not asked.not_compared
    sys.exit(0 if whole and all(v.same for v in verdicts) else DIFFERENT)


def _refuse(ctx: click.Context, asked: SimpleNamespace, names: tuple[str, ...], of: str) -> None:
    for name in names:
        source = ctx.get_parameter_source(name)
        if getattr(asked, name) and source is not None and source.name == "COMMANDLINE":
            flag = "--option" if name == "options" else f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{flag} is for {of}; {asked.target} is none", ctx)


def _search(asked: SimpleNamespace) -> dict[str, Any]:
    """How inputs are searched and compared."""
    return {
        "tries": asked.tries,
        "seconds": asked.seconds,
        "signed_zeros": asked.signed_zeros,
        "finite": not asked.any_inputs,
    }


def _of_op(ctx: click.Context, asked: SimpleNamespace) -> SameBits:
    from ....kernels import same_bits

    _refuse(ctx, asked, OF_SCRIPTS, "scripts")
    if asked.arguments:
        raise click.UsageError(
            f"{asked.arguments[0]}: an operator takes no arguments; use --option NAME=VALUE", ctx
        )
    return same_bits(
        find_operator(asked.target),
        read_sizes(asked.size) or asked.case,
        asked.vary,
        dtype=asked.dtype,
        product=asked.product,
        cube_math_type=asked.cube_math_type,
        tiling=asked.tiling,
        tilings=asked.tilings,
        batch=asked.batch,
        products=asked.products,
        seeds=asked.seeds,
        options=asked.options,
        overrides=asked.overrides,
        numerics=asked.numerics,
        **_search(asked),
    )


# ---- scripts ----


def _of_script(ctx: click.Context, asked: SimpleNamespace, script: str, kernel: str) -> list[SameBits]:
    """The verdict of each kernel that the script launches, or of one."""
    from ....simulator.device import device_everywhere
    from ....simulator.errors import UsageError
    from ....simulator.orders.varying import Asked
    from ...terminal.console import note

    _refuse(ctx, asked, tuple(n for n in OF_OPERATORS if n != "cube_math_type"), "operators")
    sizes = {n: list(map(_whole, x)) for n, x in asked.tilings.items()}
    what = Asked(
        asked.vary, sizes, asked.batch, asked.batch_name or "", asked.products, asked.seeds, asked.given
    )
    found: dict[str, SameBits] = {}
    refused: dict[str, UsageError] = {}
    chosen = {"product": asked.product, "overrides": asked.overrides, "cube_math_type": asked.cube_math_type}
    chosen |= {"numerics": asked.numerics} if asked.numerics else {}
    with device_everywhere(**chosen, values=True, time=False), _quiet(asked.as_json):
        status = _run(asked, script, kernel, what, found, refused)
    if refused and not found:
        raise next(iter(refused.values()))
    asked.not_compared = {name: str(why) for name, why in refused.items()}
    for name, reason in asked.not_compared.items():
        note(f"{name} is not compared: {reason}")
    if not found:
        which = f"no kernel {kernel!r}" if kernel else "no kernel"
        raise UsageError(f"{script} launched {which} until it ended with status {status}")
    if status:
        note(
            f"the script ended with status {status}: what it would have launched after that is not looked at"
        )
        asked.failed = True
    return list(found.values())


def _run(
    asked: SimpleNamespace,
    script: str,
    kernel: str,
    what: Any,
    found: dict[str, SameBits],
    refused: dict[str, UsageError],
) -> int:
    """Exit status of the script. refused: kernels that could not be compared, among others that may be."""
    from ....simulator.errors import UsageError
    from ....simulator.observers import watch_calls
    from ....simulator.orders.varying import compare_launch
    from ....simulator.triton_shim.scripts.script import Script, run_script

    def look(call: Call) -> None:
        name = call.kernel.name
        if name in found or name in refused or (kernel and name != kernel):
            return
        try:
            found[name] = compare_launch(call, what, **_search(asked))
        except UsageError as e:
            if kernel:
                raise
            refused[name] = e

    if not os.path.isfile(script):
        raise UsageError(f"{script}: no such file")
    with watch_calls(look):
        outcome = run_script(Script(script, asked.arguments), lambda run: None)
    return outcome.status


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise click.BadParameter(f"a compile-time size is a number such as 64, got {text!r}")
    return int(text)


@contextlib.contextmanager
def _quiet(as_json: bool) -> Iterator[None]:
    """What a script prints is no part of the JSON object."""
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        yield
