"""Targets of run records, explorations and studies: what is read is shown, drawn, exported and compared."""

from __future__ import annotations

import io
import pickle
import struct
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ascendtile.simulator.record.archive import pack
from ascendtile.simulator.record.loading import run_from_bytes
from ascendtile.simulator.record.saving import run_bytes

from ..support.sample_runs import same
from . import seeds
from .judge import Bench, Finding, check_file, check_markup
from .mutators import Chance, mutated_bytes
from .values import as_text, mutated_array, mutated_json, npy

RUN_PICTURES = ("roofline", "timeline", "occupancy", "errors", "magnitude")
OTHER_PICTURES = ("pareto", "heatmap", "precision", "sweep")


def record_bytes(chance: Chance, bench: Bench) -> None:
    """Bytes of the file, or of a member whose checksum is then right."""
    number = chance.randrange(len(seeds.records()))
    if chance.once_in(2):
        raw = mutated_bytes(chance, seeds.records()[number], seeds.records())
        _believed(raw)
    else:
        raw = _with_a_changed_member(chance, number)
    path = bench.file("x.run", raw)
    if bench.command("report", path).status == 0:
        look(chance, bench, path)


def _believed(raw: bytes) -> None:
    """Bytes that were changed by chance are never another run: a zip has checksums."""
    try:
        found = run_from_bytes(raw)
    except ValueError:  # UsageError is one
        return
    if not any(same(found, run_from_bytes(x)) for x in seeds.records()):
        raise Finding("changed bytes were read as a run that nobody wrote")


def _with_a_changed_member(chance: Chance, number: int) -> bytes:
    data, arrays = seeds.members(number)
    content = {"run.json": as_text(chance, data), **arrays}
    name = chance.choice(["run.json", *content])
    content[name] = mutated_bytes(chance, content[name], list(arrays.values()))
    return zipped(content)


def zipped(content: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return out.getvalue()


def record_content(chance: Chance, bench: Bench) -> None:
    """Fields and arrays; or the JSON of an exploration or of a study."""
    kind = chance.randrange(8)
    if kind < 2:
        text = seeds.sweep()[1] if kind else seeds.study()
        look_at_json(chance, bench, text)
        return
    path = bench.file("x.run", changed_record(chance))
    look(chance, bench, path)
    look(chance, bench, path)


def look_at_json(chance: Chance, bench: Bench, text: str) -> None:
    import json

    data = mutated_json(chance, json.loads(text), gently=chance.once_in(2))
    path = bench.file("x.json", as_text(chance, data))
    if bench.command("report", path, *chance.one_of((), ("--json",))).status == 0:
        picture = (*chance.one_of((), ("--picture", chance.choice(OTHER_PICTURES))),)
        written(bench, f"x.{'svg' if picture else 'html'}", "report", path, *picture)


def changed_record(chance: Chance) -> bytes:
    """A record with right checksums and other content."""
    data, arrays = seeds.members(chance.randrange(len(seeds.records())))
    gently = not chance.once_in(3)
    made = {n.removesuffix(".npy"): np.load(io.BytesIO(x)) for n, x in arrays.items()}
    if made and chance.once_in(2):
        for _ in range(chance.few()):
            name = chance.choice(list(made))
            made[name] = mutated_array(chance, made[name], gently)
    if made and chance.once_in(6):
        made = _reordered(chance, made)
    if not chance.once_in(4):
        data = mutated_json(chance, data, gently)
    return pack(as_text(chance, data), {n: x for n, x in made.items() if x.dtype.kind != "O"})


def _reordered(chance: Chance, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All arrays of a timeline in another order, or some of their entries alone."""
    prefix = chance.choice(list(arrays)).rpartition(".")[0]
    length = len(next(x for n, x in arrays.items() if n.startswith(prefix)))
    order = np.array(
        chance.choices(range(length), k=chance.one_of(0, 1, length, length)) if length else [], int
    )
    chance.note(f"{prefix}: entries {order[:10]}")
    return {n: x[order] if n.startswith(prefix) and len(x) == length else x for n, x in arrays.items()}


def look(chance: Chance, bench: Bench, path: Path) -> None:
    """One of the ways to look at a run."""
    other = bench.file(
        "y.run", changed_record(chance) if chance.once_in(3) else chance.choice(seeds.records())
    )
    first, second = chance.sample([path, other], 2)
    way = chance.randrange(9)
    if way == 0:
        bench.command("report", path, *chance.one_of((), ("--json",)))
    elif way == 1:
        written(bench, "x.html", "report", path)
    elif way == 2:
        written(
            bench,
            f"x.{chance.one_of('svg', 'png')}",
            "report",
            path,
            "--picture",
            chance.choice(RUN_PICTURES),
        )
    elif way == 3:
        window = chance.one_of((), (), ("--window", "0.5:1"), ("--limit", 5), (other,))
        written(bench, "x.json", "export", path, *window, "--as", chance.one_of("perfetto", "insight"))
    elif way == 4:
        bench.command("export", path, "--as", "vendor", "-o", bench.folder / "tables")
    elif way == 5:
        bench.command("compare", first, second, *chance.one_of((), ("--json",)))
    elif way == 6:
        written(bench, f"x.{chance.one_of('html', 'csv', 'svg')}", "compare", first, second)
    elif way == 7:
        written(bench, "x.html", "report", first, second)
    else:
        comes_back(bench, path)


def written(bench: Bench, name: str, *command: object) -> None:
    target = Path(tempfile.mkdtemp(dir=bench.folder)) / name
    if bench.command(*command, "-o", target).status == 0:
        check_file(target)
    elif target.exists():
        raise Finding(f"{name} is there although the command failed")


def comes_back(bench: Bench, path: Path) -> None:
    """A run that was read can be written, and is the same afterwards; a notebook can show it."""
    with bench.refusing():
        run = run_from_bytes(path.read_bytes())
        if not same(run_from_bytes(run_bytes(run)), run):
            raise Finding("a run that was read, written and read is another one")
        check_markup(run._repr_html_(), whole=False)


# ---- zip files that lie ----


class Payload:
    """Leaves a file behind when it is unpickled."""

    def __reduce__(self) -> Any:
        return open, ("executed", "w")


NAMES = (
    "../up.npy", "/etc/x.npy", "a\\b.npy", "run.json", "run.json/", "a.npy", "A.NPY", "é.npy", "x" * 300, ".npy",
    "a\0b.npy", "launches.0.timeline.core.npy", "launches.99.timeline.core.npy", "x.npy", "dy.npy", "rstd.npy",
    "gamma.npy",
)  # fmt: skip
CLAIMS = (0, 1, 10, 2**16, 2**20, 2**24 + 1, 2**26, 2**31 - 1, 2**32 - 2, 2**32 - 1)
# Places of two-byte and four-byte fields, in the directory's entry and before the member itself.
SMALL_FIELDS = ((8, 6), (10, 8), (28, 26), (30, 28), (32, None), (34, None), (36, None))
LARGE_FIELDS = ((16, 14), (20, 18), (24, 22), (38, None), (42, None))


def archive_claims(chance: Chance, bench: Bench) -> None:
    """Directories of zips that claim anything, bombs, pickles, odd headers, nesting: as a record and as an input."""
    number = chance.randrange(len(seeds.records()))
    data, arrays = seeds.members(number)
    content = {"run.json": _bad_text(chance, data), **arrays}
    for _ in range(chance.randrange(3)):
        name = chance.one_of(chance.choice(list(content)), chance.choice(NAMES))
        content[name.replace("\0", "")] = _bad_member(chance)
    raw = bytearray(zipped(content))
    for _ in range(chance.randrange(4)):
        _lie(chance, raw)
    if chance.once_in(8):
        raw += chance.one_of(
            b"PK\5\6" + bytes(18), b"PK\6\7" + bytes(16) + bytes(raw[-22:]), bytes(100), bytes(raw)
        )
    path = bench.file("x.run", bytes(raw))
    bench.command("report", path)
    bench.command("run", "rms_norm_grad", "--case", "tiny", "--input", path, "--no-time")
    if (bench.folder / "executed").exists():
        raise Finding("what was pickled in a file has run")


def _bad_text(chance: Chance, data: Any) -> bytes:
    good, n = as_text(chance, data), chance.one_of(10**3, 10**5, 10**6)
    deep = chance.one_of(
        b"[" * n, b'{"a":' * n, b"[" * n + b"]" * n, b"1" * n, b'"' + b"\\u0041" * n + b'"', b" " * 17 * 2**20
    )
    inside = good.replace(b'"options": {', b'"options": {"deep": ' + deep + b", ", 1)
    return bytes(chance.one_of(good, good, good, deep, inside, b"", good * 2))


def _bad_member(chance: Chance) -> bytes:
    kind = chance.randrange(5)
    if kind == 0:
        return npy(np.array([Payload()], object))
    if kind == 1:
        return pickle.dumps(Payload())
    if kind == 2:
        return npy(np.zeros(chance.one_of(0, 1, 10**6, 8 * 2**20 + 7)))
    shape = chance.one_of(
        "(3,)", "()", "(-1,)", f"({2**62},)", f"({2**31}, {2**31}, 4)", "(0,)", f"({2**40}, 0)", "(1.5,)", "('a',)",
        "(" * 300, "[3]", "(True,)", "(3, 3" + ", 1" * 70 + ")", f"({10**30},)", "(3L,)",
    )  # fmt: skip
    descr = chance.one_of(
        "'<f8'", "'|O'", "'|V0'", "'<U0'", "[('a', '|O')]", "[('a', '<f8', (9, 9))]", "'<f8'*3",
        "'" + "f4," * 900 + "'", "__import__('os')", "'>f8'", "'|V100000000'", "{'a': 1}", "None",
    )  # fmt: skip
    order = chance.one_of("False", "True", "1", "None")
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}\n".encode()
    version = chance.one_of(b"\1\0", b"\1\0", b"\2\0", b"\3\0", b"\4\0")
    length = struct.pack(
        "<H" if version == b"\1\0" else "<L", min(65535, len(text) + chance.one_of(0, 0, 0, 5, -5, 60000))
    )
    return b"\x93NUMPY" + version + length + text + bytes(chance.one_of(0, 24, 1000))


def _lie(chance: Chance, raw: bytearray) -> None:
    """A field of a member's entry, mostly in both places where a zip says it."""
    entries = [k for k in range(len(raw) - 46) if raw[k : k + 4] == b"PK\1\2"]
    if not entries:
        return
    at = chance.choice(entries)
    local = struct.unpack_from("<L", raw, at + 42)[0]
    both = not chance.once_in(3)
    if chance.once_in(2):
        (there, here), form, value = (
            chance.choice(SMALL_FIELDS),
            "<H",
            chance.one_of(0, 1, 8, 9, 12, 14, 0x800, 0xFFFF),
        )
    else:
        (there, here), form, value = chance.choice(LARGE_FIELDS), "<L", chance.one_of(*CLAIMS, len(raw))
    struct.pack_into(form, raw, at + there, value)
    if both and here is not None and local + here + 4 <= len(raw):
        struct.pack_into(form, raw, local + here, value)
    chance.note(f"zip entry at {at}, field {there}: {value}, before the member too: {both}")
