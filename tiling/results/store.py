"""What was evaluated, in one SQLite file: a sweep that was interrupted goes on where it was, and no point is paid for twice.

One writer, commits in batches, write-ahead log: readers and a second process on the same file are safe. The key of a row
is a hash of all that its numbers depend on: what was run, the product's figures, the point, and the code of this version.
A checksum keeps key, point and result together: a row that another program or a bad disk changed is dropped, not believed.
It is no signature: who writes a row on purpose can compute it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time as clock
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from ...simulator.errors import UsageError

VERSION = 2
WITHOUT_CHECKSUMS = (
    1  # the version before: the code of then has other keys, so none of its rows is asked for again
)
BATCH = 64
FLUSH_SECONDS = 1.0
WAIT_SECONDS = 30.0
CACHE_WAIT_SECONDS = 5.0  # for a file that nobody asked for
SCHEMA = (
    # Of two columns in all versions: older releases then find the version, and say it.
    "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS points "
    "(key TEXT PRIMARY KEY, sweep TEXT NOT NULL, point TEXT NOT NULL, result TEXT NOT NULL, checksum TEXT)",
    "CREATE INDEX IF NOT EXISTS by_sweep ON points (sweep)",
)
CHECKSUM_OF = "checksum of "  # in `about`, before the name of what it is of
# What a damaged file raises; the second where a message quotes bytes that are no text.
DAMAGE = sqlite3.Error, UnicodeError
COLUMNS = "key, sweep, point, result, checksum"


class StoreError(UsageError):
    """The file takes no more results; those of before are safe."""


class Store:
    """Results by key. `path` None keeps them in memory.

    cache: whether the file is only a convenience. Where it cannot be opened or read, results are kept in memory instead.
    note: a message for the user about that; dropped: keys of the rows that were not believed.
    """

    def __init__(self, path: str | Path | None = None, cache: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self.named = path
        self.cache = cache
        self.note = ""
        self.waiting: list[tuple[str, str, str, str, str]] = []
        self.dropped: set[str] = set()
        self.flushed = clock.monotonic()
        try:
            self.db = self._opened()
        except UsageError as e:
            self._without_file(e, e)
        except (*DAMAGE, OSError) as e:
            advice = "name a new file, or one that `ascendtile explore` wrote"
            self._without_file(UsageError(f"cannot use {path} as a store: {e}; {advice}"), e)

    def _without_file(self, error: UsageError, why: Exception) -> None:
        """Go on in memory if the file is only a cache; else raise `error`."""
        if not self.cache or self.path is None:
            raise error from None
        self.note = f"results are kept in memory only, as {self.path} cannot be used: {why}"
        self.path = None
        self.db = self._opened()

    def _opened(self) -> sqlite3.Connection:
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        wait = CACHE_WAIT_SECONDS if self.cache else WAIT_SECONDS
        db = sqlite3.connect(":memory:" if self.path is None else str(self.path), timeout=wait)
        db.text_factory = _text
        try:
            if self.path is not None:
                _write_ahead(db, wait)
                db.execute("PRAGMA synchronous=NORMAL")
                check_schema(db)
            self._make_tables(db)
        except BaseException:
            db.close()
            raise
        return db

    def _make_tables(self, db: sqlite3.Connection) -> None:
        with db:
            db.execute("BEGIN IMMEDIATE")  # of two processes that open an older file one adds the columns
            for statement in SCHEMA:
                db.execute(statement)
            db.execute("INSERT OR IGNORE INTO about (name, value) VALUES ('version', ?)", (str(VERSION),))
            found = db.execute("SELECT value FROM about WHERE name = 'version'").fetchone()[0]
            if found == str(WITHOUT_CHECKSUMS):
                found = _add_checksums(db)
        if found != str(VERSION):
            raise UsageError(
                f"{self.path} is a store of version {found}, this ascendtile writes version {VERSION}; "
                "take another file, or remove it to start anew"
            )

    def known(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Results of those keys that are there."""
        out: dict[str, dict[str, Any]] = {}
        wanted = list(keys)
        for first in range(0, len(wanted), 500):
            some = wanted[first : first + 500]
            marks = ",".join("?" * len(some))
            out.update((r.key, r.result) for r in self._read(f"key IN ({marks})", some))
        return out

    def _read(self, which: str, values: Sequence[str]) -> list[StoredRow]:
        """Those of the rows that are as they were written; the others are forgotten."""
        query = f"SELECT {COLUMNS} FROM points WHERE {which} ORDER BY rowid"
        try:
            rows = self.db.execute(query, values).fetchall()
        except DAMAGE as e:
            self._without_file(
                UsageError(f"cannot read {self.path}: {e}; remove it, or take another file"), e
            )
            return []
        read = [(str(r[0]), row_of(*r)) for r in rows]
        self.dropped |= {key for key, row in read if row is None}
        return [row for _, row in read if row is not None]

    def add(self, key: str, sweep: str, point: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Keep a result; it is on disk after the next `flush`: with 64 results, or the first one after a second."""
        row = (key, sweep, json.dumps(point), json.dumps(result))
        self.waiting.append((*row, checksum(*row)))
        if len(self.waiting) >= BATCH or clock.monotonic() - self.flushed > FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Commit what waits. Raises `StoreError` where the file cannot grow; what was committed before stays."""
        self.flushed = clock.monotonic()
        if not self.waiting:
            return
        results, self.waiting = self.waiting, []
        try:
            with self.db:
                self.db.executemany("INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?, ?)", results)
        except DAMAGE as e:
            raise StoreError(
                f"cannot write {len(results)} results to {self.path}: {e}; what was stored before is safe: make room "
                "and run the same command again"
            ) from None

    def rows(self, sweep: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """(point, result) of one sweep, in the order in which they were stored."""
        return [(r.point, r.result) for r in self._read("sweep = ?", (sweep,))]

    def about_dropped(self) -> str:
        """A message about the rows that were not believed; empty if there are none."""
        count = len(self.dropped)
        rows = f"{count:,} result{'s' * (count > 1)} of {self.named}"
        return (
            f"{rows} did not fit the key, the checksum or the form of a result: dropped, and computed again where needed"
            if count
            else ""
        )

    def describe(self, sweep: str, about: Mapping[str, Any]) -> None:
        """Keep what an exploration of this sweep says besides its points: `reading.about`; that module reads it back.

        Raises `StoreError` where the file cannot grow.
        """
        row = (f"sweep {sweep}", json.dumps(about))
        rows = (row, (f"{CHECKSUM_OF}{row[0]}", checksum(*row)))
        try:
            with self.db:
                self.db.executemany("INSERT OR REPLACE INTO about (name, value) VALUES (?, ?)", rows)
        except DAMAGE as e:
            raise StoreError(
                f"cannot write to {self.path} how the sweep ended: {e}; what was stored before is safe: make room and run "
                "the same command again"
            ) from None

    def close(self) -> None:
        self.flush()
        self.db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.flush()
        except UsageError:
            if kind is None:  # else what went wrong before is what the user should see
                raise
        finally:
            self.db.close()


def key_of(sweep: str, point: Mapping[str, Any]) -> str:
    """The key of a point of a sweep."""
    text = json.dumps({n: point[n] for n in sorted(point)}, sort_keys=True, default=str)
    return hashlib.sha256(f"{sweep}\0{text}".encode()).hexdigest()


def checksum(*row: str) -> str:
    """Of the other columns of a row."""
    return hashlib.sha256("\0".join(row).encode()).hexdigest()


class StoredRow(NamedTuple):
    """A row that is as it was written."""

    key: str
    sweep: str
    point: dict[str, Any]
    result: dict[str, Any]


def row_of(key: Any, sweep: Any, point: Any, result: Any, written: Any) -> StoredRow | None:
    """What the columns of a row say; None if its checksum is wrong, or its key is not that of its point."""
    texts = (key, sweep, point, result)
    if not all(isinstance(x, str) for x in texts) or checksum(*texts) != written:
        return None
    try:
        found = StoredRow(key, sweep, dict(json.loads(point)), dict(json.loads(result)))
    except (ValueError, TypeError, RecursionError):
        return None
    return found if key == key_of(sweep, found.point) else None


def check_schema(db: sqlite3.Connection) -> None:
    """Refuse views, triggers and virtual tables before anything is read: a view may never end, a trigger changes what is
    written. `UsageError` without the name of the file. They are the parts of a schema that have no page of their own.
    """
    for kind, name in db.execute("SELECT type, name FROM sqlite_master WHERE coalesce(rootpage, 0) = 0"):
        raise UsageError(f"it has the {str(kind)[:20]} {str(name)[:60]!r}, which no store of ascendtile has")


def _text(stored: bytes) -> str:
    """Text of a file may be anybody's: bytes that are no text make a row that no checksum fits, not an error."""
    return stored.decode(errors="replace")


def _add_checksums(db: sqlite3.Connection) -> str:
    """Bring a file of the version before to this one, whose number is given back. Its rows stay, without a checksum."""
    db.execute("ALTER TABLE points ADD COLUMN checksum TEXT")
    db.execute("UPDATE about SET value = ? WHERE name = 'version'", (str(VERSION),))
    return str(VERSION)


def _write_ahead(db: sqlite3.Connection, wait: float) -> None:
    """Switch the file to a write-ahead log. SQLite does not wait for another process that is doing the same: we do."""
    end = clock.monotonic() + wait
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as e:
            if "locked" not in str(e) or clock.monotonic() > end:
                raise
            clock.sleep(0.01)
