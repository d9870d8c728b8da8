"""What one server remembers: queue descriptions, views of lanes, workers, and whether its clock is to be trusted.

All of it may be old. A queue description ages out within seconds (R4), and the sequence row, which every put and
receive touches, gives away one that has been deleted meanwhile (R6).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from angelhair import limits
from angelhair.clock import Clock, Moment
from angelhair.engine import catalog
from angelhair.engine.bucketed.lane import Lane, LaneView
from angelhair.engine.bucketed.put import PutElsewhere, PutOutcome
from angelhair.engine.bucketed.worker import Worker
from angelhair.engine.catalog import Queue
from angelhair.engine.identities import Identities
from angelhair.engine.leases import Lease, richer_holders
from angelhair.engine.members import Membership
from angelhair.engine.ranks import PLAIN, Rank
from angelhair.engine.store import Store
from angelhair.engine.tenants import Tenants
from angelhair.errors import InvalidRequest, QueueNotFound, Unavailable
from angelhair.model import BUCKETED, NewMessage, validate_account, validate_name

PUT, RECEIVE, SHARE = "put", "receive", "share"


class View(Protocol):
    """What a server remembers of a lane, of whatever kind."""

    def earliest_due_ms(self) -> int | None: ...


class Leased(Protocol):
    """What a server needs for a lane's background work, of whatever kind."""

    lease: Lease


V = TypeVar("V", bound=View)
K = TypeVar("K")


@dataclass(slots=True)
class _Remembered:
    queue: Queue
    loaded_ms: int | None
    """None when it is known to be old."""


@dataclass(slots=True)
class _ClockCheck:
    at_ms: int
    good: bool
    wall_minus_monotonic_ms: int


def _nowhere(queue: Queue) -> PutElsewhere:
    raise InvalidRequest("delay", f"{queue.name} has no delay line")


class Memory:
    def __init__(self, store: Store, identities: Identities, clock: Clock) -> None:
        self.store = store
        self.identities = identities
        self.clock = clock
        self.server = identities.fresh()
        self.membership = Membership(store, clock, self.server)
        self.put_elsewhere: Callable[[Queue], PutElsewhere] = _nowhere
        """How messages of a queue are put into its delay line."""
        self.put_apart: dict[str, Callable[[Queue, NewMessage], Awaitable[PutOutcome]]] = {}
        """By kind, how a message that is moved gets into a queue that reserves no ids."""
        self.sync_ms = limits.BAG_SYNC_MS
        """How often this server takes over the settings of databags."""
        self.workers: dict[tuple[str, int], Leased] = {}
        self._queues: OrderedDict[tuple[str, str], _Remembered] = OrderedDict()
        self._views: dict[tuple[str, int], View] = {}
        self._clock: _ClockCheck | None = None
        self._turns: dict[str, Counter[tuple[str, Rank]]] = {}
        """By incarnation, verb and rank: how often a lane was chosen."""
        self._visits: dict[str, dict[Rank, int]] = {}
        """By incarnation and rank: when we last received first from a lane that another server holds."""
        self._tenants: OrderedDict[str, Tenants] = OrderedDict()
        """By incarnation, of queues to which messages with groups were put."""
        self._kept: dict[str, object] = {}
        """By incarnation, what its kind remembers of a queue as a whole."""

    async def find_queue(self, account: str, name: str, now: Moment) -> Queue:
        """The queue as remembered, for at most a few seconds, or as the catalog has it."""
        remembered = self._queues.get((account, name))
        if remembered is not None and remembered.loaded_ms is not None:
            if now.monotonic_ms - remembered.loaded_ms < limits.CATALOG_AGE_MS:
                return remembered.queue
        validate_account(account)
        validate_name("name", name)
        queue = await catalog.load(self.store, account, name)
        if queue is None or queue.status != catalog.ACTIVE:
            self._drop(account, name)
            raise QueueNotFound(account, name)
        self.remember(queue, now)
        return queue

    def remember(self, queue: Queue, now: Moment) -> None:
        key = (queue.account, queue.name)
        before = self._queues.get(key)
        if before is not None and before.queue.incarnation != queue.incarnation:
            self._drop(*key)
        elif before is not None:
            self._forget_lanes(queue.incarnation, before.queue.lanes.keys() - queue.lanes.keys())
        self._queues[key] = _Remembered(queue, now.monotonic_ms)
        self._queues.move_to_end(key)
        while len(self._queues) > limits.REMEMBERED_QUEUES:
            self._drop(*next(iter(self._queues)))

    def remembered(self, account: str, name: str) -> Queue | None:
        """The queue as it was when it was last looked up, however long ago."""
        found = self._queues.get((account, name))
        return None if found is None else found.queue

    def tenants(self, queue: Queue) -> Tenants:
        tenants = self._tenants.setdefault(queue.incarnation, Tenants())
        self._tenants.move_to_end(queue.incarnation)
        if len(self._tenants) > limits.FAIR_QUEUES:
            self._tenants.popitem(last=False)
        return tenants

    def distrust(self, account: str, name: str) -> None:
        """The next use looks the queue up again. What is known of its lanes stays: it is only hints."""
        remembered = self._queues.get((account, name))
        if remembered is not None:
            remembered.loaded_ms = None

    def _drop(self, account: str, name: str) -> None:
        remembered = self._queues.pop((account, name), None)
        if remembered is not None:
            incarnation = remembered.queue.incarnation
            self._forget_lanes(incarnation, remembered.queue.lanes)
            self._visits.pop(incarnation, None)
            self._turns.pop(incarnation, None)
            self._tenants.pop(incarnation, None)
            self._kept.pop(incarnation, None)

    def _forget_lanes(self, incarnation: str, lanes: Iterable[int]) -> None:
        for number in lanes:
            self._views.pop((incarnation, number), None)
            self.workers.pop((incarnation, number), None)

    # --- lanes ----------------------------------------------------------------------------------------------------

    def lane(self, queue: Queue, number: int) -> Lane:
        """Of a bucketed queue. Whoever would write to another kind's as if it were one would write where nobody reads:
        so this refuses, whatever led here."""
        if queue.settings.kind != BUCKETED:
            raise InvalidRequest("kind", f"{queue.name} is a {queue.settings.kind} queue, and a bucketed one is wanted")
        view = self.view(queue, number, LaneView)
        sealed = queue.lanes.get(number) != catalog.OPEN
        return Lane(
            self.store,
            queue.account,
            queue.name,
            queue.incarnation,
            queue.secret,
            queue.settings,
            number,
            self.server,
            self.identities,
            self.clock,
            self.clock_is_good,
            view,
            sealed,
            self.membership.place,
            queue.rank_of(number),
        )

    def view(self, queue: Queue, number: int, make: type[V]) -> V:
        """What is remembered of a lane, as its kind has it."""
        key = (queue.incarnation, number)
        view = self._views.get(key)
        if not isinstance(view, make):
            view = self._views[key] = make()
        return view

    def views(self, make: type[V]) -> list[V]:
        """What is remembered of all lanes of a kind, of whatever queue."""
        return [view for view in self._views.values() if isinstance(view, make)]

    def kept(self, queue: Queue, make: type[K]) -> K:
        """What is remembered of a queue as a whole, as its kind has it."""
        kept = self._kept.get(queue.incarnation)
        if not isinstance(kept, make):
            kept = self._kept[queue.incarnation] = make()
        return kept

    def with_kept(self) -> list[Queue]:
        """Queues of which something is remembered as a whole."""
        return [found.queue for found in self._queues.values() if found.queue.incarnation in self._kept]

    async def known_lane(self, queue: Queue, number: int) -> Lane:
        """As the catalog has it: another server may have made it a moment ago (R4)."""
        if isinstance(number, int) and number not in queue.lanes:
            self.distrust(queue.account, queue.name)
            queue = await self.find_queue(queue.account, queue.name, self.clock.now())
        if not isinstance(number, int) or number not in queue.lanes:
            raise InvalidRequest("lane", f"the queue has no lane {number!r}")
        return self.lane(queue, number)

    def _turn(self, queue: Queue, verb: str, rank: Rank = PLAIN, step: int = 1) -> int:
        """Counts by queue, verb and rank: whoever shares a count with others may always meet the same lane."""
        turns = self._turns.setdefault(queue.incarnation, Counter())
        turns[verb, rank] += step
        return turns[verb, rank]

    def lane_for_put(self, queue: Queue, now: Moment, rank: Rank = PLAIN) -> Lane:
        """A lane of this rank, or of the nearest that there is: one whose lease we hold if we can, so that servers
        do not contend; else each in turn."""
        rank = queue.nearest(rank)
        lanes = queue.open_lanes_of(rank) or queue.open_lanes_of(rank._replace(noisy=False)) or queue.open_lanes
        held = [number for number in lanes if self._holds(queue, number, now)] or lanes
        return self.lane(queue, held[self._turn(queue, PUT, rank) % len(held)])

    def lanes_for_receive(self, queue: Queue, now: Moment) -> list[Lane]:
        """All lanes, sealed ones too, rank by rank."""
        lanes = queue.read_lanes
        if not queue.ranks:
            return self._lanes_of(queue, PLAIN, lanes, now, True)
        found: list[Lane] = []
        for rank in self._ranks_in_turn(queue, lanes):
            found += self._lanes_of(queue, rank, [one for one in lanes if queue.rank_of(one) == rank], now, not found)
        return found

    def _ranks_in_turn(self, queue: Queue, lanes: Sequence[int]) -> list[Rank]:
        """Those that are served first in front; now and then one of the others is, so that nobody waits for ever."""
        ranks = list(dict.fromkeys(queue.rank_of(lane) for lane in lanes))
        if len(ranks) > 1:
            rounds, rest = divmod(self._turn(queue, SHARE), limits.RANK_SHARE)
            if not rest:
                ranks.insert(0, ranks.pop(1 + rounds % (len(ranks) - 1)))
        return ranks

    def _lanes_of(self, queue: Queue, rank: Rank, lanes: list[int], now: Moment, in_front: bool) -> list[Lane]:
        """Lanes of one rank: those whose lease we hold first, the others in turn. One of the others into which we have
        not looked for a while comes first, now and then: its server may have no consumers, and ours may never come to
        the end of its own lanes. Turns are for the rank that is in front: only that is sure to be looked into."""
        turn = self._turn(queue, RECEIVE, rank, int(in_front)) % len(lanes)
        lanes = lanes[turn:] + lanes[:turn]
        held = [number for number in lanes if self._holds(queue, number, now)]
        others = [number for number in lanes if number not in held]
        first = [self.lane(queue, number) for number in held]
        then = [self.lane(queue, number) for number in others]
        if in_front and first and then:
            visits = self._visits.setdefault(queue.incarnation, {})
            long_ago_ms = now.monotonic_ms - limits.LANE_VISIT_MS
            if visits.setdefault(rank, now.monotonic_ms) <= long_ago_ms:
                visited = min(then, key=lambda lane: lane.view.received_ms)
                if visited.view.received_ms <= long_ago_ms:
                    visits[rank] = now.monotonic_ms
                    then.remove(visited)
                    first.insert(0, visited)
        return [*first, *then]

    def worker(self, lane: Lane) -> Worker:
        worker = self.workers.get((lane.incarnation, lane.number))
        if worker is None:
            worker = self.workers[lane.incarnation, lane.number] = Worker.of(lane)
        assert isinstance(worker, Worker)
        return worker

    def lanes_in_turn(self, queue: Queue) -> list[int]:
        """All lanes, each the first in its turn."""
        lanes = queue.read_lanes
        turn = self._turn(queue, RECEIVE) % len(lanes)
        return lanes[turn:] + lanes[:turn]

    async def losing_holders(self, queue: Queue) -> frozenset[str]:
        """Servers from which the queue's lanes are taken though the leases have not lapsed: those that hold at least
        two more of them than we do, and those that are gone. Of the latter we take no more than our share: who took all
        would soon lose half of them to others. What they leave for longer than a lease is taken then. Who cannot say
        that it lives itself takes from nobody."""
        if self.membership.mute:
            return frozenset()
        workers = [self.workers.get((queue.incarnation, number)) for number in queue.lanes]
        leases = [worker.lease for worker in workers if worker is not None]
        richer = await richer_holders(self.store, self.clock, leases)
        has_share = self.lanes_held(queue) * self.membership.size >= len(queue.lanes)
        return richer if has_share else richer | self.membership.gone

    def lanes_held(self, queue: Queue) -> int:
        now = self.clock.now()
        return sum(self._holds(queue, number, now) for number in queue.lanes)

    def _holds(self, queue: Queue, number: int, now: Moment) -> bool:
        worker = self.workers.get((queue.incarnation, number))
        return worker is not None and worker.lease.held(now)

    def due_in_ms(self, account: str, name: str, now: Moment) -> int | None:
        """In how long something of the queue is due that this server knows of; a hint, and no store is asked."""
        remembered = self._queues.get((account, name))
        if remembered is None:
            return None
        views = [self._views.get((remembered.queue.incarnation, lane)) for lane in remembered.queue.lanes]
        dues = [view.earliest_due_ms() for view in views if view is not None]
        times = [due_ms for due_ms in dues if due_ms is not None]
        return max(0, min(times) - now.monotonic_ms) if times else None

    # --- clock ----------------------------------------------------------------------------------------------------

    async def check_clock(self, now: Moment) -> None:
        """Compares our wall clock with the store's, now and then (R5)."""
        if self._clock is not None and now.monotonic_ms - self._clock.at_ms < limits.CLOCK_CHECK_MS:
            return
        store_ms, after = await self.store.time_ms(), self.clock.now()
        # It was so late at some time in between: after a long wait a clock that is ahead by as much would look right.
        difference_ms = max(abs(store_ms - now.wall_ms), abs(store_ms - after.wall_ms))
        good = difference_ms <= limits.CLOCK_ERROR_MS
        self._clock = _ClockCheck(now.monotonic_ms, good, after.wall_ms - after.monotonic_ms)

    async def glance_at_clock(self) -> None:
        """As `check_clock`, for those who have something else to do: without an answer ours counts as wrong for now."""
        try:
            await self.check_clock(self.clock.now())
        except Unavailable:
            return

    def clock_is_good(self, now: Moment) -> bool:
        """Whether our wall clock was near the store's a short while ago and has not jumped since."""
        check = self._clock
        if check is None or now.monotonic_ms - check.at_ms > 3 * limits.CLOCK_CHECK_MS:
            return False
        jumped_ms = abs(now.wall_ms - now.monotonic_ms - check.wall_minus_monotonic_ms)
        return check.good and jumped_ms <= limits.CLOCK_ERROR_MS
