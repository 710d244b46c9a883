"""Explorations out of files: the same as were put in, and every other file refused in words."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ascendtile.simulator.errors import UsageError
from ascendtile.tiling import Exploration, explore
from ascendtile.tiling.results.reading import exploration_of_json, stored_explorations

SPACE = {"buffers": (1, 2), "rows": (1, 2, 4)}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Exploration]:
    path = tmp_path_factory.mktemp("store") / "s.db"
    return path, explore("rms_norm_grad", case="tiny", space=SPACE, store=path)


def same(a: Exploration, b: Exploration) -> bool:
    """All that a page shows: points in any order."""
    heads = [
        (e.op, e.product, e.case, e.size, e.legal, e.refused, e.optimal, e.proof, e.axes) for e in (a, b)
    ]
    points = [sorted(((x.point, x.evaluation) for x in e.found), key=repr) for e in (a, b)]
    return heads[0] == heads[1] and points[0] == points[1]


def test_a_store_gives_its_exploration_back(stored: tuple[Path, Exploration]) -> None:
    path, made = stored
    (found,) = stored_explorations(path)
    assert same(found, made)
    assert found.sensitivity() == made.sensitivity()
    assert [x.point for x in found.pareto] == [x.point for x in made.pareto]


def test_json_gives_its_exploration_back(stored: tuple[Path, Exploration]) -> None:
    _, made = stored
    found = exploration_of_json(json.loads(json.dumps(made.to_dict(1000))))
    assert same(found, made)
    few = exploration_of_json(json.loads(json.dumps(made.to_dict(1))))
    assert few.best is not None
    assert few.best.time_us == made.best.time_us  # type: ignore[union-attr]


def test_a_sweep_that_crashed_shows_what_it_has(stored: tuple[Path, Exploration], tmp_path: Path) -> None:
    path, made = stored
    copy = tmp_path / "c.db"
    copy.write_bytes(path.read_bytes())
    with sqlite3.connect(copy) as db:
        db.execute("DELETE FROM about WHERE name LIKE 'sweep %'")
    (found,) = stored_explorations(copy)
    assert found.evaluated == made.evaluated
    assert not found.optimal
    assert "before it was done" in found.proof


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE about SET value = '99' WHERE name = 'version'", "version 99"),
        ('UPDATE points SET result = \'{"time_us": "soon"}\'', "must be float"),
        ("UPDATE points SET result = '{\"colour\": 1}'", "unknown field"),
        ("UPDATE about SET value = '[[' WHERE name LIKE 'sweep %'", "damaged"),
        ("UPDATE about SET value = '{}' WHERE name LIKE 'sweep %'", "lacks field"),
        ("DROP TABLE points", "no such table"),
        ("DROP TABLE about", "no such table"),
    ],
)
def test_other_stores_are_refused(
    stored: tuple[Path, Exploration], tmp_path: Path, statement: str, words: str
) -> None:
    copy = tmp_path / "c.db"
    copy.write_bytes(stored[0].read_bytes())
    with sqlite3.connect(copy) as db:
        db.execute(statement)
        if "UPDATE" in statement:  # as a file of before there were checksums, which then say nothing
            db.execute("DELETE FROM about WHERE name LIKE 'checksum of %'")
            db.execute("UPDATE points SET checksum = NULL")
    with pytest.raises(UsageError, match=words) as caught:
        stored_explorations(copy)
    assert str(copy) in str(caught.value)


@pytest.mark.parametrize("result", ['{"time_us": 1.0}', '{"time_us": "soon"}', "[[", "null", None])
def test_rows_that_were_changed_are_left_out_and_nothing_is_proved_with_them(
    stored: tuple[Path, Exploration], tmp_path: Path, result: str | None
) -> None:
    path, made = stored
    copy = tmp_path / "c.db"
    copy.write_bytes(path.read_bytes())
    with sqlite3.connect(copy) as db:
        column = "point = '{}'" if result is None else "result = ?"
        given = () if result is None else (result,)
        db.execute(f"UPDATE points SET {column} WHERE rowid = 2", given)
    (found,) = stored_explorations(copy)
    assert made.optimal
    assert not found.optimal
    assert found.proof.startswith("not proved")
    assert len(found.found) == len(made.found) - 1
    assert found.notes[-1] == "1 of the file's results did not fit the key or the checksum: left out"


def test_what_is_said_of_a_sweep_is_checked(stored: tuple[Path, Exploration], tmp_path: Path) -> None:
    copy = tmp_path / "c.db"
    copy.write_bytes(stored[0].read_bytes())
    with sqlite3.connect(copy) as db:
        db.execute("UPDATE about SET value = replace(value, 'true', 'false') WHERE name LIKE 'sweep %'")
    with pytest.raises(UsageError, match="of a sweep does not fit its checksum"):
        stored_explorations(copy)


def test_a_store_that_is_cut_short_is_refused(stored: tuple[Path, Exploration], tmp_path: Path) -> None:
    copy = tmp_path / "c.db"
    copy.write_bytes(stored[0].read_bytes()[:5000])
    with pytest.raises(UsageError, match="damaged"):
        stored_explorations(copy)


# What no evaluation has.
ODD: tuple[dict[str, Any], ...] = (
    {"time_us": 0.0}, {"time_us": "NaN"}, {"time_us": -1.0}, {"waits": {"data": "Infinity"}}, {"ub_peak_bytes": -1},
    {"tiling": {"rows": {"$float": "NaN"}}}, {"tiling": {"rows": [[1]]}}, {"point": {"rows": {}}},
        {"point": {"rows": float("inf")}},
)  # fmt: skip


@pytest.mark.parametrize(
    "given",
    [
        {"space": 1},
        {"space": {"size": "many"}},
        {"op": "x", "space": {"size": 1, "legal": 1}},
        {"op": 3, "space": {"size": 1, "legal": 1}, "top": []},
    ],
)
def test_other_json_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        exploration_of_json(given)


@pytest.mark.parametrize(
    "changed",
    [
        {"space": {"size": -1, "legal": 1}},
        {"objective": "speed"},
        {"seconds": "NaN"},
        {"axes": {"rows": [{}]}},
        *({"top": [{"tiling": {}, "point": {"rows": 1}, "time_us": 1.0, **x}]} for x in ODD),
    ],
)
def test_figures_that_no_exploration_has_are_refused(
    stored: tuple[Path, Exploration], changed: dict[str, Any]
) -> None:
    right = json.loads(json.dumps(stored[1].to_dict(1000)))
    exploration_of_json(right)
    with pytest.raises(UsageError, match="is damaged: "):
        exploration_of_json({**right, **changed})


def test_json_with_odd_points_is_refused(stored: tuple[Path, Exploration]) -> None:
    data = stored[1].to_dict(1000)
    for top in (3, [3], [{"time_us": 1.0}], [{"tiling": {}, "time_us": "soon"}]):
        with pytest.raises(UsageError):
            exploration_of_json({**data, "top": top})
