"""Fresh tensor names, each in constant time."""

from __future__ import annotations

from collections.abc import Iterable


class Names:
    """The tensor names that a graph uses, and new ones beside them."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)
        self.counts: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        """A name that is not in use yet: the stem itself, or the stem with a number."""
        name = stem
        while name in self.taken:
            self.counts[stem] = self.counts.get(stem, 0) + 1
            name = f"{stem}_{self.counts[stem]}"
        self.taken.add(name)
        return name
