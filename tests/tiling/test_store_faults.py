"""Stores that cannot be used, are held by others, fill up or were changed: the same best, and a note about what happened."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.errors import UsageError
from ascendtile.tiling import Exploration, explore, explore_shapes
from ascendtile.tiling.results import store as stores
from ascendtile.tiling.results.reading import stored_explorations
from ascendtile.tiling.results.store import Store, checksum, key_of

SPACE = {"block_m": (16, 48), "block_n": (32, 64), "block_k": 64, "group": 1}
IN_MEMORY = "results are kept in memory only, as {} cannot be used: {}"


def swept(**more: Any) -> Exploration:
    return explore("matmul", case={"m": 96, "n": 64, "k": 128}, dtype="float16", space=SPACE, **more)


@pytest.fixture(scope="module")
def usual() -> Exploration:
    return swept()


def same(found: Exploration, usual: Exploration) -> bool:
    """The same points with the same proof."""
    return (found.found, found.optimal, found.proof) == (usual.found, True, usual.proof)


def in_a_file(folder: Path) -> Path:
    (folder / "file").write_text("no folder")
    return folder / "file" / "s.sqlite"


def no_store(folder: Path) -> Path:
    (folder / "text").write_text("this is no database, it is a text of more than a hundred characters " * 3)
    return folder / "text"


def of_another_version(folder: Path) -> Path:
    with Store(folder / "s.sqlite") as store, store.db:
        store.db.execute("UPDATE about SET value = '99'")
    return folder / "s.sqlite"


def changed(folder: Path, *statements: str) -> Path:
    with Store(folder / "s.sqlite") as store, store.db:
        for statement in statements:
            store.db.execute(statement)
    return folder / "s.sqlite"


ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n, n, n, n, n FROM r"


def with_an_endless_view(folder: Path) -> Path:
    return changed(
        folder,
        "ALTER TABLE points RENAME TO kept",
        f"CREATE VIEW points (key, sweep, point, result, checksum) AS {ENDLESS}",
    )


def with_a_trigger(folder: Path) -> Path:
    return changed(folder, "CREATE TRIGGER t AFTER INSERT ON points BEGIN DELETE FROM points; END")


def with_a_name_that_is_no_text(folder: Path) -> Path:
    """SQLite's own message about it is none, either."""
    path = changed(folder, "CREATE TABLE abcdefgh (x)")
    path.write_bytes(
        path.read_bytes().replace(b"CREATE TABLE abcdefgh", b"CREATE TABLX \xaf\xfe\xff\xaf\xaf\xaf\xaf\xaf")
    )
    return path


def a_folder(folder: Path) -> Path:
    return folder


BAD = [
    in_a_file,
    no_store,
    of_another_version,
    a_folder,
    with_an_endless_view,
    with_a_trigger,
    with_a_name_that_is_no_text,
]


@pytest.mark.parametrize("made", BAD)
def test_a_cache_that_cannot_be_used_costs_a_note_and_a_named_store_is_refused(tmp_path, usual, made):
    path = made(tmp_path)
    found = swept(cache=path)
    assert same(found, usual)
    (note,) = found.notes
    assert note.startswith(IN_MEMORY.format(path, ""))
    with pytest.raises(UsageError, match="store"):
        swept(store=path)
    with pytest.raises(UsageError, match=r"s\.sqlite|text|is a folder"):
        stored_explorations(path)


@pytest.mark.exhaustive
def test_the_command_goes_on_without_a_cache_folder(ascendtile, refused, monkeypatch, tmp_path):
    """As with XDG_CACHE_HOME in a file system that is read-only; with --store or --resume the user insists."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(in_a_file(tmp_path)))
    few = ("--space", "rows=1,2", "--budget", "3")
    call = ("explore", "rms_norm_grad", "--case", "tiny", *few)
    tables = (("--cases", "tiny,decode"), ("--what-if", "buffers.ub=128KiB"))
    for more in (call, *(("explore", "rms_norm_grad", *few, *table) for table in tables)):
        answer = ascendtile(*more)
        assert answer.status == 0
        assert answer.out.count("results are kept in memory only") == 1
    assert "cannot use" in refused(*call, "--store", in_a_file(tmp_path))
    assert "there is no store" in refused(*call, "--resume")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # a user without a home
    assert ascendtile(*call).status == 0


@contextmanager
def held(path: Path) -> Iterator[None]:
    """A writer that does not let go."""
    Store(path).close()
    other = sqlite3.connect(path)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()


def test_a_store_that_another_process_holds(tmp_path, usual, monkeypatch):
    monkeypatch.setattr(stores, "CACHE_WAIT_SECONDS", 0.05)
    monkeypatch.setattr(stores, "WAIT_SECONDS", 0.05)
    path = tmp_path / "s.sqlite"
    with held(path):
        found = swept(cache=path)
        with pytest.raises(UsageError, match=r"cannot use .*s.sqlite as a store: database is locked"):
            swept(store=path)
    assert same(found, usual)
    assert found.notes == (IN_MEMORY.format(path, "database is locked"),)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("kind", ["store", "cache"])
def test_a_store_that_another_process_takes_in_the_middle(tmp_path, usual, monkeypatch, kind):
    """Of either kind it is done without from then on; what was stored before is there."""
    monkeypatch.setattr(stores, "CACHE_WAIT_SECONDS", 0.05)
    monkeypatch.setattr(stores, "WAIT_SECONDS", 0.05)
    monkeypatch.setattr(stores, "FLUSH_SECONDS", -1.0)  # each result by itself
    path, holders, really = tmp_path / "s.sqlite", [], Store.flush

    def flush(self):
        really(self)
        if not holders:
            holders.append(held(path))
            holders[0].__enter__()

    monkeypatch.setattr(Store, "flush", flush)
    found = swept(**{kind: path})
    holders[0].__exit__(None, None, None)
    assert same(found, usual)
    (note,) = found.notes
    assert "what was stored before is safe" in note
    assert swept(store=path).reused == 1


def test_a_cache_that_cannot_be_read_any_more(tmp_path, usual, monkeypatch):
    path, really = tmp_path / "s.sqlite", Store._make_tables

    def emptied(self, db):
        really(self, db)
        if self.path is not None:
            db.execute("DROP TABLE points")

    monkeypatch.setattr(Store, "_make_tables", emptied)
    with pytest.raises(UsageError, match=r"cannot read .*no such table"):
        swept(store=path)
    found = swept(cache=path)
    assert same(found, usual)
    assert found.notes == (IN_MEMORY.format(path, "no such table: points"),)


CHANGES = (
    "result = replace(result, '\"time_us\": ', '\"time_us\": 0.000')",
    "point = replace(point, '48', '48.0')",
    "point = '[1]'",
    "checksum = NULL",
    "result = CAST(X'fffe' AS TEXT)",
    "result = X'00'",
    "sweep = sweep, key = 'x' || substr(key, 2), point = point",
)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("sampler", ["exact", "random"])
def test_rows_that_were_changed_are_not_believed(tmp_path, usual, change, sampler):
    path = tmp_path / "s.sqlite"
    swept(store=path)
    with sqlite3.connect(path) as db:
        db.execute(f"UPDATE points SET {change} WHERE point LIKE '%48%'")
        changed = db.execute(
            "SELECT count(*) FROM points WHERE point LIKE '%48%' OR point = '[1]'"
        ).fetchone()[0]
    db.close()
    found = swept(store=path, sampler=sampler)
    assert {repr(x) for x in found.found} <= {repr(x) for x in usual.found}  # a sample need not have all
    assert sampler == "random" or same(found, usual)
    if not (sampler == "exact" and "key" in change):  # a row under another key is one that nobody asks for
        assert found.notes[0] == (
            f"{changed} results of {path} did not fit the key, the checksum or the form of a result: dropped, and computed "
            "again where needed"
        )
    if sampler == "exact":
        again = swept(store=path)
        assert again.reused == again.evaluated
        assert again.notes == ()


def test_a_row_of_another_sweep_is_not_taken_for_this_one(tmp_path):
    """Its checksum is right for its own key alone."""
    with Store(tmp_path / "s.sqlite") as store:
        store.add(key_of("a", {"x": 1}), "a", {"x": 1}, {"time_us": 1.0})
        store.flush()
        with store.db:
            store.db.execute("UPDATE points SET sweep = 'b'")
        assert store.rows("b") == []
        assert store.dropped == {key_of("a", {"x": 1})}


@given(st.lists(st.text(), min_size=2, max_size=4))
def test_a_checksum_knows_every_column(columns):
    assert checksum(*columns) == checksum(*columns)
    assert checksum(*columns) != checksum(*columns[:-1], columns[-1] + "0")
    assert checksum(*columns) != checksum(*columns, "")


def without_checksums(path: Path) -> None:
    """The file as version 1 wrote it."""
    with sqlite3.connect(path) as db:
        db.execute("ALTER TABLE points DROP COLUMN checksum")
        db.execute("DELETE FROM about WHERE name LIKE 'checksum of %'")
        db.execute("UPDATE about SET value = '1' WHERE name = 'version'")
    db.close()


def test_a_store_of_before_there_were_checksums_is_brought_up_and_its_rows_computed_again(tmp_path, usual):
    path = tmp_path / "s.sqlite"
    swept(store=path)
    without_checksums(path)
    (shown,) = stored_explorations(path)
    assert len(shown.found) == len(usual.found)
    assert (shown.optimal, "no checksum" in shown.proof) == (
        False,
        True,
    )  # any of its rows may have been changed
    found = swept(store=path)
    assert found.reused == 0
    assert same(found, usual)
    again = swept(store=path)
    assert again.reused == again.evaluated
    assert again.notes == ()


def _limit(resource: Any, path: Path, more: int) -> None:
    size = path.with_name(f"{path.name}-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + more, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("more", [0, 30_000, 60_000])
def test_a_disk_that_fills_in_the_middle_of_a_sweep(tmp_path, usual, monkeypatch, more):
    """A real limit on the size of files: the rows of before it are there, the best is the same, and a note says why."""
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(stores, "FLUSH_SECONDS", -1.0)  # each result by itself
    limits, really, path = (
        resource.getrlimit(resource.RLIMIT_FSIZE),
        Store._make_tables,
        tmp_path / "s.sqlite",
    )

    def made(self, db):
        really(self, db)
        _limit(resource, path, more)

    monkeypatch.setattr(Store, "_make_tables", made)
    try:
        found = swept(store=path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert same(found, usual)
    (note,) = found.notes
    assert "what was stored before is safe" in note
    monkeypatch.setattr(Store, "_make_tables", really)
    again = swept(store=path)
    assert same(again, usual)
    assert (again.reused > 0) == (more > 0)
    assert again.reused < again.evaluated


def _sweep(path: Path, barrier: Any, results: Any) -> None:
    barrier.wait()
    found = swept(store=path)
    results.put((found.found, found.proof, found.notes))


@pytest.mark.exhaustive
def test_two_processes_sweep_through_one_store(tmp_path, usual):
    path, context = tmp_path / "s.sqlite", multiprocessing.get_context("fork")
    barrier, results = context.Barrier(2), context.SimpleQueue()
    both = [context.Process(target=_sweep, args=(path, barrier, results)) for _ in range(2)]
    for p in both:
        p.start()
    answers = [results.get() for _ in both]
    for p in both:
        p.join(60)
    assert [p.exitcode for p in both] == [0, 0]
    assert answers == [(usual.found, usual.proof, ())] * 2
    with Store(path) as store:
        assert store.db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert swept(store=path).reused == usual.evaluated


def test_a_cache_for_many_shapes_is_opened_for_each(tmp_path):
    path = in_a_file(tmp_path)
    found = explore_shapes("rms_norm_grad", ["tiny"], space={"rows": (1, 2)}, cache=path)
    assert [n for n in found.explorations["tiny"].notes if n.startswith(IN_MEMORY.format(path, ""))]
