"""What was made last, by what it was made of."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

Made = TypeVar("Made")


class Recent(OrderedDict[Hashable, Made]):
    """At most so many things by their keys; the one that was not asked for longest goes. A key None stands for nothing."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def recall(self, key: Hashable) -> Made | None:
        """The one with this key, if it is still there."""
        if key is None or key not in self:
            return None
        self.move_to_end(key)
        return self[key]

    def keep(self, key: Hashable, made: Made) -> Made:
        """Gives what was made."""
        if key is not None:
            self[key] = made
            if len(self) > self.most:
                self.popitem(last=False)
        return made

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What is there under the key, or made now."""
        found = self.recall(key)
        return self.keep(key, make()) if found is None else found
