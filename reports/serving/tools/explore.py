"""The tool `explore`: the fastest tiling of an operator, with its proof or how far the search came."""

from __future__ import annotations

from typing import Any

from .tool import (
    CASE,
    COMPILER,
    DTYPE,
    MODE,
    OP,
    OPTIONS,
    PRODUCT,
    SET,
    SIZES,
    Arguments,
    Tool,
    case_of,
    choice,
    number,
)

USUAL_BUDGET, MOST_BUDGET = 200, 10_000
SECONDS, MOST_SECONDS = 20, 600
ABOUT = (
    "Find the best tiling of an operator: every legal tiling gets a lower bound, the engine times them in that order until "
    "no bound is below the best time (`optimal` is true then, and `proof` says why). Ends after budget tilings or seconds. "
    "The result is that of `ascendtile explore --json`, with the notes."
)
VALUE = {"type": ["integer", "string", "boolean"], "maxLength": 100}
SPACE = {
    "type": "object",
    "maxProperties": 32,
    "additionalProperties": {"type": "array", "items": VALUE, "minItems": 1, "maxItems": 256},
    "description": 'Values of a knob instead of the usual ones: {"block_m": [64, 128]}; one value fixes it.',
}
LIMIT = {"type": "string", "pattern": r"^(error|time|ub)<[0-9.eE+-]{1,20}$"}
LIMITS = {
    "type": "array",
    "items": LIMIT,
    "maxItems": 3,
    "description": "What a tiling must be below: error<1e-3, time<20 (us), ub<131072 (bytes).",
}
PROPERTIES = {
    "op": OP,
    "case": CASE,
    "sizes": SIZES,
    "dtype": DTYPE,
    "options": OPTIONS,
    "product": PRODUCT,
    "set": SET,
    "compiler": COMPILER,
    "cube_math_type": MODE,
    "space": SPACE,
    "constraints": LIMITS,
    "objective": choice("What is made small; time without.", "time", "error", "ub"),
    "budget": number("Tilings to evaluate at most.", 1, MOST_BUDGET, USUAL_BUDGET),
    "seconds": number(
        "Seconds of the search at most; the server's own limit of a request holds, too.",
        1,
        MOST_SECONDS,
        SECONDS,
    ),
    "top": number("Tilings to list.", 1, 100, 5),
}
AS_THEY_ARE = ("dtype", "options", "product", "cube_math_type", "space", "objective")


def work(arguments: Arguments) -> dict[str, Any]:
    """One sweep in this process; nothing is kept."""
    from ....simulator.device import device
    from ....tiling import explore

    given = {n: arguments[n] for n in AS_THEY_ARE if n in arguments}
    given |= {"overrides": arguments.get("set"), "constraint": arguments.get("constraints", ())}
    given |= {"budget": arguments.get("budget", USUAL_BUDGET), "seconds": arguments.get("seconds", SECONDS)}
    with device(**{n: arguments[n] for n in ("compiler",) if n in arguments}):
        found = explore(arguments["op"], case=case_of(arguments), **given)
    shown: dict[str, Any] = found.documented(arguments.get("top", 5))
    return shown | {"notes": list(found.notes)}


TOOL = Tool("explore", "Find the best tiling", ABOUT, PROPERTIES, work, required=("op",))
