"""What results have to keep, as users ask for it: `--need bits=12`, `--rtol` and `--atol`, or `--rule torch:fp16`."""

from __future__ import annotations

from typing import Any

import click

from .options import Decorator, assignments, at_most_one


def need_options(need: str, thresholds: str) -> Decorator:
    """`--need`, `--rtol`, `--atol` and `--rule`. need: help of the first; thresholds: whose a rule takes without a type."""
    options = (
        assignments("--need", help=need),
        click.option(
            "--rtol",
            type=float,
            metavar="X",
            help="Likewise, with every |error| within atol + rtol |result|.",
        ),
        click.option("--atol", type=float, metavar="X", help="See --rtol."),
        click.option(
            "--rule",
            metavar="R[:TYPE]",
            help="Likewise, by torch, single-benchmark or mixed-tolerance with one type's thresholds (torch:fp16); without, "
            f"those of {thresholds}.",
        ),
    )

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def need_asked(asked: Any) -> dict[str, Any] | None:
    """What has to be kept; None where nothing was asked for."""
    tolerance = {n: x for n, x in (("rtol", asked.rtol), ("atol", asked.atol)) if x is not None}
    at_most_one(
        {"--need": asked.need, "--rtol and --atol": tolerance, "--rule": asked.rule},
        "each say what is needed",
    )
    if asked.rule:
        rule, _, fmt = asked.rule.partition(":")
        return {"rule": rule, "fmt": fmt or None}
    if asked.need:
        odd = [n for n in asked.need if n != "bits"]
        if odd:
            raise click.BadParameter(
                f"{odd[0]!r} is nothing to need; write --need bits=12, or --rtol, --atol, --rule"
            )
        return {"bits": _number(asked.need["bits"])}
    return tolerance or None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(f"bits is a number such as 12, got {text!r}") from None
