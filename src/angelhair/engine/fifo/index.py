"""What a server knows of a log's order: which group each message belongs to, from the first unsettled one on.

Bounded, as SQS's: beyond so many messages behind the first unsettled one a receive does not look.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator

from angelhair.engine.store import Row


class Index:
    __slots__ = ("_base", "_dates", "_groups", "_heads", "_order", "end", "first", "waiting")

    def __init__(self, first: int = 0) -> None:
        self.first = first
        """Whatever is below is settled."""
        self.end = first
        """Numbers below are known, from `first` on."""
        self.waiting: dict[str, deque[int]] = {}
        """By group, its messages that are not known to be settled at its beginning."""
        self._groups: list[str] = []
        self._dates: list[int] = []
        self._base = first
        """The number that the lists begin with."""
        self._heads: dict[str, int] = {}
        self._order: list[tuple[int, str]] = []
        """Groups by the number of their first message that waits."""

    def __len__(self) -> int:
        return self.end - self.first

    def group_of(self, number: int) -> str | None:
        return self._groups[number - self._base] if self._base <= number < self.end else None

    def date_of(self, number: int) -> int:
        return self._dates[number - self._base]

    def add_rows(self, rows: Iterable[Row]) -> int:
        """The next rows of the log; what does not follow without a gap is left out. How many were new."""
        before = self.end
        for row in rows:
            group, enqueued_at = row.values.get("message_group"), row.values.get("enqueued_at")
            if row.key == self.end and isinstance(group, str):
                self.add(group, enqueued_at if isinstance(enqueued_at, int) else 0)
        return self.end - before

    def add(self, group: str, enqueued_at: int) -> None:
        number, self.end = self.end, self.end + 1
        self._groups.append(group)
        self._dates.append(enqueued_at)
        waiting = self.waiting.get(group)
        if waiting is None:
            self.waiting[group] = deque([number])
            self._place(group, number)
        else:
            waiting.append(number)

    def in_order(self) -> Iterator[str]:
        """Groups with something that waits, the one with the oldest first; as it is now, whatever changes meanwhile."""
        return iter([group for _, group in self._order])

    def settle_below(self, group: str, number: int) -> None:
        """All of the group below this number is settled."""
        waiting = self.waiting.get(group)
        if waiting is None or waiting[0] >= number:
            return
        while waiting and waiting[0] < number:
            waiting.popleft()
        self._take_out(group)
        if waiting:
            self._place(group, waiting[0])
        else:
            del self.waiting[group]

    def forget_below(self, number: int) -> None:
        """All below this number is settled, whatever its group."""
        if number <= self.first:
            return
        if number > self.end or (number == self.end and not self._order):
            # Nothing of what was known is left.
            self.__init__(number)  # type: ignore[misc]
            return
        for group in dict.fromkeys(self._groups[self.first - self._base : number - self._base]):
            self.settle_below(group, number)
        self.first = number
        if 2 * (number - self._base) > len(self._groups):
            del self._groups[: number - self._base], self._dates[: number - self._base]
            self._base = number

    def trim(self) -> None:
        """Lets go of what is settled before the first that waits."""
        self.forget_below(self._order[0][0] if self._order else self.end)

    def _place(self, group: str, head: int) -> None:
        self._heads[group] = head
        item = (head, group)
        if not self._order or self._order[-1] < item:
            self._order.append(item)
        else:
            insort(self._order, item)

    def _take_out(self, group: str) -> None:
        place = bisect_left(self._order, (self._heads.pop(group), group))
        del self._order[place]
