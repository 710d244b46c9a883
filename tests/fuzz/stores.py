"""Target of explore stores: bytes, rows, schema, version, other files. What is damaged changes no best tiling."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from ascendtile.tiling.results.store import CHECKSUM_OF, checksum, key_of

from . import seeds
from .judge import Bench, Finding, check_file
from .mutators import HOSTILE, NUMBERS, Chance, mutated_bytes
from .values import mutated_json

# Statements of a file's schema: what reads it must neither run for ever nor believe it.
ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT"
LATER = ("ALTER TABLE points RENAME TO kept", "ALTER TABLE about RENAME TO told")
SCHEMAS: tuple[tuple[str, ...], ...] = (
    ("DROP TABLE points",), ("DROP TABLE about",), ("DROP INDEX by_sweep",), ("DELETE FROM points",),
    ("DELETE FROM about",), ("ALTER TABLE points DROP COLUMN checksum",),
    ("DELETE FROM about WHERE name LIKE 'checksum of %'",),
    ("ALTER TABLE points RENAME COLUMN result TO r",), ("ALTER TABLE points ADD COLUMN more TEXT",),
    ("ALTER TABLE about ADD COLUMN more TEXT NOT NULL DEFAULT 'x'",),
    ("CREATE TRIGGER t AFTER INSERT ON points BEGIN DELETE FROM points; END",),
    ("CREATE TRIGGER t AFTER INSERT ON points BEGIN UPDATE points SET result = '{}'; END",),
    ("CREATE TRIGGER t BEFORE INSERT ON about BEGIN SELECT RAISE(ABORT, 'no'); END",),
    ("CREATE TRIGGER t BEFORE INSERT ON points BEGIN SELECT RAISE(ROLLBACK, '<fuzz>'); END",),
    (LATER[0], "CREATE VIEW points AS SELECT * FROM kept"), (LATER[1], "CREATE VIEW about AS SELECT * FROM told"),
    (LATER[0], f"CREATE VIEW points (key, sweep, point, result, checksum) AS {ENDLESS} n, n, n, n, n FROM r"),
    (LATER[1], f"CREATE VIEW about AS {ENDLESS} n name, n value FROM r"),
    (LATER[0], f"CREATE VIEW points AS {ENDLESS} k.* FROM r, kept k"),
    (f"CREATE TRIGGER t AFTER INSERT ON points BEGIN INSERT INTO about SELECT n, n FROM ({ENDLESS} n FROM r); END",),
    (LATER[0], "CREATE TABLE points (key BLOB, sweep, point, result, checksum)", "INSERT INTO points SELECT * FROM kept"),
    (LATER[0], "CREATE TABLE points (key INTEGER PRIMARY KEY, sweep, point, result, checksum)"),
    ("CREATE TABLE a (b)", "DROP TABLE points", "DROP TABLE about", "INSERT INTO a VALUES (1)"),
    ("PRAGMA user_version = 99",), ("PRAGMA application_id = 7",), ("PRAGMA encoding = 'UTF-16'", "VACUUM"),
    ("PRAGMA page_size = 512", "VACUUM"), ("PRAGMA journal_mode = WAL",), ("PRAGMA auto_vacuum = FULL", "VACUUM"),
    ("UPDATE points SET result = zeroblob(20000000)",),
    ("INSERT INTO points SELECT key || 'x', sweep, point, result, checksum FROM points",),
)  # fmt: skip
VERSIONS = ("99", "0", "-1", "", "2.0", " 2", "x" * 10_000, "2\0", "<fuzz>")


@cache
def usual() -> tuple[Any, list[list[str]]]:
    """What the sweep finds without damage: the end of its JSON that does not depend on the clock, and its table."""
    _, told, table = seeds.sweep()
    return json.loads(told), list(csv.reader(io.StringIO(table)))


def explore_store(chance: Chance, bench: Bench) -> None:
    path = bench.file("s.sqlite", seeds.sweep()[0])
    forged = _damage(chance, path)
    bench.tried["s.sqlite"] = path.read_bytes()
    _shown(chance, bench, path, forged)
    where = chance.one_of(("--store", path), ("--store", path), ("--store", path, "--resume"), ())
    if not where:  # as the cache that nobody asked for
        (bench.folder / "cache" / "ascendtile").mkdir(parents=True)
        (bench.folder / "cache" / "ascendtile" / "explore.sqlite").write_bytes(path.read_bytes())
    told = bench.command(
        "explore",
        *seeds.SWEEP,
        *where,
        "--json",
        *chance.one_of((), (), ("--sampler", "random", "--budget", 3)),
    )
    if not where and told.status:
        raise Finding(f"a damaged cache stops the command: {told.err}")
    if told.status == 0 and not forged:
        _same_best(json.loads(told.out))


def _same_best(told: Any) -> None:
    """Where no row was forged, the best is what it is, or slower where a budget ended it."""
    best, real = told.get("best"), usual()[0]["best"]
    times = {row[usual()[1][0].index("time_us")] for row in usual()[1][1:]}
    if best and str(best["time_us"]) not in times:
        raise Finding(f"a best of {best['time_us']} us, which no tiling takes")
    if told["optimal"] and (best is None or best["time_us"] != real["time_us"]):
        raise Finding(f"proved {best}, and the best is {real}")


def _shown(chance: Chance, bench: Bench, path: Path, forged: bool) -> None:
    way = chance.randrange(4)
    if way == 0:
        target = bench.folder / "x.html"
        if bench.command("report", path, "-o", target).status == 0:
            check_file(target)
    elif way == 1:
        target = bench.folder / "x.svg"
        if (
            bench.command(
                "report", path, "--picture", chance.one_of("pareto", "heatmap"), "-o", target
            ).status
            == 0
        ):
            check_file(target)
    told = bench.command("report", path, *(("--json",) if way == 2 else ()))
    if way == 2 and told.status == 0 and not forged:
        _no_other_rows(json.loads(told.out))


def _no_other_rows(told: Any) -> None:
    times = {row[usual()[1][0].index("time_us")] for row in usual()[1][1:]}
    for e in told.get("explorations", [told]):
        if "no checksum" in e.get("proof", ""):  # nothing vouches for them, which is said
            continue
        for item in (*e.get("top", ()), *e.get("pareto", ())):
            if str(item["time_us"]) not in times:
                raise Finding(f"a tiling of {item['time_us']} us is shown, which no tiling takes")


def _damage(chance: Chance, path: Path) -> bool:
    """Change the file; whether a row with a checksum of its own was forged, which is believed by design."""
    way = chance.randrange(8)
    if way < 2:
        path.write_bytes(mutated_bytes(chance, path.read_bytes(), [seeds.records()[0]]))
        return False
    if way == 2:
        path.write_bytes(
            chance.one_of(
                b"",
                b"SQLite format 3\0",
                seeds.records()[0],
                b"SQLite format 3\0" + bytes(1000),
                seeds.sweep()[1].encode(),
            )
        )
        return False
    db = sqlite3.connect(path)
    try:
        with suppress(sqlite3.Error):
            db.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, False) if hasattr(db, "setconfig") else None
            if way < 5:
                return _forged(chance, db)
            _change_tables(chance, db, way)
    finally:
        db.close()
    return False


def _change_tables(chance: Chance, db: sqlite3.Connection, way: int) -> None:
    if way == 5:
        version = chance.one_of(*VERSIONS, "1", "1")
        chance.note(f"version {version[:30]!r}")
        db.execute("UPDATE about SET value = ? WHERE name = 'version'", (version,))
        db.commit()
    elif way == 6:
        for statement in chance.choice(SCHEMAS):
            chance.note(statement)
            db.execute(statement)
            db.commit()
    else:
        column = chance.one_of("key", "sweep", "point", "result", "checksum")
        some = chance.one_of("1", "rowid = 2", "rowid % 2")
        value = chance.one_of(
            "NULL", "X'00ff'", "CAST(X'fffe' AS TEXT)", "1", "1e999", "''", "'[1]'", f"{column} || ' '",
            f"replace({column}, '1', '2')", f"replace({column}, '\"time_us\": ', '\"time_us\": 0.00')",
            f"(SELECT {column} FROM points LIMIT 1)", "zeroblob(3000000)",
        )  # fmt: skip
        chance.note(f"{column} = {value} where {some}")
        more = chance.one_of("", "", ", checksum = NULL") if column != "checksum" else ""
        db.execute(f"UPDATE OR REPLACE points SET {column} = {value}{more} WHERE {some}")
        db.commit()


def _forged(chance: Chance, db: sqlite3.Connection) -> bool:
    """Rows and words about a sweep with right keys and checksums, whose content makes no sense."""
    for key, sweep, point, result, _ in db.execute("SELECT * FROM points").fetchall():
        if chance.once_in(2):
            continue
        point, result = _other(chance, point, 3), _other(chance, result, 1)
        with suppress(ValueError, TypeError, AttributeError, RecursionError):
            key = key_of(sweep, dict(json.loads(point)))
        row = (key, sweep, point, result)
        with suppress(UnicodeError):
            db.execute("INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?, ?)", (*row, checksum(*row)))
    for name, value in db.execute("SELECT * FROM about WHERE name LIKE 'sweep %'").fetchall():
        row = (name, _other(chance, value, 1))
        with suppress(UnicodeError):
            rows = row, (f"{CHECKSUM_OF}{name}", checksum(*row))
            db.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", rows)
    db.commit()
    return True


def _other(chance: Chance, text: str, seldom: int) -> str:
    if not chance.once_in(seldom):
        return text
    if chance.once_in(10):
        return str(
            chance.one_of(
                "null",
                "[]",
                "[[1, 2]]",
                "{}",
                "7",
                '"x"',
                "[" * 5000,
                "NaN",
                '{"time_us": NaN}',
                chance.choice(HOSTILE),
                str(chance.choice(NUMBERS)),
            )
        )
    return json.dumps(mutated_json(chance, json.loads(text), gently=chance.once_in(2)))
