"""The folder that goes to the board: kernels, the runner, inputs, a list of experiments, and what to do with them."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.record.files import naming, write_whole
from .all_experiments import all_experiments

BOARD = Path(__file__).with_name("board")
COPIED = ("probe_kernels.py", "run_probe.py")
LIST, INPUTS, RESULTS, PAGE = "experiments.json", "inputs", "results", "README.txt"
VERSION = 1  # of the experiments: a reader refuses results of another one

_PAGE = """The probe: {count} small kernels that tell how the Cube and Vector units of a board compute.

On the board, with CANN, torch, torch_npu and Triton-Ascend installed:

    python run_probe.py

It launches each kernel once on inputs of this folder (at most {megabytes:.1f} MB in all) and keeps the bits of the
outputs in results/. Most of the time goes into compiling the kernels. A kernel that a board does not offer fails, is noted,
and the others go on; run it again and it goes on where it stopped, --again starts anew. Nothing else of the machine is read
or kept but the names of the product and the versions of python, numpy, torch, torch_npu and triton.

Send back this folder, or results/ alone in a copy of it. There:

    ascendtile probe --read THIS_FOLDER -o numerics.toml
"""


def write_probe(out: str | Path) -> list[str]:
    """Write the folder; names of the experiments. `UsageError` where the folder has files already."""
    folder = Path(out)
    with naming(out, "write to"):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(
                "is there and not empty; take a new folder: results of another probe would be mixed up"
            )
        (folder / INPUTS).mkdir(parents=True, exist_ok=True)
    experiments = all_experiments()
    for name in COPIED:
        write_whole(folder / name, (BOARD / name).read_bytes())
    total = 0
    for name, experiment in experiments.items():
        data = _npz({n: x.words for n, x in experiment.tensors.items()})
        total += sum(x.words.nbytes for x in experiment.tensors.values())
        write_whole(folder / INPUTS / f"{name}.npz", data)
    listed = {"version": VERSION, "experiments": [e.told() for e in experiments.values()]}
    write_whole(folder / PAGE, _PAGE.format(count=len(experiments), megabytes=total / 1e6).encode())
    write_whole(folder / LIST, json.dumps(listed, indent=1).encode())
    return list(experiments)


def _npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()
