"""What the guards in the answer's process write down of one call, beside its launches and host operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ....simulator.record.codec import Encoder, decode_plain


@dataclass(frozen=True, kw_only=True)
class ReturnedTensor:
    """One tensor that a call returned.

    path: where in what was returned ("", "0", "1.x"). kind: its class. plain: whether it is a tensor and nothing else.
    elements: how many it has. from_launch: whether it lies in memory that launches of this call wrote, or was made of such.
    from_inputs: whether what made it read an input or a parameter. unwritten: elements that nobody wrote since their memory
    was allocated. of_input: the input in whose memory it lies ("0", "1.x"), None for memory of its own.
    """

    path: str
    kind: str
    elements: int
    plain: bool = True
    from_launch: bool = True
    from_inputs: bool = True
    unwritten: int = 0
    of_input: str | None = None


@dataclass(frozen=True, kw_only=True)
class NarrowedValue:
    """A value of more than 16 bits that a kernel, or the host, makes narrower and goes on computing with.

    use: "dot" or "math", or "kernel" where the host made the narrow tensor that a kernel takes. remainder: whether what the
    cast cut off is computed, too, as those do who multiply in several parts.
    """

    kernel: str
    line: int
    source: str
    target: str
    use: str
    remainder: bool = False


@dataclass(frozen=True, kw_only=True)
class CallEvidence:
    """One call. host_elements: how many elements of tensors the host read, or made out of the sight of torch.

    other_devices: lines of launches on a device that the answer chose. tampered: what of the judge was changed, in words.
    changed_inputs: inputs that the call wrote to. unsynchronised: lines of launches on a stream of the answer's own that
    nobody waited for. threads: names of threads that were alive at its return.
    """

    returned: tuple[ReturnedTensor, ...] = ()
    narrowed: tuple[NarrowedValue, ...] = ()
    changed_inputs: tuple[str, ...] = ()
    host_elements: int = 0
    unsynchronised: tuple[int, ...] = ()
    other_devices: tuple[int, ...] = ()
    tampered: str = ""
    threads: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As plain data for JSON."""
        data: dict[str, Any] = Encoder({}).encode(self, CallEvidence)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CallEvidence:
        """What `to_json` wrote; of a call without evidence an empty one. `UsageError` names the field that does not fit."""
        found: CallEvidence = decode_plain(dict(data), cls, "")
        return found
