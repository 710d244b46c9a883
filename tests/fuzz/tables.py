"""Targets of arrays of inputs, and of tables of the vendor's profiler."""

from __future__ import annotations

import csv
import io
import re
from functools import cache
from pathlib import Path

import numpy as np

import ascendtile.kernels.validation as validation

from . import seeds
from .judge import Bench, Finding
from .mutators import HOSTILE, Chance, mutated_bytes
from .records import zipped
from .values import mutated_array, npy

# ---- arrays ----


@cache
def inputs() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Of rms_norm_grad, and of matmul."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(8, 64)).astype(np.float16)
    rms = {
        "dy": x,
        "x": x[::-1].copy(),
        "rstd": np.ones((8, 1), np.float32),
        "gamma": np.ones(64, np.float16),
    }
    return rms, {
        "a": draw.normal(size=(16, 32)).astype(np.float32),
        "b": draw.normal(size=(32, 16)).astype(np.float32),
    }


def input_arrays(chance: Chance, bench: Bench) -> None:
    which = chance.randrange(2)
    path = bench.file(chance.one_of("x.npz", "x.npz", "x.npy"), _archive(chance, dict(inputs()[which])))
    op = ("rms_norm_grad", "matmul")[which]
    way = chance.randrange(4)
    if way < 2:
        bench.command(
            "run",
            op,
            "--input",
            path,
            *chance.one_of((), ("--json",), ("--no-time",), ("--no-values",), ("--explain",)),
        )
    elif way == 2:
        bench.command(
            "precision",
            op,
            "--input",
            path,
            "--no-time",
            "--modes",
            "KEEP_DTYPE",
            *chance.one_of((), ("--json",)),
        )
    else:
        good = bench.file("good.npz", zipped({f"{n}.npy": npy(x) for n, x in inputs()[which].items()}))
        bench.command(
            "precision",
            op,
            "--input",
            good,
            "--reference",
            path,
            "--no-time",
            "--modes",
            "KEEP_DTYPE",
            "--json",
        )
    if chance.once_in(4):
        bench.command("run", "batch_norm_statistics", "--input", path, "--no-time")


def _archive(chance: Chance, arrays: dict[str, np.ndarray]) -> bytes:
    """An .npz with some array changed, renamed, left out; or its bytes changed; or an .npy."""
    if chance.once_in(4):
        arrays |= {"out": np.zeros((16, 16), np.float32), "dx": arrays[min(arrays)]}
    for _ in range(chance.randrange(3)):
        name = chance.choice(list(arrays))
        arrays[name] = mutated_array(chance, arrays[name], gently=chance.once_in(2))
    if chance.once_in(6):
        arrays[chance.choice(HOSTILE).replace("\0", "") or "x"] = arrays.pop(chance.choice(list(arrays)))
    content = {f"{n}.npy": npy(x) for n, x in arrays.items()}
    if chance.once_in(3):
        name = chance.choice(list(content))
        content[name] = mutated_bytes(chance, content[name])
    if chance.once_in(6):
        return chance.choice(list(content.values()))
    raw = zipped({n.encode(errors="replace").decode(): x for n, x in content.items()})
    return mutated_bytes(chance, raw, [seeds.records()[0]]) if chance.once_in(4) else raw


# ---- tables ----

OPERATORS = (
    "Relu",
    "Muls",
    "Neg",
    "Add",
    "MatMulV2",
    "LayerNormV4",
    "RmsNorm",
    "SoftmaxV2",
    "FlashAttentionScore",
    "Cast",
    "Nothing",
    "TransData",
    "ReduceSum",
)


@cache
def vendor_tables() -> tuple[str, str]:
    """PipeUtilization.csv and op_summary.csv, as `export --as vendor` writes them."""
    import tempfile

    from .judge import alone_in

    with tempfile.TemporaryDirectory() as folder, alone_in(Path(folder) / "x") as bench:
        path = bench.file("x.run", seeds.records()[1])
        assert bench.command("export", path, "--as", "vendor", "-o", "tables").status == 0
        found = sorted(Path("tables").rglob("PipeUtilization.csv"))[-1]
        return found.read_text(), Path("tables/op_summary.csv").read_text()


@cache
def measured() -> tuple[list[list[str]], ...]:
    """Head and rows of the project's own tables, those of small sizes."""
    folder = Path(validation.__file__).parent
    tables = []
    for name in ("kernels.csv", "micro.csv"):
        with open(folder / name, newline="") as file:
            rows = list(csv.reader(file))
        tables.append([rows[0], *(r for r in rows[1:] if all(len(x) < 6 for x in re.findall(r"\d+", r[4])))])
    return tuple(tables)


def vendor_csv(chance: Chance, bench: Bench) -> None:
    """A profile beside a run; a profile and a table of measurements that a product is fitted to, or that are predicted."""
    way = chance.randrange(4)
    if way == 0:
        run = bench.file("x.run", seeds.records()[1])
        path = bench.file(
            "PipeUtilization.csv", _table_bytes(chance, _cells(chance, _rows(vendor_tables()[0])))
        )
        bench.command(
            "compare",
            run,
            path,
            *chance.one_of((), ("--launch", 0), ("--launch", 1), ("--launch", 1), ("--launch", 7)),
            *chance.one_of((), ("--json",)),
        )
        return
    rows = _profile(chance) if way == 1 else _measurements(chance)
    path = bench.file("table.csv", _table_bytes(chance, _cells(chance, rows)))
    if way == 3:
        bench.command("validate", "--table", path, *chance.one_of((), ("--json",)))
        return
    target = bench.folder / "fitted.toml"
    told = bench.command(
        "calibrate",
        path,
        "--leave-out",
        chance.one_of(0, 0.25, 0.9),
        *chance.one_of((), ("--json",)),
        *chance.one_of((), ("-o", target)),
    )
    if told.status == 0 and target.exists() and bench.command("products", target).status:
        raise Finding("the product that was fitted cannot be read")


def _rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def _profile(chance: Chance) -> list[list[str]]:
    head, *rows = _rows(vendor_tables()[1])
    place = {n: k for k, n in enumerate(head)}
    made = []
    for k in range(chance.one_of(1, 3, 6)):
        row = list(chance.choice(rows))
        shape = "x".join(
            str(chance.one_of(1, 7, 64, 100, 512)) for _ in range(chance.one_of(1, 2, 3))
        ).replace("x", ",")
        count = chance.one_of(1, 2, 3)
        change = {
            "OP Type": chance.choice(OPERATORS), "Task Duration(us)": str(chance.uniform(1, 60)),
            "Input Shapes": '"' + ";".join([shape] * count) + '"', "Output Shapes": f'"{shape}"',
            "Input Data Types": ";".join(["FLOAT16"] * count), "Output Data Types": "FLOAT16", "Op Name": f"op{k}",
        }  # fmt: skip
        for name, cell in change.items():
            row[place[name]] = cell
        made.append(row)
    return [head, *made]


def _measurements(chance: Chance) -> list[list[str]]:
    head, *rows = chance.choice(measured())
    return [head, *chance.sample(rows, chance.one_of(1, 2, 4))]


def _cells(chance: Chance, rows: list[list[str]]) -> list[list[str]]:
    """Some cells, columns and rows are changed."""
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(rows))
        row = rows[at] = list(rows[at])
        if not row:
            continue
        k = chance.randrange(len(row))
        change = chance.randrange(8)
        if change == 0:
            row[k] = chance.choice(HOSTILE)
        elif change == 1:
            del row[k]
        elif change == 2:
            row.insert(k, row[-1])
        elif change == 3:
            row[k] = "".join(chance.choice(rows)[k : k + 1])
        elif change == 4:
            rows.insert(at, row)
        else:
            row[k] = _other_cell(chance, row[k])
        chance.note(f"row {at}, column {k}: now {row[k : k + 1]!r:.200}")
    return rows


def _other_cell(chance: Chance, cell: str) -> str:
    number = str(
        chance.one_of(
            0, -1, 1, 2, 1e-9, 1e9, 1e300, 10**15, 2**63, "nan", "inf", "1e999", "", "N/A", "0.5", "1,000"
        )
    )
    found = list(re.finditer(r"\d+(\.\d+)?", cell))
    if not found or chance.once_in(5):
        return number
    at = chance.choice(found)
    return cell[: at.start()] + number + cell[at.end() :]


def _table_bytes(chance: Chance, rows: list[list[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    text = out.getvalue()
    if chance.once_in(12):
        text = chance.one_of(
            text.replace("\r\n", "\r"),
            "\ufeff" + text,
            text.replace(",", ";"),
            text.replace('"', ""),
            text + '"',
        )
    raw = text.encode(errors="surrogatepass")
    return mutated_bytes(chance, raw) if chance.once_in(8) else raw
