"""Which keys the last window of a log holds: what makes de-duplication exact without a write of its own (R10).

A server knows every row of its lane's log up to some number, as far back as the window reaches. Its put expects the log
to end exactly there: if that holds, nobody has put a key that it does not know of. If it does not, it reads what is
new, learns, and tries again. Dates in a log never fall, so what is older than the window lies before what is not.

A key is kept a little longer than the window and never shorter: two servers' clocks may each be wrong by the allowed
error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from angelhair import limits
from angelhair.engine.schema import LOG_LIGHT
from angelhair.engine.store import Row
from angelhair.model import BY_GROUP, QueueSettings


class Keys:
    __slots__ = ("_by_key", "_in_order", "end", "newest_at", "scope", "window_ms")

    def __init__(self, settings: QueueSettings, end: int) -> None:
        self.scope = settings.dedup_scope
        self.window_ms = settings.dedup_window_ms
        self.end = end
        """Rows below are known, as far back as the window reaches."""
        self.newest_at = 0
        """The date of the last row."""
        self._by_key: dict[str, tuple[int, int]] = {}
        self._in_order: deque[tuple[int, str]] = deque()

    def fits(self, settings: QueueSettings) -> bool:
        """Whether it was gathered by the rules that the queue has now."""
        return self.scope == settings.dedup_scope and self.window_ms == settings.dedup_window_ms

    def horizon_ms(self, now_ms: int) -> int:
        """What is dated before is forgotten."""
        return now_ms - self.window_ms - 2 * limits.CLOCK_ERROR_MS

    def name(self, group: str | None, key: str | None) -> str:
        # A group has no bound on its characters: its length keeps two pairs from looking alike.
        return f"{len(group or '')}.{group}.{key}" if self.scope == BY_GROUP else key or ""

    def find(self, group: str | None, key: str | None, now_ms: int) -> int | None:
        """The number of the message that was put with this key within the window."""
        found = self._by_key.get(self.name(group, key))
        return found[0] if found is not None and found[1] >= self.horizon_ms(now_ms) else None

    def put_since(self, first: int, group: str | None, key: str | None) -> int | None:
        """The number at or above `first` at which this key was put, however long ago that is."""
        found = self._by_key.get(self.name(group, key))
        return found[0] if found is not None and found[0] >= first else None

    @property
    def first(self) -> int:
        """Keys that were put at this number or above are known; those below may have been forgotten."""
        return self._in_order[0][0] if self._in_order else self.end

    def add(self, number: int, group: str | None, key: str | None, enqueued_at: int) -> None:
        """The next row of the log."""
        name = self.name(group, key)
        self._by_key[name] = (number, enqueued_at)
        self._in_order.append((number, name))
        self.end = number + 1
        self.newest_at = max(self.newest_at, enqueued_at)

    def add_rows(self, rows: Iterable[Row]) -> None:
        """Rows in their order; those that are known, or beyond a gap, are left out."""
        for row in rows:
            if row.key == self.end:
                group, key, enqueued_at, origin = (row.values.get(name) for name in LOG_LIGHT)
                date = enqueued_at if isinstance(enqueued_at, int) else 0
                if origin is not None:
                    # Moved here, not put: its key is the one that it was put with, elsewhere or before.
                    self.end, self.newest_at = self.end + 1, max(self.newest_at, date)
                    continue
                self.add(
                    self.end, group if isinstance(group, str) else None, key if isinstance(key, str) else None, date
                )

    def forget(self, now_ms: int) -> None:
        """Lets go of what the window has left behind."""
        horizon_ms = self.horizon_ms(now_ms)
        while self._in_order:
            number, name = self._in_order[0]
            found = self._by_key.get(name)
            if found is not None and found[0] == number:
                if found[1] >= horizon_ms:
                    return
                del self._by_key[name]
            self._in_order.popleft()
