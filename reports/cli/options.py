"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from ...kernels.operator.operator import Operator


Decorator = Callable[[Any], Any]


class AssignmentCommand(click.Command):
    """A command whose options of `name=value` take several after one flag: `--tiling rows=2 cols=1024`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        flags = {f for p in self.params if isinstance(p, AssignmentOption) for f in p.opts}
        return super().parse_args(ctx, spread(args, flags))


class AssignmentOption(click.Option):
    """An option that may repeat and becomes a dict of texts."""

    def __init__(self, param_decls: Sequence[str] | None = None, **attributes: Any) -> None:
        settings = {"multiple": True, "metavar": "NAME=VALUE...", "callback": read_assignments}
        super().__init__(param_decls, **{**settings, **attributes})


def spread(args: Iterable[str], flags: set[str]) -> list[str]:
    """`--tiling a=1 b=2` as `--tiling a=1 --tiling b=2`, which is what click reads."""
    out: list[str] = []
    flag: str | None = None  # the option whose values are being read
    for arg in args:
        name = arg.partition("=")[0]
        if flag and out[-1] != flag and "=" in arg and not arg.startswith("-"):
            out.append(flag)
        elif name in flags:
            flag = name
        elif flag and out[-1] != flag:
            flag = None
        out.append(arg)
    return out


def read_assignments(ctx: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """("a=1", "b=2") as a dict; wrong usage if one is not `name=value` or a name is there twice."""
    out: dict[str, str] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", ctx, option)
        if name in out:
            raise click.BadParameter(f"{name} is given twice, {out[name]!r} and {value!r}", ctx, option)
        out[name] = value
    return out


def is_numerics_file(text: str) -> bool:
    """Whether what stands after `--numerics` is a file, and no assignment."""
    return text.endswith(".toml") and "=" not in text


def read_numerics(ctx: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """As `read_assignments`; a text that ends in .toml and assigns nothing is a file of choices."""
    from ...simulator.precision.numerics_file import FILE

    texts = (f"{FILE}={t}" if is_numerics_file(t) else t for t in given)
    return read_assignments(ctx, option, tuple(texts))


def assignments(*names: str, help: str, **attributes: Any) -> Decorator:
    """An option of `name=value`."""
    return click.option(*names, cls=AssignmentOption, help=help, **attributes)


def seed_option(help: str) -> Decorator:
    """`--seed`."""
    return click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help=help)


def chosen_option(name: str, metavar: str, default: str, help: str) -> Decorator:
    """An option whose usual value is shown."""
    return click.option(name, metavar=metavar, default=default, show_default=True, help=help)


ONE_OBJECT = "Print one JSON object on standard output; everything else goes to standard error."
json_option = click.option("--json", "as_json", is_flag=True, help=ONE_OBJECT)
A_PRODUCT = "A product of `ascendtile products`, or a path to a TOML file; without, ascend910b3."
product_option = click.option("--product", metavar="P", help=A_PRODUCT)
TRITON_ASCEND, ASCENDC = "triton-ascend", "ascendc"  # as the device has them, which is loaded later
AN_AUTHOR = "Who makes the code: triton-ascend, or an author of Ascend C by hand; without, ascendc for operators only."
compiler_option = click.option("--compiler", type=click.Choice((TRITON_ASCEND, ASCENDC)), help=AN_AUTHOR)
A_RELEASE = "Release of triton-ascend: 9.0 (the usual one) tries again after an overflow, 8.5 does not."
version_option = click.option("--compiler-version", type=click.Choice(("9.0", "8.5")), help=A_RELEASE)
A_FIGURE = "Change a figure of the product: --set buffers.ub=256KiB. May repeat."
L2_FORMS = "loop, cold, warm, or by tensor argument x=warm,y=cold"


def read_l2(ctx: click.Context, option: click.Parameter, text: str) -> str | dict[str, str]:
    """ "cold", or "x=warm,y=cold" as a dict; wrong usage for anything else."""
    from ...simulator.l2.state import is_l2

    parts = text.split(",")
    named = {n.strip(): w.strip() for n, _, w in (part.partition("=") for part in parts)}
    found = named if "=" in text else text.strip()
    if not is_l2(found) or "" in named or len(named) < len(parts):
        raise click.BadParameter(f"{text!r} is not one of {L2_FORMS}", ctx, option)
    return found


l2_option = click.option(
    "--l2",
    metavar="L2",
    default="loop",
    show_default=True,
    callback=read_l2,
    help=f"What is in L2 at the start: {L2_FORMS}. In a loop it is what the same run left.",
)
set_option = assignments("--set", "overrides", help=A_FIGURE)
numerics_option = assignments(
    "--numerics",
    help="Choices of the units: --numerics cube_block_k=1 overflow_mode=saturate; a wrong one lists all. "
    "Or a file of them: --numerics FILE.toml.",
    metavar="NAME=VALUE...|FILE.toml",
    callback=read_numerics,
)
input_option = click.option(
    "--input", "input_file", metavar="FILE.npz", help="Inputs by name instead of a case (.npy for one)."
)


check_option = click.option(
    "--check",
    is_flag=True,
    help="Make every check of accesses, also those that cost time: at most three times that of the values.",
)
strict_option = click.option(
    "--strict",
    is_flag=True,
    help="Exit status 1 where a fault (what is wrong or undefined on the device) or a what-if is found.",
)
masked_option = click.option(
    "--masked",
    type=click.Choice(("zero", "poison")),
    default="zero",
    show_default=True,
    help="What masked-out lanes of a load without other hold; poison is NaN, of integers the smallest.",
)
outside_option = click.option(
    "--out-of-bounds",
    type=click.Choice(("error", "warn")),
    default="error",
    show_default=True,
    help="What an access outside of its tensor is: an error, or a fault that is told while the launch goes on.",
)


def errors_options(command: Any) -> Any:
    """`--errors` and its kin: errors of kernels that come without a reference."""
    options = (
        click.option(
            "--errors",
            is_flag=True,
            help="Evaluate each kernel in float64 without rounding beside its values: errors of all it writes.",
        ),
        click.option(
            "--error-lines",
            is_flag=True,
            help="Also which lines' roundings make up the errors: one evaluation more for each line that rounds.",
        ),
        click.option(
            "--float64-reference",
            metavar="F",
            help="Right outputs instead: FILE.npz by name of parameter, or MODULE:FUNCTION of the kernel's arguments.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def errors_asked(asked: Any) -> dict[str, Any]:
    """Options of the device for the errors of kernels."""
    if asked.float64_reference and (asked.errors or asked.error_lines):
        raise click.UsageError(
            "--float64-reference takes the place of --errors and --error-lines; give one of them"
        )
    if not (asked.float64_reference or asked.errors or asked.error_lines):
        return {}
    if asked.no_values:
        raise click.UsageError(
            "--errors, --error-lines and --float64-reference are about values, which --no-values leaves out"
        )
    if asked.float64_reference:
        from .inputs import read_reference

        return {"reference": read_reference(asked.float64_reference)}
    return {"errors": "lines" if asked.error_lines else True}


def checks_asked(asked: Any) -> dict[str, Any]:
    """Options of the device for what is to be checked."""
    return {"check": asked.check, "masked": asked.masked, "out_of_bounds": asked.out_of_bounds}


def check_checked(asked: Any) -> None:
    """What looks at values needs them."""
    given = {"--check": asked.check, "--masked poison": asked.masked != "zero"}
    for flag in (flag for flag, given in given.items() if given and asked.no_values):
        raise click.UsageError(f"{flag} is about values, which --no-values leaves out")


def at_most_one(given: Mapping[str, Any], rule: str, ctx: click.Context | None = None) -> list[str]:
    """The flags that have a value; wrong usage if several do. rule: what is said of them, "are tables of their own"."""
    flags = [flag for flag, value in given.items() if value]
    if len(flags) > 1:
        raise click.UsageError(f"{' and '.join(flags)} {rule}; give one of them", ctx)
    return flags


def check_inputs(ctx: click.Context, asked: Any, verb: str) -> None:
    """One source of inputs, and no choice of random ones beside a file."""
    sources = {"--case": asked.case, "--size": asked.size, "--input": asked.input_file}
    at_most_one(sources, f"each say what to {verb}", ctx)
    for name in ("seed", "distribution"):
        if asked.input_file and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"--{name} is for random inputs, --input brings its own; give one of them", ctx
            )


def check_timed(ctx: click.Context, asked: Any) -> None:
    """Something is left to do, and --explain has times to look at."""
    if asked.no_values and asked.no_time:
        raise click.UsageError("--no-values and --no-time together leave nothing to do", ctx)
    if asked.explain and asked.no_time:
        raise click.UsageError("--explain times launches again, which --no-time leaves out", ctx)


def code_by(asked: Any, usual: str) -> dict[str, str]:
    """Options of the device for what was asked of the compiler. usual: who makes the code if nobody asks."""
    if asked.compiler_version and (asked.compiler or usual) == ASCENDC:
        raise click.UsageError(
            f"--compiler-version {asked.compiler_version} is of {TRITON_ASCEND}; this code is by {ASCENDC}: "
            f"add --compiler {TRITON_ASCEND}, or leave it out"
        )
    given = {"compiler": asked.compiler, "compiler_version": asked.compiler_version}
    return {n: x for n, x in given.items() if x}


def device_options(asked: Any, usual: str) -> dict[str, Any]:
    """`code_by`, and what is in L2."""
    return {**code_by(asked, usual), "l2": asked.l2}


def read_sizes(given: dict[str, str]) -> dict[str, int | tuple[int, ...]]:
    """rows=64 is a number, shape=8x3x5 is dimensions."""
    return {name: _size(name, text) for name, text in given.items()}


def _size(name: str, text: str) -> int | tuple[int, ...]:
    parts = text.replace(",", "x").split("x")
    if not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
        raise click.BadParameter(
            f"{name} must be a number such as 64, or dimensions such as 8x3x5, got {text!r}"
        )
    numbers = tuple(int(part) for part in parts)
    return numbers[0] if len(numbers) == 1 else numbers


def find_operator(name: str) -> Operator:
    """The operator of that name, also as aclnn spells it: RmsNormGrad, aclnnRmsNormGrad. `UsageError` if none."""
    from ...kernels import get_operator, operators

    wanted = _plain(name)
    return get_operator(next((op for op in operators() if _plain(op) == wanted), name))


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower().removeprefix("aclnn")
