"""Run records: what is saved comes back, a file is whole or not there, and a hostile file gets a sentence."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.record import archive, files
from ascendtile.simulator.record import archive as record_archive
from ascendtile.simulator.record import saving as record
from ascendtile.simulator.record.checks import check_figures
from ascendtile.simulator.record.loading import load_run, run_from_bytes
from ascendtile.simulator.record.saving import run_bytes, save_run

from ..support.sample_runs import ANY_TEXT, hostile_runs, launch, run, same, timeline

FULL = run_bytes(run())


@pytest.fixture
def refused(tmp_path):
    """The message of the `UsageError` that a file of these bytes gets."""

    def message(data):
        path = tmp_path / "x.run"
        path.write_bytes(data)
        with pytest.raises(UsageError) as error:
            load_run(path)
        text = str(error.value)
        assert text.startswith(f"{path}: "), text
        assert "run.save" in text
        return text

    return message


def members(data=FULL):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {m.filename: archive.read(m) for m in archive.infolist()}


def zipped(content, compression=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return out.getvalue()


def with_text(change):
    """The full record with its run.json changed in place by `change(dict)`, or replaced by what that returns."""
    content = members()
    data = json.loads(content["run.json"])
    answer = change(data)
    text = answer if isinstance(answer, bytes | str) else json.dumps(data)
    return zipped({**content, "run.json": text})


def with_array(array, field="launches.0.timeline.start"):
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return zipped({**members(), f"{field}.npy": out.getvalue()})


# ---- what is saved comes back ----


def test_every_field_survives(tmp_path):
    path = tmp_path / "x.run"
    save_run(run(), path)
    assert same(load_run(path), run())
    assert same(sim.load_run(str(path)), run())


def test_a_run_without_time_and_one_without_values(tmp_path):
    for one in (run(launches=()), run(errors={}), run(launches=(launch(timeline=None), launch("second")))):
        one.save(tmp_path / "x.run")
        assert same(load_run(tmp_path / "x.run"), one)


@given(hostile_runs())
def test_whatever_is_in_a_run_survives_or_is_refused_by_name(one):
    """Texts always do; figures that no run has are named."""
    try:
        check_figures(one)
    except UsageError:
        with pytest.raises(UsageError, match=r"^is damaged: (the \w+ of )?(launches\.\d+|errors)\."):
            run_from_bytes(run_bytes(one))
    else:
        assert same(run_from_bytes(run_bytes(one)), one)


@given(ANY_TEXT, st.floats())
def test_texts_and_numbers_that_look_like_our_own_words(text, number):
    odd = {"NaN": "NaN", "$float": text, "$tuple": [text], "deep": {"$array": text, text: (number, [text])}}
    one = run(options=odd | {"number": number})
    assert same(run_from_bytes(run_bytes(one)), one)


def test_numpy_numbers_become_numbers_and_types_become_words():
    given = run(options={"n": np.int64(7), "x": np.float32(0.5), "t": sim.shape((2,), "float16").dtype})
    assert run_from_bytes(run_bytes(given)).options == {"n": 7, "x": 0.5, "t": "fp16"}


def test_the_file_is_an_npz_and_strict_json(tmp_path):
    path = tmp_path / "x.run"
    save_run(run(), path)
    with np.load(path, allow_pickle=False) as opened:
        assert opened["launches.0.timeline.done"].tolist() == timeline().done.tolist()

        def no_literal(word):
            raise AssertionError(word)

        data = json.loads(opened["run.json"], parse_constant=no_literal)
    assert (data["format"], data["version"]) == ("ascendtile-run", 2)


def test_the_same_run_gives_the_same_bytes():
    assert run_bytes(run()) == FULL


# ---- a file is whole, or what was there before ----


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
@pytest.mark.parametrize(
    "fault", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()]
)
def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, step, fault):
    path = tmp_path / "x.run"
    path.write_text("old")

    def fail(*_, **__):
        raise fault

    monkeypatch.setattr(files if step == "open" else os, step, fail, raising=False)
    with pytest.raises(UsageError if isinstance(fault, OSError) else type(fault)) as error:
        save_run(run(), path)
    if isinstance(fault, OSError):
        assert str(error.value) == f"{path}: cannot write it: No space left on device"
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir()] == ["x.run"]
    assert path.read_text() == "old"


def test_a_device_that_is_full(tmp_path):
    """The real thing: a limit on file size, set in a process of its own."""
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from ascendtile.simulator.record.files import write_whole\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: write_whole(sys.argv[1], bytes(100_000))\n"
        "except ValueError as error: print(error)\n"
    )
    path = tmp_path / "x.run"
    path.write_text("old")
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert done.stdout == f"{path}: cannot write it: File too large\n"
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("x.run", "old")]


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    for path, words in {
        tmp_path: "is a folder",
        tmp_path / "none" / "x.run": "does not exist; make it first",
        tmp_path / "file" / "x.run": "is no folder",
        tmp_path / "pipe": "is not a regular file, nothing was written",
        "/dev/null": "is not a regular file",
        tmp_path / ("n" * 300): "File name too long",
        f"{tmp_path}/a\0b": "null",
    }.items():
        with pytest.raises(UsageError, match=words):
            save_run(run(), path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "pipe"]


def test_a_long_name_and_a_link(tmp_path):
    long = tmp_path / ("n" * 250)
    save_run(run(), long)
    link = tmp_path / "link"
    link.symlink_to(long)
    save_run(run(name="newer"), link)
    assert link.is_symlink()
    assert load_run(long).name == "newer"


def test_a_run_that_no_record_can_hold(monkeypatch):
    monkeypatch.setattr(record, "MAX_JSON_BYTES", 1000)
    with pytest.raises(UsageError, match=r"too large for a record: \d+ bytes of text \(limit 1000\)"):
        run_bytes(run())


# ---- files of anybody ----


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, words in {
        tmp_path / "none": "No such file or directory; records are written by",
        tmp_path: "is a folder; a run record is a file",
        tmp_path / "pipe": "is not a regular file",
        "a\0b": "null",
    }.items():
        with pytest.raises(UsageError, match=words):
            load_run(path)


def test_what_is_no_zip(refused):
    for data in (b"", b"\0", b"hello", b"\x93NUMPY\1\0", json.dumps({"format": "ascendtile-run"}).encode()):
        assert "is not a run record: it is not a zip file" in refused(data)


def test_a_foreign_zip(refused):
    assert "it is a zip file without run.json" in refused(zipped({"a.txt": "x"}))
    assert "does not say format 'ascendtile-run'" in refused(zipped({"run.json": '{"format": "other"}'}))
    assert "does not say format" in refused(zipped({"run.json": "[]"}))


def test_another_version(refused):
    text = refused(with_text(lambda d: d.update(version=3, ascendtile="9.1")))
    assert "has version 3, written by ascendtile '9.1'; this is ascendtile " in text
    assert "which reads versions 1 to 2" in text


@pytest.mark.parametrize("cut", [1, 22, 100, len(FULL) // 2, len(FULL) - 5])
def test_a_file_that_is_cut_short(refused, cut):
    assert "cut short or damaged" in refused(FULL[:-cut])


@given(st.integers(0, len(FULL) - 1), st.integers(0, 255))
def test_one_wrong_byte_never_gets_through_as_anything_but_words(place, byte):
    data = bytearray(FULL)
    data[place] = byte
    try:
        found = run_from_bytes(bytes(data))
    except UsageError:
        return
    assert same(found, run())


@pytest.mark.parametrize(
    "name", ["../x.npy", "/etc/x.npy", "a\\b.npy", "x.txt", "__init__.py", "a" * 99, "é.npy"]
)
def test_names_that_records_do_not_have(refused, name):
    assert f"has a member {name[:60]!r}" in refused(zipped({**members(), name: b""}))


def test_members_too_many_or_too_few(refused):
    extra = refused(zipped({**members(), "launches.9.timeline.core.npy": b""}))
    assert "'launches.9.timeline.core.npy' that nothing in it refers to" in extra
    fewer = {n: d for n, d in members().items() if not n.endswith("done.npy")}
    assert "the array 'launches.0.timeline.done' is missing or used twice" in refused(zipped(fewer))
    twice = with_text(lambda d: d["run"]["launches"].append(d["run"]["launches"][0]))
    assert "missing or used twice" in refused(twice)
    name = b"launches.0.timeline.core.npy"
    doubled = FULL.replace(name.replace(b"core", b"line"), name)
    assert "two members of one name" in refused(doubled)


def claims(data, size):
    """The zip with its first member's unpacked size claimed to be `size`, in both places where a zip says it."""
    out = bytearray(data)
    central = out.find(b"PK\1\2")
    out[central + 24 : central + 28] = struct.pack("<L", size)
    out[22:26] = struct.pack("<L", size)
    return bytes(out)


def test_bombs(refused, monkeypatch):
    assert "claims 4294967294 bytes in run.json, the limit is 16777216" in refused(claims(FULL, 2**32 - 2))
    assert "is damaged" in refused(claims(FULL, 10))
    real = zipped({"run.json": b" " * (record_archive.MAX_JSON_BYTES + 1)})
    assert len(real) < 20_000
    assert "claims 16777217 bytes in run.json" in refused(real)
    monkeypatch.setattr(record_archive, "MAX_UNPACKED_BYTES", 1000)
    assert "bytes unpacked, a run record has at most 1000" in refused(FULL)


def test_a_directory_of_millions_is_refused_before_it_is_read(refused):
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 9, 9, record_archive.MAX_DIRECTORY_BYTES + 1, 0, 0)
    assert "directory has more than 1048576 bytes" in refused(b"PK\3\4" + end)
    assert "directory has more than" in refused(FULL[:-22] + b"PK\6\7" + bytes(16) + FULL[-22:])


def test_files_of_any_size_are_refused_unread(tmp_path):
    path = tmp_path / "x.run"
    with open(path, "wb") as file:
        file.truncate(2**40)
    with pytest.raises(
        UsageError, match="a run record has at most 67108864 bytes, this file has 1099511627776"
    ):
        load_run(path)


def test_other_packings(refused):
    assert "packed in another way than deflate" in refused(zipped(members(), zipfile.ZIP_LZMA))
    assert same(run_from_bytes(zipped(members(), zipfile.ZIP_STORED)), run())


def test_a_record_without_the_reasons_of_buffers_is_read_without_them():
    """As versions wrote it that did not tell them."""

    def older(data):
        for one in data["run"]["launches"]:
            for buffer in one["buffers"].values():
                del buffer["freed"]
                for value in buffer["peak"]:
                    del value["why"], value["offsets"]

    (found,) = {
        v for x in run_from_bytes(with_text(older)).launches for b in x.buffers.values() for v in b.peak
    }
    assert (found.why, found.offsets, found.name) == ("", (), "x")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "run.json is not JSON"),
        ("{", "run.json is not JSON"),
        (b"\xff\xfe", "run.json is not JSON"),
        ('{"format": NaN}', "NaN is not JSON"),
        ('{"version": -Infinity}', "-Infinity is not JSON"),
        ("[" * 200_000, "nested too deep"),
        ('{"a":' * 200_000, "nested too deep"),
        ("1" * 10_000, "run.json is not JSON"),
    ],
    ids=["empty", "half", "bytes", "nan", "inf", "deep list", "deep dict", "digits"],
)
def test_text_that_is_no_sane_json(refused, text, words):
    assert words in refused(with_text(lambda _: text))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.pop("run"), "Run must be a JSON object, got None"),
        (lambda d: d["run"].pop("name"), "Run lacks field 'name'"),
        (lambda d: d["run"].update(colour=1), "Run has unknown field 'colour'"),
        (lambda d: d["run"].update(name=7), "name must be str, got 7"),
        (lambda d: d["run"].update(case=["x"]), "case must be str, got ['x']"),
        (lambda d: d["run"].update(values_seconds="soon"), "values_seconds must be float, got 'soon'"),
        (lambda d: d["run"].update(values_seconds=True), "values_seconds must be float, got True"),
        (lambda d: d["run"].update(launches={}), "launches must be a JSON array, got {}"),
        (lambda d: d["run"].update(tiling=[]), "tiling must be a JSON object, got []"),
        (
            lambda d: d["run"]["options"].update(x={"$eval": "1"}),
            "options.x has a '$eval' that makes no sense",
        ),
        (lambda d: d["run"]["options"].update(x={"$float": "7"}), "'$float' that makes no sense"),
        (lambda d: d["run"]["options"].update(x={"$dict": [[1, 2]]}), "'$dict' that makes no sense"),
        (
            lambda d: d["run"]["launches"][0].update(grid=[1, 2]),
            "launches.0.grid must have 3 items, it has 2",
        ),
        (lambda d: d["run"]["launches"][0].update(cycles=None), "launches.0.cycles must be float, got None"),
        (lambda d: d["run"]["launches"][0]["lines"][0].update(line=1.5), "lines.0.line must be int, got 1.5"),
        (lambda d: d["run"]["launches"][0]["pipes"].update(V=[]), "pipes.V must be a JSON object"),
        (
            lambda d: d["run"]["launches"][0].update(programs=2**63),
            "programs is an integer of 2^62 or more, which no int",
        ),
        (
            lambda d: d["run"]["launches"][0].update(cycles=10**400),
            "cycles is an integer of 2^62 or more, which no float",
        ),
        (lambda d: d["run"]["errors"]["out"].update(max_abs="big"), "errors.out.max_abs must be float"),
        (lambda d: d["run"]["errors"]["out"].pop("rmse"), "errors.out lacks field 'rmse'"),
        (lambda d: d["run"]["launches"][0]["timeline"].update(core=[1]), "core must name an array, got [1]"),
        (
            lambda d: d["run"]["launches"][0]["timeline"].update(pipes=["V"]),
            "timeline.pipe is 1; it must be 0 to 0",
        ),
    ],
)
def test_fields_of_the_wrong_type(refused, change, words):
    def in_place(data):
        change(data)

    assert words in refused(with_text(in_place))


def test_values_nested_without_end(refused):
    deep = 0
    for _ in range(100):
        deep = [deep]
    assert "nested deeper than 32 levels" in refused(with_text(lambda d: d["run"]["options"].update(x=deep)))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(6), "must have one length"),
        (np.zeros((7, 1)), "is of float64 and shape (7, 1)"),
        (np.zeros(7, complex), "records have lists of native numbers"),
        (np.zeros(7, ">f8"), "records have lists of native numbers"),
        (np.zeros(7, "U3"), "records have lists of native numbers"),
        (np.array([{}] * 7, object), "holds Python objects, which are never loaded"),
        (np.zeros(7, [("a", "O"), ("b", "f8")]), "holds Python objects"),
        (np.zeros(7, "V0"), "holds elements of no bytes"),
    ],
    ids=["short", "matrix", "complex", "swapped", "text", "objects", "object fields", "nothing"],
)
def test_arrays_that_are_no_timeline(refused, array, words):
    assert words in refused(with_array(array))


def test_indices_must_be_integers_within_the_pipes(refused):
    assert "pipe must be of integers, it is float64" in refused(
        with_array(np.zeros(7), "launches.0.timeline.pipe")
    )
    high = np.full(7, 2, np.int32)
    for wrong in (high, -high):
        text = refused(with_array(wrong, "launches.0.timeline.pipe"))
        assert f"timeline.pipe is {wrong[0]}; it must be 0 to 1" in text


@pytest.mark.parametrize(("name", "count"), [("reason", 6), ("waited", 7), ("name", 2)])
def test_gaps_point_to_what_is_there(refused, name, count):
    least = 0 if name == "name" else -1
    field = f"launches.0.timeline.{name}"
    for value in (count, least - 1):
        text = refused(with_array(np.array([*[0] * 6, value], np.int32), field))
        assert f"timeline.{name} is {value}; it must be {least} to {count - 1}" in text
    assert f"{name} must be of integers" in refused(with_array(np.zeros(7), field))
    assert "its arrays must have one length" in refused(with_array(np.zeros(6, np.int32), field))


def test_a_record_of_version_1_has_a_timeline_without_gaps(tmp_path):
    """As the version before gaps wrote it: no such fields, no such arrays."""
    gone = ("gap", "reason", "waited", "bandwidth", "bytes", "name")
    content = {n: x for n, x in members().items() if n.split(".")[-2] not in gone}
    data = json.loads(content["run.json"])
    data["version"] = 1
    for one in data["run"]["launches"]:
        for name in (*gone, "reasons", "names", "until"):
            del one["timeline"][name]
        for line in one["lines"]:
            del line["stalls"]
    path = tmp_path / "old.run"
    path.write_bytes(zipped({**content, "run.json": json.dumps(data)}))
    old = load_run(path).launches[0].timeline
    assert all(getattr(old, n) is None for n in gone)
    assert old.start.tolist() == timeline().start.tolist()


def test_some_gaps_without_the_others(refused):
    def without_reasons(d):
        d["run"]["launches"][0]["timeline"]["reason"] = None

    content = members(with_text(without_reasons))
    del content["launches.0.timeline.reason.npy"]
    assert "has gaps without reason" in refused(zipped(content))


@pytest.mark.parametrize(
    "shape", ["(10**15,)", "(1000000000000000,)", "(-1,)", "(8,)", "(6,)", "(7,", "__import__('os')"]
)
def test_headers_that_claim_what_is_not_there(refused, shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    data = archive.MAGIC + b"\1\0" + struct.pack("<H", len(header)) + header.encode() + bytes(56)
    found = refused(zipped({**members(), "launches.0.timeline.start.npy": data}))
    assert "'launches.0.timeline.start' that " in found
    assert "does not fit its" in found or "damaged header" in found


def test_markup_and_escapes_are_only_text():
    odd = run(
        name="<script>alert(1)</script>", launches=(replace(launch("[bold]\x1b[31m"), notes=("\x07",)),)
    )
    assert same(run_from_bytes(run_bytes(odd)), odd)
