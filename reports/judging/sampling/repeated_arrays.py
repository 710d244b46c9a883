"""Arrays of a message (see `exchange.py`) of which large ones are not sent: the file that they repeat is.

The one who sends puts the file's descriptor beside the message, under the name that the message gives; whoever reads maps
the same pages.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ....simulator.errors import UsageError
from .repeated import RepeatedMemory, ValueFile

if TYPE_CHECKING:
    from .lazy_inputs import Repeated

PREFIX = "values."
NO_FILE = "zeros"  # in place of a name: memory that was never filled


class RepeatedArrays(dict[str, np.ndarray]):
    """made: the tensors that repeat a file. files: by the name in messages."""

    def __init__(self, made: Repeated, files: Mapping[str, ValueFile] | None = None) -> None:
        super().__init__()
        self.made = made
        self.files = dict(files or {})
        self.memories: dict[
            str, RepeatedMemory
        ] = {}  # of the tensors that were made, by the name of their file

    def kept(self, tensor: Any, where: str) -> str | None:
        """The name under which a tensor's file goes with the message; None for a tensor that repeats none."""
        memory = self.made.of(tensor) if hasattr(tensor, "data_ptr") else None
        if memory is None:
            return None
        if memory.file is None:
            return NO_FILE
        self.files[where] = memory.file
        return where

    def tensor(self, name: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        """The tensor of a message. `UsageError`: there is no file of that name and size of elements."""
        file = None if name == NO_FILE else self.files.get(name) if isinstance(name, str) else None
        if file is None and name != NO_FILE:
            raise UsageError(f"file {name!r:.40} of a message is not there")
        if file is not None and file.values.dtype.itemsize != dtype.itemsize:
            raise UsageError(f"file {name!r:.40} has elements of another size than {dtype}")
        out = self.made.mapped(shape, file, dtype)
        memory = self.made.of(out)
        assert memory is not None
        self.memories[name] = memory
        return out

    def refill(self, files: Mapping[str, ValueFile]) -> None:
        """Put other values into the tensors that were made, at the same addresses."""
        for name, file in files.items():
            self.memories[name].fill(file)

    def descriptors(self, call: str) -> dict[str, int]:
        """Copies of the files' descriptors, by the names that go with the message of a call."""
        return {f"{PREFIX}{call}.{n}": os.dup(f.descriptor) for n, f in self.files.items()}


def files_of(fds: Mapping[str, int], call: str) -> dict[str, ValueFile]:
    """The files that came with the message of a call. `UsageError`: one is no period of elements."""
    before = f"{PREFIX}{call}."
    return {
        n.removeprefix(before): ValueFile.opened(os.dup(fd)) for n, fd in fds.items() if n.startswith(before)
    }
