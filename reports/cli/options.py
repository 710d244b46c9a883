"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

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


def json_option() -> Decorator:
    """`--json`."""
    text = "Print one JSON object on standard output; everything else goes to standard error."
    return click.option("--json", "as_json", is_flag=True, help=text)


def product_option() -> Decorator:
    """`--product`."""
    text = "A product of `ascendtile products`, or a path to a TOML file; without, ascend910b3."
    return click.option("--product", metavar="P", help=text)


def set_option() -> Decorator:
    """`--set`, for a changed product."""
    text = "Change a figure of the product: --set buffers.ub=256KiB. May repeat."
    return click.option("--set", "overrides", cls=AssignmentOption, help=text)


def numerics_option() -> Decorator:
    """`--numerics`, for choices that nobody published or a device can switch."""
    text = "Choices of the units: --numerics cube_block_k=1 overflow_mode=saturate; a wrong one lists all."
    return click.option("--numerics", cls=AssignmentOption, help=text)


def find_operator(name: str) -> Operator:
    """The operator of that name, also as aclnn spells it: RmsNormGrad, aclnnRmsNormGrad. `UsageError` if none."""
    from ...kernels import get_operator, operators

    wanted = _plain(name)
    return get_operator(next((op for op in operators() if _plain(op) == wanted), name))


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower().removeprefix("aclnn")
