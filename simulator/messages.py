"""What a launch tells its user: texts with a kind, the place in the source, and the programs they name.

fault      wrong or undefined on the device, whatever the simulator computed
time       legal, and costs time
note       worth knowing, and legal
"""

from __future__ import annotations

from collections.abc import Iterable

KINDS = ("fault", "time", "note")  # the most serious first
FAULT, TIME, NOTE = KINDS
WHAT_IF = "what-if: "  # begins a fault: no board of the product computes it; values and time are by the rules that follow


class Message(str):
    """A text as it is printed, `file:line: what` where it has a place.

    kind: one of `KINDS`. place: "file:line", or "" where it is about no line. programs: numbers of the programs it names.
    Two messages are equal if their texts are.
    """

    __slots__ = ("kind", "place", "programs")
    kind: str
    place: str
    programs: tuple[int, ...]

    def __new__(cls, text: str, kind: str = NOTE, place: str = "", programs: Iterable[int] = ()) -> Message:
        """text: the whole, with the place in front; `fault`, `time_hint` and `note` put it there."""
        made = super().__new__(cls, text)
        if kind not in KINDS:
            raise ValueError(f"the kind of a message is one of {', '.join(KINDS)}, got {kind!r}")
        made.kind, made.place, made.programs = kind, place, tuple(int(p) for p in programs)
        return made

    def __reduce__(self) -> tuple[type[Message], tuple[str, str, str, tuple[int, ...]]]:
        return Message, (str(self), self.kind, self.place, self.programs)

    @property
    def what(self) -> str:
        """The text without its place."""
        return self.removeprefix(f"{self.place}: ") if self.place else str(self)

    @property
    def is_what_if(self) -> bool:
        """Whether it says that the product has not what ran."""
        return self.kind == FAULT and self.startswith(WHAT_IF)

    @property
    def file_and_line(self) -> tuple[str, int] | None:
        """Of the place; None where there is none."""
        file, _, line = self.place.rpartition(":")
        return (file, int(line)) if file and line.isdecimal() else None


def fault(text: str, place: str = "", programs: Iterable[int] = ()) -> Message:
    """What is wrong or undefined on the device. text: without the place, "file:line", which is put in front of it."""
    return _made(FAULT, text, place, programs)


def time_hint(text: str, place: str = "", programs: Iterable[int] = ()) -> Message:
    """What is legal and costs time; arguments as of `fault`."""
    return _made(TIME, text, place, programs)


def note(text: str, place: str = "", programs: Iterable[int] = ()) -> Message:
    """What is legal and worth knowing; arguments as of `fault`."""
    return _made(NOTE, text, place, programs)


def _made(kind: str, text: str, place: str, programs: Iterable[int]) -> Message:
    return Message(f"{place}: {text}" if place else text, kind, place, programs)


def as_message(text: str) -> Message:
    """A message as it is; a plain text, which has no kind, as a note."""
    return text if isinstance(text, Message) else Message(text)
