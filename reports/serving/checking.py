"""Requests against the schemas of their tools, before anything is done with them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from ...simulator.errors import UsageError
from .tools.catalogue import TOOLS
from .tools.tool import Tool

LONGEST = 300  # characters of a message: a value may be as long as the request


def known(name: str) -> Tool:
    """The tool of that name."""
    if name not in TOOLS:
        raise UsageError(f"no tool {name!r:.100}; there are {', '.join(TOOLS)}")
    return TOOLS[name]


def check(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Raises `UsageError` with the argument and the rule that it breaks. A path counts as the text that it stands for."""
    paths = tool.paths or {}
    counted = {**arguments, **{text: "" for path, text in paths.items() if path in arguments}}
    lacking = [n for n in tool.required if n not in counted]
    if lacking:
        raise UsageError(f"{tool.name}: {' and '.join(lacking)} must be given{_other(lacking, paths)}")
    found = next(iter(_validator(tool.name).iter_errors(dict(arguments))), None)
    if found is not None:
        raise UsageError(f"{tool.name}: {_words(found)}")


def _other(lacking: list[str], paths: Mapping[str, str]) -> str:
    ways = [path for path, text in paths.items() if text in lacking]
    return f", or {' and '.join(ways)} instead" if ways else ""


@cache
def _validator(name: str) -> Any:
    schema = {k: x for k, x in TOOLS[name].schema.items() if k != "required"}
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def _words(error: ValidationError) -> str:
    place = "".join(f"[{p!r}]" if i else str(p) for i, p in enumerate(error.absolute_path))
    rule = error.validator
    if rule in ("maxLength", "maxItems", "maxProperties"):
        return f"{place} has {len(error.instance)} {_UNITS[rule]}, at most {error.validator_value} are taken"
    if rule == "minLength":
        return f"{place} is empty"
    text = error.message if len(error.message) <= LONGEST else f"{error.message[:LONGEST]}..."
    return f"{place}: {text}" if place else text


_UNITS = {"maxLength": "characters", "maxItems": "items", "maxProperties": "entries"}
