"""Explorations from files: a store that `ascendtile explore` filled, or the JSON that it printed. Files may be anybody's."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...simulator.errors import UsageError
from ...simulator.record.codec import Encoder, decode_plain
from ...simulator.record.files import naming, picked, regular_size
from ..evaluate import Evaluation, is_value, oddity
from .exploration import OBJECTIVES, Exploration, Found, axes_of
from .store import CHECKSUM_OF, DAMAGE, VERSION, WITHOUT_CHECKSUMS, check_schema, checksum, row_of

MAX_BYTES = 2**30
MAX_POINTS = 500_000
MAX_TEXT = 2**20
MAX_SWEEPS = 1000
SAID = (
    "op",
    "product",
    "compiler",
    "case",
    "objective",
    "bounded",
    "reused",
    "seconds",
    "optimal",
    "proof",
    "sampler",
)


def about(e: Exploration) -> Any:
    """What an exploration says besides its points, as JSON data."""
    return Encoder({}).encode(replace(e, found=()), Exploration)


def stored_explorations(path: str | Path) -> tuple[Exploration, ...]:
    """The explorations of a store, the largest first. `UsageError` if it is none, of another version, or damaged."""
    with naming(path, "read"):
        size = regular_size(path, "a store")
        if size > MAX_BYTES:
            raise UsageError(f"has {size} bytes, a store that can be shown has at most {MAX_BYTES}")
        try:
            db = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
            try:
                return _explorations(db)
            finally:
                db.close()
        except DAMAGE as e:
            raise UsageError(f"is no store that `ascendtile explore` wrote, or is damaged: {e}") from None


def _explorations(db: sqlite3.Connection) -> tuple[Exploration, ...]:
    check_schema(db)
    # What is cut off may be a page that nobody reads.
    whole = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    if whole != "ok":
        raise UsageError(f"is damaged: {whole.splitlines()[-1][:80]}")
    about = "SELECT name, value FROM about WHERE length(value) < ?"
    head = dict(db.execute(about, (MAX_TEXT,)).fetchmany(10_000))
    version = str(head.get("version"))
    if version not in (str(VERSION), str(WITHOUT_CHECKSUMS)):
        raise UsageError(f"is a store of version {version[:20]}, this ascendtile reads version {VERSION}")
    count = db.execute("SELECT count(*) FROM points").fetchone()[0]
    if count > MAX_POINTS:
        raise UsageError(f"has {count} points, at most {MAX_POINTS} can be shown")
    written = "NULL" if version == str(WITHOUT_CHECKSUMS) else "checksum"
    _check_heads(head)
    sweeps: dict[str, list[Found | None]] = {}
    unsigned: set[str] = set()
    for row in db.execute(f"SELECT key, sweep, point, result, {written} FROM points ORDER BY rowid"):
        sweeps.setdefault(str(row[1]), []).append(_found(*row))
        if row[-1] is None:
            unsigned.add(str(row[1]))
    made = (
        _exploration(head.get(f"sweep {name}"), found, name in unsigned) for name, found in sweeps.items()
    )
    return tuple(sorted(made, key=lambda e: -len(e.found)))


def _check_heads(head: Mapping[str, Any]) -> None:
    for name, value in head.items():
        found = head.get(f"{CHECKSUM_OF}{name}")
        if found is not None and found != checksum(str(name), str(value)):
            raise UsageError("is damaged: what it says of a sweep does not fit its checksum")


def _found(key: Any, sweep: Any, point: Any, result: Any, written: Any) -> Found | None:
    """None if the row is not as it was written. Without a checksum, in rows of an older version, the key alone says that."""
    if written is None:
        written = checksum(str(key), str(sweep), str(point), str(result))
    row = row_of(key, sweep, point, result, written)
    return None if row is None else _checked_point(row.point, row.result, "result")


def _point(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise UsageError("has a point that is no JSON object")
    point = {str(n): tuple(x) if isinstance(x, list) else x for n, x in data.items()}
    for n, x in point.items():
        _expect(is_value(x), f"the knob {n[:40]} is {str(x)[:40]}")
    return point


def _checked_point(point: Any, result: Any, where: str) -> Found:
    found = Found(_point(point), decode_plain(result, Evaluation, where))
    odd = oddity(found.evaluation)
    _expect(not odd, odd)
    return found


def _checked_whole(e: Exploration) -> Exploration:
    """What an exploration says besides its points can be true."""
    _expect(e.objective in OBJECTIVES, f"the objective is {e.objective[:40]!r}")
    counts = picked(e, "size legal bounded reused seconds") | e.refused | e.failed
    for n, x in counts.items():
        _expect(0 <= x < math.inf, f"{n[:40]} is {x}")
    for n, values in e.axes.items():
        _expect(all(map(is_value, values)), f"an axis {n[:40]} has {str(values)[:40]}")
    return e


def _expect(true: bool, otherwise: str) -> None:
    if not true:
        raise UsageError(f"is damaged: {otherwise}")


def _exploration(text: str | None, rows: list[Found | None], unsigned: bool) -> Exploration:
    """Refused and failed points are no results: they were counted when the sweep ended. unsigned: some have no checksum."""
    found = [x for x in rows if x is not None]
    timed = tuple(x for x in found if x.evaluation.time_us is not None)
    if text is None:
        whole = _unfinished(timed)
    else:
        data = _checked(lambda: json.loads(text))
        whole = _checked_whole(decode_plain(data, Exploration, "about"))
        whole = replace(whole, found=timed, axes=axes_of(timed, whole.axes))
    return _with_losses(whole, len(rows) - len(found), unsigned)


def _with_losses(e: Exploration, dropped: int, unsigned: bool) -> Exploration:
    """What was proved with rows that are not believed, or that nothing vouches for, is not proved."""
    if dropped:
        note = f"{dropped:,} of the file's results did not fit the key or the checksum: left out"
        proof = "not proved: results of the file were left out; explore again to compute them"
    elif unsigned:
        note = "results of the file are of before there were checksums: nothing says that they are as they were written"
        proof = "not proved: results of the file have no checksum; explore again to compute them"
    else:
        return e
    return replace(e, optimal=False, proof=proof, notes=(*e.notes, note))


def _unfinished(found: tuple[Found, ...]) -> Exploration:
    """A sweep that a crash ended before it could say anything."""
    proof = "the sweep ended before it was done: what was evaluated until then is shown"
    return Exploration(
        op="unknown", product="unknown", case=None, objective="time", size=len(found), legal=len(found), refused={},
        bounded=0, found=found, failed={}, reused=0, seconds=0.0, optimal=False, proof=proof, axes=axes_of(found, {}),
        interrupted=True,
    )  # fmt: skip


def exploration_of_json(data: Mapping[str, Any]) -> Exploration:
    """What `ascendtile explore --json` (its best few) or `--export json` (all points, and what was reused) printed.

    Of the best few nothing is concluded about the others: `counted` says how many those are, and axes are the file's own.
    """
    space = data.get("space")
    if not isinstance(space, dict):
        raise UsageError("is no exploration: it has no space")
    given: dict[str, Any] = {"reused": 0} | {n: data[n] for n in SAID if n in data}
    given |= {"size": space.get("size"), "legal": space.get("legal"), "refused": space.get("refused", {})}
    given |= {"failed": _failures(data), "axes": data.get("axes", {}), "found": []}
    whole = _checked_whole(decode_plain(given, Exploration, "exploration"))
    points: dict[str, Found] = {}
    for key in ("top", "pareto"):
        items = data.get(key, [])
        if not isinstance(items, list) or len(items) > MAX_POINTS:
            raise UsageError(f"is no exploration: {key} is no list of points")
        points.update((repr(x.point), x) for x in (_listed(item, whole.axes) for item in items))
    found = tuple(points.values())
    evaluated = decode_plain(data.get("evaluated", 0), int, "evaluated")
    if evaluated > len(found):
        return replace(whole, found=found, counted=evaluated)
    return replace(whole, found=found, axes=axes_of(found, whole.axes))


def _failures(data: Mapping[str, Any]) -> Any:
    """Reason -> points; `--json` has their number alone."""
    count = decode_plain(data.get("failed", 0), int, "failed")
    return data.get("failures", {"for a reason that is not in this file": count} if count > 0 else {})


def explorations_of_json(data: Mapping[str, Any]) -> tuple[Exploration, ...] | None:
    """All explorations in JSON that `ascendtile explore` printed: one, those of `--cases`, of `--what-if`, or of a store.

    None if this is JSON of something else.
    """
    if "space" in data:
        return (exploration_of_json(data),)
    for key in ("explorations", "cases", "variants"):
        items = data.get(key)
        if isinstance(items, dict):
            items = [{"case": name, **x} if isinstance(x, dict) else x for name, x in items.items()]
        if isinstance(items, list) and 0 < len(items) <= MAX_SWEEPS:
            return tuple(_one_of_many(x, f"{key}.{k}") for k, x in enumerate(items))
    return None


def _one_of_many(item: Any, where: str) -> Exploration:
    if not isinstance(item, dict):
        raise UsageError(f"is no exploration: {where} is no JSON object")
    found = exploration_of_json(item)
    changed = item.get("set")
    if not isinstance(changed, dict) or not changed:
        return found
    changes = ", ".join(f"{n}={str(x)[:40]}" for n, x in changed.items())
    return replace(found, case=f"{found.case or ''}  with {changes}".strip())


def _listed(item: Any, axes: Mapping[str, Any]) -> Found:
    if not isinstance(item, dict) or not isinstance(item.get("tiling"), dict):
        raise UsageError("is no exploration: it lists a point without a tiling")
    tiling, point = item["tiling"], item.get("point")
    names = ("time_us", "bound_us", "bound", "errors", "ub_peak_bytes", "pipe", "waits", "tiling")
    given = point if point is not None else {n: x for n, x in tiling.items() if n in axes or not axes}
    return _checked_point(given, {n: item[n] for n in names if n in item}, "point")


def _checked(read: Any) -> Any:
    try:
        return read()
    except (ValueError, TypeError, RecursionError) as e:
        raise UsageError(f"is damaged: {str(e)[:100]}") from None
