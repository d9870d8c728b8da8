"""Looks at the truth behind a simulated timeline: its shards' rows as they change, and what the checkpoints pass."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Sequence

from angelhair import limits
from angelhair.engine.catalog import SEALED, load
from angelhair.engine.schema import BODIES, DUES, SHARDS, STATES
from angelhair.engine.store import Change, Key, Partition, Row, RowChange, Values
from angelhair.engine.transfer import MOVED
from angelhair.model import DueId
from angelhair.simulation.cluster import Cluster
from angelhair.simulation.inspection import Truth
from angelhair.simulation.timeline_history import Given, Passed, SentBack, Shard, Taken, TimelineHistory

NAMED = 16
"""So much of an incarnation does a receipt name."""
OWNER, FENCE = slice(1, 9), slice(33, 41)
"""Where a receipt names the queue, and the fence under which it was given."""
MILLISECOND_US = 1_000
DRIFT = 1_000
"""Monotonic clocks are wrong by less than one part in so many."""
Place = tuple[Shard, str]
"""Of a row among what is due: its shard and its key."""
Grave = tuple[str, Key]
"""Of a dead letter: its bucket and its number."""


def told(receipt: str, message: DueId) -> tuple[Shard, int]:
    """The shard and the fence that a receipt names, without a look at its signature."""
    raw = urlsafe_b64decode(receipt)
    return (raw[OWNER].hex(), message.lane), int.from_bytes(raw[FENCE])


class ShardWitness:
    """Told of all that takes effect, at that instant, whatever anybody hears of it."""

    def __init__(self, cluster: Cluster, history: TimelineHistory) -> None:
        self._cluster = cluster
        self._history = history
        self._rows: dict[Shard, dict[str, tuple[str, int]]] = {}
        """By shard and key, the body and its deliveries, of all that was ever written."""
        self._copies: dict[str, set[Place]] = {}
        """By body, where it is among what is due."""
        self._graves: dict[Grave, str] = {}
        """The bodies of all that was ever written to a queue of dead letters."""
        self._dead: dict[str, set[Grave]] = {}
        """By body, where it is among the dead letters."""
        self._left: set[Grave] = set()
        """Dead letters that are crossed off there: they went back."""
        self._returned: set[str] = set()
        """Their bodies."""
        self.returning: set[str] = set()
        """Bodies of dead letters that were on their way back, however far they came."""
        self._last: dict[Shard, str] = {}
        self._changed_us: dict[Shard, int] = {}
        """When the row of a shard was last changed."""
        self._given: dict[tuple[Shard, int], set[str]] = {}
        cluster.change_listener = self._see_change
        cluster.write_listener = self._see_write

    # ---- rows of messages

    def _see_write(self, partition: Partition, rows: Sequence[Row]) -> None:
        if partition.table is BODIES:
            self._bury(partition, rows)
        if partition.table is not DUES:
            return
        incarnation, lane, _ = partition.key.split(".", 2)
        shard = (incarnation[:NAMED], int(lane))
        for row in rows:
            key = str(row.key)
            if row.values.get("void"):
                known = self._rows.setdefault(shard, {}).pop(key, ("", 0))
                self._copies.get(known[0], set()).discard((shard, key))
                continue
            body = _text(row.values.get("body"))
            self._rows.setdefault(shard, {})[key] = (body, _number(row.values.get("deliveries")))
            self._copies.setdefault(body, set()).add((shard, key))

    # ---- dead letters

    def _bury(self, partition: Partition, rows: Sequence[Row]) -> None:
        for row in rows:
            grave, body = (partition.key, row.key), _text(row.values.get("body"))
            self._graves[grave] = body
            if grave not in self._left:
                self._dead.setdefault(body, set()).add(grave)

    def _send_back(self, partition: Partition, rows: Sequence[RowChange]) -> None:
        """What goes back is in a timeline before it is crossed off."""
        for row in rows:
            values, grave = row.values or {}, (partition.key, row.key)
            body = self._graves.get(grave, "")
            if str(values.get("moving_to") or "").startswith(f"{MOVED}/"):
                self.returning.add(body)
            if values.get("settled") == MOVED:
                self._left.add(grave)
                self._returned.add(body)
                self._dead.get(body, set()).discard(grave)
                if not self._dead.get(body) and not any(self._ahead(place) for place in self._copies.get(body, ())):
                    identity = f"{partition.key.split('.')[1]}-{row.key}"
                    self._history.sent_back.append(SentBack(identity, body, self._cluster.scheduler.now_us))

    # ---- rows of shards

    def _see_change(self, change: Change) -> None:
        if change.partition.table is STATES:
            self._send_back(change.partition, change.rows)
        if change.partition.table is not SHARDS:
            return
        incarnation, lane = change.partition.key.split(".")
        shard = (incarnation[:NAMED], int(lane))
        state = self._cluster.state(change.partition)
        for row in change.rows:
            found = state.rows.get(row.key)
            before: Values = {} if found is None else found.record.values
            if row.values is not None:
                self._judge(shard, before, row)
                self._changed_us[shard] = self._cluster.scheduler.now_us

    def _judge(self, shard: Shard, before: Values, row: RowChange) -> None:
        assert row.values is not None
        after = {**before, **row.values}
        for name in ("fence", "mark", "last"):
            if before.get(name) is not None and (after.get(name) is None or after[name] < before[name]):  # type: ignore[operator]
                self._fault(shard, f"{name} fell from {before[name]!s} to {after.get(name)!s}")
        if after.get("holder") and after.get("holder") != before.get("holder"):
            self._take(shard, before, after)
        if before and after.get("last") != before.get("last") and after.get("last") is not None:
            self._checkpoint(shard, before, after, row)

    def _take(self, shard: Shard, before: Values, after: Values) -> None:
        fence = _number(after.get("fence"))
        if fence <= _number(before.get("fence")):
            self._fault(shard, f"taken without a new fence, {fence}")
        lapsed = bool(before.get("holder")) and before.get("consumer") != after.get("consumer")
        if lapsed:
            rested_us = self._cluster.scheduler.now_us - self._changed_us.get(shard, 0)
            wanted_us = _number(before.get("duration")) * MILLISECOND_US
            if rested_us < wanted_us - wanted_us // DRIFT - MILLISECOND_US:
                self._fault(shard, f"fence {fence} taken {rested_us} us after its last touch, not {wanted_us}")
        self._history.taken.append(Taken(shard, fence, self._cluster.scheduler.now_us, lapsed))

    def _checkpoint(self, shard: Shard, before: Values, after: Values, row: RowChange) -> None:
        if row.expect.get("fence") != after.get("fence") or after.get("fence") is None:
            self._fault(shard, f"last moved to {after['last']!s} by who does not say under which fence")
        if _time_ms(str(after["last"])) > _number(after.get("mark")):
            self._fault(shard, f"last moved to {after['last']!s}, beyond the mark {after.get('mark')!s}")
        old, new = str(before.get("last") or ""), str(after["last"])
        self._last[shard] = new
        for key, (body, deliveries) in self._rows.get(shard, {}).items():
            if old < key <= new and not self._safe(shard, key, body):
                identity = f"{shard[1]}-{key}"
                self._history.passed.append(
                    Passed(
                        shard, identity, body, self._cluster.scheduler.now_us, deliveries,
                        body in self._returned,
                    )
                )

    def _safe(self, shard: Shard, key: str, body: str) -> bool:
        """Whether it is somewhere else, too, where it will be found: dead, or due later."""
        return bool(self._dead.get(body)) or any(
            place != (shard, key) and place[0][0] == shard[0] and self._ahead(place)
            for place in self._copies.get(body, ())
        )

    def _ahead(self, place: Place) -> bool:
        return place[1] > self._last.get(place[0], "")

    def _fault(self, shard: Shard, what: str) -> None:
        self._history.shard_faults.append(f"shard {shard[1]} at {self._cluster.scheduler.now_us} us: {what}")

    # ---- what is given

    def give(self, given: Given) -> None:
        """Beyond the checkpoint, at most a window of a shard is given under one fence."""
        keys = self._given.setdefault((given.shard, given.fence), set())
        keys.add(given.id.partition("-")[2])
        last = self._last.get(given.shard, "")
        open_keys = {key for key in keys if key > last}
        keys &= open_keys
        if len(open_keys) > limits.TIMELINE_WINDOW:
            self._history.windows.append(
                f"shard {given.shard[1]}, fence {given.fence}: {len(open_keys)} given beyond the checkpoint"
            )


async def leftovers(store: Truth, account: str, name: str) -> list[str]:
    """What should be gone after everything was settled: shards that were given up."""
    queue = await load(store, account, name)
    if queue is None:
        return []
    return [f"shard {lane} is {status}" for lane, status in queue.lanes.items() if status == SEALED]


def _time_ms(key: str) -> int:
    """When a row is due, by its key."""
    return int(key[:8] + key[9:13], 16) if key else 0


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
