"""`--input`: arrays from a file that may be anybody's. Sizes are checked before anything is read."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from ...simulator.errors import UsageError
from ...simulator.record.archive import DAMAGE, MAGIC, check_end, read_array
from ...simulator.record.files import naming, regular_size

if TYPE_CHECKING:
    from typing import IO

    from ...kernels.operator.operator import Operator

MAX_INPUT_BYTES = 4 * 2**30
MAX_INPUTS = 64
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def read_inputs(path: str, op: Operator | None = None) -> dict[str, np.ndarray]:
    """All arrays of an .npz by name; the one of an .npy as the input of `op`, if that needs only one."""
    with naming(path, "read"):
        try:
            return _read(path, op)
        except (UsageError, OSError):
            raise
        except DAMAGE as error:
            raise UsageError(f"is damaged: {error}") from None


def read_reference(text: str) -> Any:
    """Arrays by name of an .npz file, or the function that `module:function` names. Raises `UsageError`."""
    if os.path.isfile(text) or text.endswith(".npz"):
        return read_inputs(text)
    module, colon, name = text.partition(":")
    if not (colon and module and name.isidentifier()):
        raise UsageError(f"--float64-reference: {text!r} is neither a file nor module:function")
    try:
        found = getattr(module_of(module), name, None)
    except Exception as e:  # whatever the module raises
        raise UsageError(f"--float64-reference: importing {module} raised {type(e).__name__}: {e}") from e
    if not callable(found):
        raise UsageError(f"--float64-reference: {module} has no function {name!r}")
    return found


def module_of(name: str) -> Any:
    """A module that can be imported from here, or a file."""
    if not name.endswith(".py"):
        sys.path.insert(0, os.getcwd())
        try:
            return importlib.import_module(name)
        finally:
            sys.path.remove(os.getcwd())
    spec = importlib.util.spec_from_file_location(os.path.basename(name)[:-3], name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _read(path: str, op: Operator | None) -> dict[str, np.ndarray]:
    size = _sane(regular_size(path, "an input"))
    with open(path, "rb") as file:
        magic = file.read(len(MAGIC))
        file.seek(0)
        if magic == MAGIC and op is not None:
            return {_only_input(op): _stored(read_array(file, size))}
        if magic[:2] == b"PK":
            file.seek(max(0, size - 100))
            check_end(file.read())
            return _read_archive(file)
    known = "neither an .npz nor an .npy file" if op is not None else "no .npz file"
    raise UsageError(f"is {known} (np.savez writes .npz, np.save .npy)")


def _only_input(op: Operator) -> str:
    if len(op.required) == 1:
        return op.required[0]
    names = ", ".join(op.required)
    raise UsageError(
        f"is an .npy file, and {op.name} needs {len(op.required)} inputs: give an .npz with {names}"
    )


def _read_archive(file: IO[bytes]) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if not 1 <= len(members) <= MAX_INPUTS:
            raise UsageError(f"must have 1 to {MAX_INPUTS} arrays, it has {len(members)}")
        _sane(sum(m.file_size for m in members))
        names = [m.filename.removesuffix(".npy") for m in members]
        twice = [n for n in names if names.count(n) > 1]
        if twice:
            raise UsageError(
                f"holds {twice[0][:60]!r} {names.count(twice[0])} times; which one is meant cannot be told"
            )
        return {n: _read_member(archive, m) for n, m in zip(names, members, strict=True)}


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    try:
        with archive.open(member) as file:
            return _stored(read_array(file, member.file_size))
    except UsageError as error:
        raise UsageError(f"array {member.filename[:60]!r} {error}") from None


def _sane(size: int) -> int:
    if size > MAX_INPUT_BYTES:
        raise UsageError(f"claims {size} bytes, inputs have at most {MAX_INPUT_BYTES}")
    return size


def _stored(array: np.ndarray) -> np.ndarray:
    """numpy stores bfloat16 as two bytes without a name."""
    return array.view(BFLOAT16) if array.dtype == np.dtype("V2") else array
