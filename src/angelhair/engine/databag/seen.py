"""How thickly messages lie in the partitions of a databag, as far as receives have seen: by that the next look chooses
how many to look at."""

from __future__ import annotations

from typing import NamedTuple

from angelhair import limits


class Seen(NamedTuple):
    runs: int = 0
    messages: int = 0

    def likely(self, wanted: int) -> int:
        """In how many runs there is what is wanted, with room: more where it is guessed from few. Where nothing was
        found in a few runs, in sixteen times as many; where nothing was in more than that, in all if at all."""
        if self.messages:
            return (2 if self.messages >= self.runs else 4) * wanted * self.runs // self.messages
        return limits.BAG_BLOCKS * self.runs if self.runs <= limits.BAG_BLOCKS else limits.BAG_SLICES

    def is_thin(self, wanted: int, runs: int) -> bool:
        """Whether in all of so many runs there is not much more than is wanted, or than one read brings: then what lies
        between those that are looked at may be read as well."""
        return self.messages * runs <= self.runs * max(4 * wanted, limits.BAG_LOOK_MOST_ROWS)


NOTHING = Seen()
