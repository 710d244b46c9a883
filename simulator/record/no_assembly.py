"""What `compiled.asm` of a launch answers: there is no code of a device here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..errors import UsageError


class NoAssemblyError(UsageError, KeyError):
    """Asked for the code of a device, which a simulated launch does not have."""

    def __str__(self) -> str:
        return str(self.args[0])


class NoAssembly(Mapping[str, str]):
    """An empty mapping; `asm["ptx"]` raises `NoAssemblyError`, which says what to use instead."""

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel

    def __getitem__(self, stage: str) -> str:
        raise NoAssemblyError(
            f"{self.kernel}.asm[{stage!r}]: no code of a device is made here (no TTIR, PTX or NPU binary); what runs is "
            "the tile program. print(run) shows cycles by pipe and line, run.lines and run.buffers have them"
        )

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"<no code of a device is made for {self.kernel}; print(run) shows cycles by pipe and line>"
