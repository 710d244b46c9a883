"""Result files of a board, read as anybody's: sizes are checked, what does not belong to these experiments is refused."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.record.archive import DAMAGE, check_end, read_array
from ...simulator.record.files import naming, read_whole
from .all_experiments import all_experiments
from .deciding import decide
from .experiment import Experiment, Words
from .findings import ProbeFindings
from .writing import RESULTS

MOST_BYTES = 1 << 22  # of one result file
MOST_TEXT = 300  # characters of a message or a name that are shown
ABOUT = "about"


@dataclass
class Results:
    """words: bits of the output by experiment. errors: of those that failed, why."""

    product: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    words: dict[str, Words] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


def read_probe(folder: str | Path) -> ProbeFindings:
    """What the results in a folder say. `UsageError` where there are none, or one is damaged or foreign."""
    found = read_results(folder)
    return decide(found.words, found.errors, found.product, found.versions)


def read_results(folder: str | Path) -> Results:
    place = Path(folder) / RESULTS
    known = all_experiments()
    paths = {n: place / f"{n}.npz" for n in known if (place / f"{n}.npz").exists()}
    if not paths:
        what = (
            "is no folder"
            if not Path(folder).is_dir()
            else f"has no results of these experiments in {RESULTS}/"
        )
        raise UsageError(
            f"{folder} {what}; `ascendtile probe --out FOLDER` writes one, run_probe.py in it fills {RESULTS}/"
        )
    found = Results()
    for name, path in paths.items():
        with naming(path, "read"):
            _add(found, known[name], *_read(read_whole(path, MOST_BYTES, "a result of a probe")))
    return found


def _add(
    found: Results, experiment: Experiment, about: dict[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    if (about["experiment"], about["digest"]) != (experiment.name, experiment.digest):
        raise UsageError(
            f"is of experiment {about['experiment']} with inputs {about['digest']}, not of {experiment.name} with "
            f"{experiment.digest}: write the probe anew with this release and run it again"
        )
    if found.product and about["product"] != found.product:
        raise UsageError(
            f"is of {about['product']}, others are of {found.product}: keep the results of each board apart"
        )
    found.product, found.versions = about["product"], about["versions"]
    if about["error"]:
        found.errors[experiment.name] = about["error"]
        return
    (name,) = experiment.outputs
    expected, words = experiment.output.words, arrays.get(name)
    if words is None or words.dtype != expected.dtype or words.size != expected.size:
        seen = "missing" if words is None else f"{words.dtype} {words.shape}"
        raise UsageError(f"output {name} is {seen}, it must be {expected.dtype} {expected.shape}")
    found.words[experiment.name] = words.reshape(expected.shape)


def _read(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the file says of itself, and its arrays."""
    try:
        check_end(data[-100:])
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            arrays = {m.filename.removesuffix(".npy"): _member(archive, m) for m in archive.infolist()[:8]}
    except DAMAGE as e:
        raise UsageError(f"is damaged ({str(e) or type(e).__name__}); run this experiment again") from None
    return _about(arrays.pop(ABOUT, np.zeros(0, np.uint8)).tobytes()), arrays


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    if member.file_size > MOST_BYTES:
        raise UsageError(
            f"claims {member.file_size} bytes in {member.filename[:60]!r}, at most {MOST_BYTES} are read"
        )
    with archive.open(member) as file:
        return read_array(file, member.file_size)


def _about(data: bytes) -> dict[str, Any]:
    try:
        read = json.loads(data.decode("utf-8"))
    except ValueError:
        read = None
    if not isinstance(read, dict) or not isinstance(read.get("versions"), dict):
        raise UsageError("is no result of a probe: it does not say of which experiment")
    texts = {n: _text(read.get(n, "")) for n in ("experiment", "digest", "error", "product")}
    return {**texts, "versions": {_text(n): _text(x) for n, x in list(read["versions"].items())[:16]}}


def _text(x: object) -> str:
    return " ".join(str(x).split())[:MOST_TEXT]
