"""The store: what was added is there, for another process too; what cannot be used is refused in words."""

from __future__ import annotations

import multiprocessing
import sqlite3

import pytest

from ascendtile.simulator.errors import UsageError
from ascendtile.tiling import explore
from ascendtile.tiling.results.store import BATCH, Store, StoreError, key_of


def test_results_come_back(tmp_path):
    path = tmp_path / "deeper" / "s.sqlite"
    with Store(path) as store:
        for k in range(3):
            store.add(key_of("sweep", {"x": k}), "sweep", {"x": k}, {"time_us": k / 3})
    with Store(path) as store:
        keys = [key_of("sweep", {"x": k}) for k in range(5)]
        assert store.known(keys) == {keys[k]: {"time_us": k / 3} for k in range(3)}
        assert store.rows("sweep") == [({"x": k}, {"time_us": k / 3}) for k in range(3)]
        assert store.rows("another") == []


def test_a_crash_loses_less_than_a_batch(tmp_path, monkeypatch):
    monkeypatch.setattr("ascendtile.tiling.results.store.FLUSH_SECONDS", 1e9)
    path, more = tmp_path / "s.sqlite", 5
    store = Store(path)
    for k in range(BATCH + more):
        store.add(key_of("sweep", {"x": k}), "sweep", {"x": k}, {})
    with Store(path) as other:  # the first one never flushes the rest nor closes: a crash
        assert len(other.rows("sweep")) == BATCH
    assert len(store.waiting) == more


def test_slow_results_do_not_wait_for_a_batch(tmp_path, monkeypatch):
    monkeypatch.setattr("ascendtile.tiling.results.store.FLUSH_SECONDS", 0.0)
    path = tmp_path / "s.sqlite"
    store = Store(path)
    store.add(key_of("sweep", {"x": 1}), "sweep", {"x": 1}, {})
    with Store(path) as other:
        assert len(other.rows("sweep")) == 1
    store.close()


def test_the_key_knows_sweep_and_values_but_not_their_order():
    assert key_of("s", {"a": 1, "b": 2}) == key_of("s", {"b": 2, "a": 1})
    assert (
        len({key_of("s", {"a": 1}), key_of("t", {"a": 1}), key_of("s", {"a": 2}), key_of("s", {"a": "1"})})
        == 4
    )


def test_another_version_says_what_to_do(tmp_path):
    path = tmp_path / "s.sqlite"
    Store(path).close()
    db = sqlite3.connect(path)
    with db:
        db.execute("UPDATE about SET value = '99'")
    db.close()
    with pytest.raises(
        UsageError,
        match="store of version 99, this ascendtile writes version 2; take another",
    ):
        Store(path)


def test_releases_with_version_1_find_the_version_of_a_file_and_say_it(tmp_path):
    """The statements with which they open a file, and those of today on what the oldest file of version 2 had."""
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        store.describe("s", {})
    db = sqlite3.connect(path)
    with db:
        db.execute("CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        db.execute("INSERT OR IGNORE INTO about VALUES ('version', '1')")
        assert db.execute("SELECT value FROM about WHERE name = 'version'").fetchall() == [("2",)]
        db.execute("ALTER TABLE about ADD COLUMN checksum TEXT")
    db.close()
    with Store(path) as store:
        store.describe("t", {})


def test_what_is_no_store_is_refused(tmp_path):
    path = tmp_path / "text"
    path.write_text("this is no database, it is a text of more than a hundred characters " * 3)
    with pytest.raises(UsageError, match=r"cannot use .*text as a store"):
        Store(path)
    with pytest.raises(UsageError, match=r"cannot use .* as a store"):
        Store(tmp_path)


def test_a_full_disk_says_so_and_keeps_what_was_stored(tmp_path):
    path = tmp_path / "s.sqlite"
    store = Store(path)
    store.add(key_of("sweep", {"x": 0}), "sweep", {"x": 0}, {})
    store.flush()
    pages = store.db.execute("PRAGMA page_count").fetchone()[0]
    store.db.execute(f"PRAGMA max_page_count = {pages}")
    store.add("large", "sweep", {"x": 1}, {"words": "x" * 100_000})
    with pytest.raises(
        UsageError, match=r"cannot write 1 results to .*full.*make room and run the same command again"
    ):
        store.flush()
    store.db.close()
    with Store(path) as again:
        assert again.rows("sweep") == [({"x": 0}, {})]


def _write(path, name, barrier):
    barrier.wait()
    with Store(path) as store:
        for k in range(3 * BATCH):
            store.add(key_of(name, {"x": k}), name, {"x": k}, {"time_us": 1.0})


def test_two_processes_write_to_one_store(tmp_path):
    path, context = tmp_path / "s.sqlite", multiprocessing.get_context("fork")
    barrier = context.Barrier(2)
    both = [context.Process(target=_write, args=(path, name, barrier)) for name in ("a", "b")]
    for p in both:
        p.start()
    for p in both:
        p.join(60)
    assert [p.exitcode for p in both] == [0, 0]
    with Store(path) as store:
        assert [len(store.rows(name)) for name in ("a", "b")] == [3 * BATCH, 3 * BATCH]
        assert store.db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_a_sweep_goes_on_when_its_store_is_full(tmp_path, monkeypatch):
    def full(self):
        if self.waiting:
            self.waiting.clear()
            raise StoreError("cannot write: disk is full")

    sizes, space = (
        {"m": 96, "n": 64, "k": 128},
        {"block_m": (16, 48), "block_n": 64, "block_k": 64, "group": 1},
    )
    usual = explore("matmul", case=sizes, dtype="float16", space=space)
    monkeypatch.setattr(Store, "flush", full)
    found = explore("matmul", case=sizes, dtype="float16", space=space, store=tmp_path / "s.sqlite")
    assert found.found == usual.found
    assert found.optimal
    assert found.notes == ("cannot write: disk is full",)
    assert found.to_dict()["notes"] == ["cannot write: disk is full"]


def test_a_sweep_goes_on_when_the_file_cannot_grow(tmp_path, monkeypatch):
    """A real limit on the size of files, from when the store is open: rows, and the words at the end, do not get in."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    really = Store._make_tables

    def opened(self, db):
        really(self, db)
        if self.path is not None:
            size = self.path.with_name(f"{self.path.name}-wal").stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))

    monkeypatch.setattr(Store, "_make_tables", opened)
    sizes, space = (
        {"m": 96, "n": 64, "k": 128},
        {"block_m": (16, 48), "block_n": 64, "block_k": 64, "group": 1},
    )
    try:
        found = explore("matmul", case=sizes, dtype="float16", space=space, store=tmp_path / "s.sqlite")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert found.optimal
    assert len(found.notes) == 1
    assert "what was stored before is safe" in found.notes[0]
    monkeypatch.setattr(Store, "_make_tables", really)
    again = explore("matmul", case=sizes, dtype="float16", space=space, store=tmp_path / "s.sqlite")
    assert (again.found, again.notes) == (found.found, ())
