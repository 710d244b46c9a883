"""Tables of a product file, or of a run record, to checked figures. Nothing here touches the disk.

A figure is written `ub = { value = 196608, unit = "bytes", source = "INI", grade = "A" }`, with optional
`low`, `high` and `note`. A table as value is one figure per entry: `k0 = { value = { fp16 = 16 }, ... }`.
A figure of a file with a base may leave out value and unit: `ub = { source = "DOC", grade = "A" }` says only
who else confirms it. A bare value (`ub = 262144`, `ub = "256KiB"`) is what a user may write instead; its source
is the file itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..errors import ProductError
from .checks import suggestion
from .figure import Figure, Value
from .quantity import BadQuantityError, convert, is_text, number, show
from .spec import ASSUMED_GRADE, GRADES, FigureRule, rule_for

Table = Mapping[str, object]
FIELDS = ("value", "unit", "source", "grade", "low", "high", "note", "overridden")
REQUIRED_FIELDS = ("value", "unit", "source", "grade")
DEEPEST = 5


def read_figures(
    data: Table, where: str, bare_source: str | None, base: Mapping[str, Figure] | None = None
) -> dict[str, Figure]:
    """All figures of the sections in `data`. bare_source: the source of bare values, None to refuse them.

    base: the figures that entries without a value take it from, with its unit and what else they leave out.
    """
    figures: dict[str, Figure] = {}
    for key, entry in _entries(data, "", where):
        if base and key in base and isinstance(entry, Mapping) and not {"value", "unit"} & set(entry):
            entry = {**base[key].to_dict(), **entry}
        figures[key] = _read_one(key, entry, where, bare_source)
    return figures


def read_sources(data: object, where: str) -> dict[str, str]:
    """The table that explains the source ids."""
    if not isinstance(data, Mapping) or not all(map(is_text, (*data, *data.values()))):
        raise ProductError(
            f"{where}: [sources] must map source ids to texts that can be printed, got {show(data)}"
        )
    return {str(name): str(text) for name, text in data.items()}


def read_record(data: object) -> tuple[str, dict[str, Figure], dict[str, str]]:
    """Name, figures and sources of what `Product.to_dict` wrote."""
    where = "product of a run record"
    if not isinstance(data, Mapping) or not isinstance(data.get("figures"), Mapping):
        raise ProductError(f"{where}: must have name, sources and figures, got {show(data)}")
    name = data.get("name")
    if not isinstance(name, str):
        raise ProductError(f"{where}: name must be text, got {show(name)}")
    figures = {str(key): _read_one(str(key), entry, where, None) for key, entry in data["figures"].items()}
    return name, figures, read_sources(data.get("sources", {}), where)


def override(figure: Figure | None, key: object, raw: object, where: str) -> Figure:
    """The figure `key` with the value that a user typed; grade D, source "override"."""
    if not isinstance(key, str):
        raise ProductError(f"override of {where}: a key is text like buffers.ub, got {show(key)}")
    rule = _rule(key, f"override of {where}")
    value = _checked(key, raw, rule, None, f"override of {where}")
    note = None if figure is None else f"the product says {show(figure.value)}"
    return Figure(key, value, rule.unit, "override", ASSUMED_GRADE, note=note, overridden=True)


def _entries(data: Table, prefix: str, where: str) -> Iterator[tuple[str, object]]:
    for name, entry in data.items():
        key = f"{prefix}.{name}" if prefix else name
        if rule_for(key) is None and isinstance(entry, Mapping) and "value" not in entry:
            if prefix.count(".") >= DEEPEST:
                raise ProductError(f"{where}: {show(key)} is nested deeper than any figure")
            yield from _entries(entry, key, where)
        elif isinstance(entry, Mapping) and isinstance(entry.get("value"), Mapping):
            yield from _spread(key, entry, where)
        else:
            yield key, entry


def _spread(key: str, entry: Table, where: str) -> Iterator[tuple[str, object]]:
    """One entry per name of a table-valued figure; low and high are tables of the same names."""
    values = entry["value"]
    common = {name: item for name, item in entry.items() if name not in ("low", "high")}
    ranges = {name: entry[name] for name in ("low", "high") if name in entry}
    assert isinstance(values, Mapping)
    for name, bound in ranges.items():
        if not isinstance(bound, Mapping) or not set(bound) <= set(values):
            raise ProductError(
                f"{where}: {key}: {name} must be a table with the names of value, got {show(bound)}"
            )
    for name, value in values.items():
        bounds = {end: x[name] for end, x in ranges.items() if isinstance(x, Mapping) and name in x}
        yield f"{key}.{name}", {**common, "value": value, **bounds}


def _read_one(key: str, entry: object, where: str, bare_source: str | None) -> Figure:
    rule = _rule(key, where)
    if isinstance(entry, Mapping):
        return _full(key, entry, rule, where)
    if bare_source is None:
        raise ProductError(
            f"{where}: {key} must be a table with {', '.join(REQUIRED_FIELDS)}, got {show(entry)}"
        )
    value = _checked(key, entry, rule, None, where)
    return Figure(key, value, rule.unit, bare_source, ASSUMED_GRADE, overridden=True)


def _full(key: str, entry: Table, rule: FigureRule, where: str) -> Figure:
    _check_fields(key, entry, where)
    unit = str(entry["unit"])
    value = _checked(key, entry["value"], rule, unit, where)
    low, high = (_bound(key, entry.get(name), rule, unit, where) for name in ("low", "high"))
    note = str(entry["note"]) if "note" in entry else None
    source, grade, changed = str(entry["source"]), str(entry["grade"]), bool(entry.get("overridden"))
    return Figure(key, value, rule.unit, source, grade, low, high, note, changed)


def _check_fields(key: str, entry: Table, where: str) -> None:
    lacking = [name for name in REQUIRED_FIELDS if name not in entry]
    unknown = [name for name in entry if name not in FIELDS]
    if lacking or unknown:
        problem = f"lacks {', '.join(lacking)}" if lacking else f"has unknown entries {show(unknown)}"
        raise ProductError(f"{where}: {key} {problem}; a figure has {', '.join(FIELDS[:-1])}")
    for name in ("unit", "source", "grade", "note"):
        if name in entry and not is_text(entry[name]):
            raise ProductError(
                f"{where}: {key}: {name} must be text that can be printed, got {show(entry[name])}"
            )
    if entry["grade"] not in GRADES:
        raise ProductError(
            f"{where}: {key}: grade must be one of {', '.join(GRADES)}, got {show(entry['grade'])}"
        )


def _rule(key: str, where: str) -> FigureRule:
    rule = rule_for(key)
    if rule is None:
        raise ProductError(f"{where}: unknown key {show(key)}{suggestion(key)}")
    return rule


def _checked(key: str, raw: object, rule: FigureRule, unit: str | None, where: str) -> Value:
    try:
        if unit is not None and rule.unit == "text" and unit != "text":
            raise BadQuantityError(f"is text, got the unit {show(unit)}")
        return convert(raw, rule, unit)
    except BadQuantityError as error:
        raise ProductError(f"{where}: {key} {error}") from None


def _bound(key: str, raw: object, rule: FigureRule, unit: str, where: str) -> float | None:
    if raw is None:
        return None
    if rule.kind not in ("int", "float"):
        raise ProductError(f"{where}: {key}: low and high are for numbers, this figure is {rule.unit}")
    try:
        return number(raw, rule, unit)
    except BadQuantityError as error:
        raise ProductError(f"{where}: {key}: low and high: {error}") from None
