"""What was evaluated, in one SQLite file: a sweep that was interrupted goes on where it was, and no point is paid for twice.

One writer, commits in batches, write-ahead log: readers and a second process on the same file are safe. The key of a row
is a hash of all that its numbers depend on: what was run, the product's figures, the point, and the code of this version.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time as clock
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ...simulator.errors import UsageError

VERSION = 1
BATCH = 64
FLUSH_SECONDS = 1.0
WAIT_SECONDS = 30.0
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS points "
    "(key TEXT PRIMARY KEY, sweep TEXT NOT NULL, point TEXT NOT NULL, result TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS by_sweep ON points (sweep)",
)


class StoreError(UsageError):
    """The file takes no more results; those of before are safe."""


class Store:
    """Results by key. `path` None keeps them in memory."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.waiting: list[tuple[str, str, str, str]] = []
        self.flushed = clock.monotonic()
        try:
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self.db = sqlite3.connect(":memory:" if path is None else str(path), timeout=WAIT_SECONDS)
            self._open()
        except (sqlite3.Error, OSError) as e:
            raise UsageError(
                f"cannot use {path} as a store: {e}; name a new file, or one that `ascendtile explore` wrote"
            ) from None

    def _open(self) -> None:
        if self.path is not None:
            self._write_ahead()
            self.db.execute("PRAGMA synchronous=NORMAL")
        with self.db:
            for statement in SCHEMA:
                self.db.execute(statement)
            self.db.execute("INSERT OR IGNORE INTO about VALUES ('version', ?)", (str(VERSION),))
        found = self.db.execute("SELECT value FROM about WHERE name = 'version'").fetchone()[0]
        if found != str(VERSION):
            self.db.close()
            raise UsageError(
                f"{self.path} is a store of version {found}, this ascendtile writes version {VERSION}; "
                "take another file, or remove it to start anew"
            )

    def _write_ahead(self) -> None:
        """Switch the file to a write-ahead log. SQLite does not wait for another process that is doing the same: we do."""
        end = clock.monotonic() + WAIT_SECONDS
        while True:
            try:
                self.db.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as e:
                if "locked" not in str(e) or clock.monotonic() > end:
                    raise
                clock.sleep(0.01)

    def known(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Results of those keys that are there."""
        out: dict[str, dict[str, Any]] = {}
        wanted = list(keys)
        for first in range(0, len(wanted), 500):
            some = wanted[first : first + 500]
            marks = ",".join("?" * len(some))
            rows = self._read(f"SELECT key, result FROM points WHERE key IN ({marks})", some)
            out.update((k, self._object(r)) for k, r in rows)
        return out

    def _read(self, query: str, values: Sequence[str]) -> list[tuple[str, str]]:
        try:
            return self.db.execute(query, values).fetchall()
        except sqlite3.Error as e:
            raise UsageError(f"cannot read {self.path}: {e}; remove it, or take another file") from None

    def add(self, key: str, sweep: str, point: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Keep a result; it is on disk after the next `flush`: with 64 results, or the first one after a second."""
        self.waiting.append((key, sweep, json.dumps(point), json.dumps(result)))
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
                self.db.executemany("INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?)", results)
        except sqlite3.Error as e:
            raise StoreError(
                f"cannot write {len(results)} results to {self.path}: {e}; what was stored before is safe: make room "
                "and run the same command again"
            ) from None

    def rows(self, sweep: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """(point, result) of one sweep, in the order in which they were stored."""
        found = self._read("SELECT point, result FROM points WHERE sweep = ? ORDER BY rowid", (sweep,))
        return [(self._object(p), self._object(r)) for p, r in found]

    def _object(self, text: Any) -> dict[str, Any]:
        """A point or a result as it was stored."""
        try:
            found = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self.damaged(text)
        return found

    def damaged(self, what: Any) -> UsageError:
        """The error for a row that nobody here wrote."""
        return UsageError(
            f"{self.path} is damaged: a row has {str(what)[:60]!r}; take another file, or remove it to start anew"
        )

    def describe(self, sweep: str, about: Mapping[str, Any]) -> None:
        """Keep what an exploration of this sweep says besides its points: `reading.about`; that module reads it back.

        Raises `StoreError` where the file cannot grow.
        """
        try:
            with self.db:
                self.db.execute(
                    "INSERT OR REPLACE INTO about VALUES (?, ?)", (f"sweep {sweep}", json.dumps(about))
                )
        except sqlite3.Error as e:
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
