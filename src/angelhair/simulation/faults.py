"""What can go wrong, how often it does under a given seed, and how often it did.

Every kind of fault has a name. A `FaultPlan` gives some of them a rate; which ones, and how high, is drawn anew for
each seed ("swarm testing": a seed in which only two things go wrong, but often, finds what a seed in which everything
goes wrong a little does not).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

# ---- faults of single store calls: the rate is a probability per item of a call

WRITE_UNAVAILABLE = "write unavailable"
"""A blind write did not happen, and says so."""
WRITE_LOST = "write lost"
"""A blind write did not happen; its outcome is unknown."""
WRITE_UNCONFIRMED = "write unconfirmed"
"""A blind write happened; its outcome is unknown."""
WRITE_DELAYED = "write delayed"
"""A blind write is held up for seconds, as by a sender that stops before it sends; then it happens and is confirmed."""
WRITE_LATE = "write late"
"""A blind write lands up to seconds after its outcome was said to be unknown."""
WRITE_VERY_LATE = "write very late"
"""The same, by minutes or hours."""
WRITE_PAST_DROP = "write past drop"
"""The same, after the next drop of its partition."""
WRITE_TORN = "write torn"
"""Of many rows some land, some land late and some never; the outcome is unknown."""
WRITE_ON_ONE = "write on one replica"
"""A blind write reaches one replica, where some reads meet it, and the others up to minutes later; then it is
confirmed, or its outcome was said to be unknown long before."""

CHANGE_UNAVAILABLE = "change unavailable"
"""A conditional change did not happen, and says so."""
CHANGE_LOST = "change lost"
"""A conditional change did not happen; its outcome is unknown."""
CHANGE_UNCONFIRMED = "change unconfirmed"
"""A conditional change was decided one way or the other; its outcome is unknown."""
CHANGE_UNDECIDED = "change undecided"
"""As unconfirmed, and plain reads miss it until the next change of the partition, or some time, completes it."""
CHANGE_ON_ONE = "change on one replica"
"""A conditional change is decided and one replica has heard of it; the others hear of it later, or with the next change
of the partition."""
CHANGE_DELAYED = "change delayed"
"""A conditional change is held up for seconds; then it is decided and answered as any other."""
CHANGE_LATE = "change late"
"""A conditional change tests its conditions and lands up to seconds after its outcome was said to be unknown."""
CHANGE_VERY_LATE = "change very late"
"""The same, by minutes or hours."""
CHANGE_PAST_DROP = "change past drop"
"""The same, after the next drop of its partition."""

DROP_UNAVAILABLE = "drop unavailable"
DROP_LOST = "drop lost"
DROP_UNCONFIRMED = "drop unconfirmed"
DROP_LATE = "drop late"
DROP_VERY_LATE = "drop very late"
"""A drop lands late; it removes what was written before it began."""

READ_UNAVAILABLE = "read unavailable"
"""A read (or a look at the store's clock) fails."""

REFUSAL_READ_LATER = "refusal read later"
"""A refused change answers with rows as they were somewhat after the refusal."""
SLOW = "slow"
"""A request or its answer takes long, up to seconds; everything still happens as it should."""

# ---- faults between a client and a server: the rate is a probability per request

REQUEST_LOST = "request lost"
ANSWER_LOST = "answer lost"

# ---- faults of processes, machines and the whole store: the rate is a mean number per virtual minute

CRASH = "crash"
"""A server dies at a random moment and comes back some time later."""
CRASH_BEFORE_CALL = "crash before call"
"""A server dies at its k-th store call from now, with nothing of the call sent."""
CRASH_AFTER_CALL = "crash after call"
"""A server dies when its k-th store call from now has taken effect and before it hears of it."""
PAUSE = "pause"
SUSPEND = "suspend"
CLOCK_JUMP = "clock jump"
"""A wall clock jumps, by milliseconds up to minutes, and is corrected later."""
CLOCK_LEAP = "clock leap"
"""A wall clock jumps by hours up to a year, and is corrected later."""
CUT_OFF = "cut off"
"""A server cannot reach the store for a while."""
OUTAGE = "outage"
"""The whole store is unavailable for a while."""

Kinds = tuple[str, ...]

WRITE_FAULTS: Kinds = (
    WRITE_UNAVAILABLE, WRITE_LOST, WRITE_UNCONFIRMED, WRITE_DELAYED, WRITE_LATE, WRITE_VERY_LATE, WRITE_PAST_DROP,
    WRITE_TORN, WRITE_ON_ONE,
)
CHANGE_FAULTS: Kinds = (
    CHANGE_UNAVAILABLE, CHANGE_LOST, CHANGE_UNCONFIRMED, CHANGE_UNDECIDED, CHANGE_DELAYED, CHANGE_LATE,
    CHANGE_VERY_LATE, CHANGE_PAST_DROP, CHANGE_ON_ONE,
)
DROP_FAULTS: Kinds = (DROP_UNAVAILABLE, DROP_LOST, DROP_UNCONFIRMED, DROP_LATE, DROP_VERY_LATE)
READ_FAULTS: Kinds = (READ_UNAVAILABLE,)
ITEM_FAULTS: Kinds = (*WRITE_FAULTS, *CHANGE_FAULTS, *DROP_FAULTS, *READ_FAULTS, REFUSAL_READ_LATER, SLOW)
ON_ONE: Kinds = (WRITE_ON_ONE, CHANGE_ON_ONE)
"""Drawn apart from the others (`met_on_one`)."""
REQUEST_FAULTS: Kinds = (REQUEST_LOST, ANSWER_LOST)
WORLD_FAULTS: Kinds = (
    CRASH, CRASH_BEFORE_CALL, CRASH_AFTER_CALL, PAUSE, SUSPEND, CLOCK_JUMP, CLOCK_LEAP, CUT_OFF, OUTAGE,
)
ALL_FAULTS: Kinds = (*ITEM_FAULTS, *REQUEST_FAULTS, *WORLD_FAULTS)

# ---- ways of being cut off from the store (`Process.cut`)

CUT_REFUSED = "refused"
"""No connection: every call is provably unsent."""
CUT_REQUESTS = "requests lost"
"""Requests vanish: nothing happens, and only a time-out says so."""
CUT_ANSWERS = "answers lost"
"""Requests get through, answers do not."""
CUTS = (CUT_REFUSED, CUT_REQUESTS, CUT_ANSWERS)

# ---- how a plan is drawn

CALM_SEEDS = 0.08
"""Share of seeds without any fault: what fails there is plain wrong, and easy to read."""
ITEM_RATE_LOWEST, ITEM_RATE_HIGHEST = 0.002, 0.12
"""Probability of one kind of fault per item. Higher, and with several kinds at once, hardly anything would get done."""
VERB_RATE_HIGHEST = 0.3
"""Probability of any fault per item: what repeats its calls a few times still gets through now and then."""
ON_ONE_SEEDS = 0.3
"""Share of the seeds in which reads meet what only one replica has."""
ON_ONE_RATES = (0.005, 0.15)
"""Lowest and highest probability of each of them per item, in such a seed."""
READ_REPAIR_SEEDS = 0.7
"""Share of these whose store repairs what it reads, as Cassandra does unless a table says otherwise."""
REQUEST_RATE_LOWEST, REQUEST_RATE_HIGHEST = 0.002, 0.08
WORLD_RATE_LOWEST, WORLD_RATE_HIGHEST = 0.1, 6.0
"""Per virtual minute and kind: from one in a seed or two up to one every ten seconds."""
NO_SKEW_SEEDS = 0.35
"""Share of the seeds with faults in which every clock is right until a fault touches it."""
DRIFT_PPM = 200
"""The worst drift of a monotonic clock: twice that of a poor crystal."""
SECOND_US = 1_000_000
SKEWS_US = ((0.5, 50_000), (0.35, 3 * SECOND_US), (0.12, 20 * SECOND_US), (0.03, 600 * SECOND_US))
"""Weights and bounds of a machine's resting skew: mostly milliseconds, sometimes seconds, rarely minutes."""
NODE_SKEW_US = 20_000
"""How far the store's own nodes may be from true time; more than that, operations are told to fix it."""
STORE_NODES = 3


def log_uniform(source: random.Random, low: float, high: float) -> float:
    """Small and large values of a range alike often, whatever its span."""
    return float(low * (high / low) ** source.random())


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """What goes wrong in one world, and the traits of its store and clocks that are no faults but vary."""

    rates: Mapping[str, float] = field(default_factory=dict)
    skewed: bool = False
    page_rows: int = 1_000
    """Rows that a read brings at one instant."""
    instant_rows: int = 100
    """Rows of one blind write that land at one instant."""
    stamped_by_client: bool = True
    """Whether blind writes carry the time of the process that sent them or of the node that received them."""
    latency_us: int = 2_000
    """About the longest that an ordinary message travels."""
    timeout_us: int = 2 * SECOND_US
    """When a call without an answer is given up."""
    read_repair: bool = True
    """Whether a read that meets what only one replica has gives what it asked for to the others."""

    def __post_init__(self) -> None:
        unknown = [kind for kind in self.rates if kind not in ALL_FAULTS]
        if unknown:
            raise ValueError(f"no such fault: {', '.join(unknown)}")

    @classmethod
    def draw(cls, source: random.Random) -> FaultPlan:
        """The plan of one seed."""
        rates: dict[str, float] = {}
        calm = source.random() < CALM_SEEDS
        share = source.choice((0.15, 0.3, 0.5, 0.8))
        for kinds, low, high in (
            (ITEM_FAULTS, ITEM_RATE_LOWEST, ITEM_RATE_HIGHEST),
            (REQUEST_FAULTS, REQUEST_RATE_LOWEST, REQUEST_RATE_HIGHEST),
            (WORLD_FAULTS, WORLD_RATE_LOWEST, WORLD_RATE_HIGHEST),
        ):
            for kind in kinds:
                if kind not in ON_ONE and source.random() < share and not calm:
                    rates[kind] = log_uniform(source, low, high)
        for verb_kinds in (WRITE_FAULTS, CHANGE_FAULTS, DROP_FAULTS):
            total = sum(rates.get(kind, 0.0) for kind in verb_kinds)
            for kind in verb_kinds:
                if total > VERB_RATE_HIGHEST and kind in rates:
                    rates[kind] *= VERB_RATE_HIGHEST / total
        return cls(
            rates=rates,
            skewed=not calm and source.random() >= NO_SKEW_SEEDS,
            page_rows=source.choice((2, 7, 50, 1_000, 1_000)),
            instant_rows=source.choice((1, 3, 20, 100, 100)),
            stamped_by_client=source.random() < 0.5,
            latency_us=source.choice((500, 2_000, 2_000, 20_000)),
            timeout_us=source.choice((500_000, 2 * SECOND_US, 12 * SECOND_US)),
        )

    def met_on_one(self, source: random.Random) -> FaultPlan:
        """The same plan; in some seeds, reads meet what only one replica has."""
        if not self.rates or source.random() >= ON_ONE_SEEDS:
            return self
        rates = {**self.rates, **{kind: log_uniform(source, *ON_ONE_RATES) for kind in ON_ONE}}
        return replace(self, rates=rates, read_repair=source.random() < READ_REPAIR_SEEDS)

    def draw_skew_us(self, source: random.Random) -> int:
        """How wrong a machine's wall clock usually is."""
        if not self.skewed or source.random() < 0.5:
            return 0
        at = source.random()
        for weight, bound_us in SKEWS_US:
            if at < weight:
                return source.randint(-bound_us, bound_us)
            at -= weight
        return 0

    def draw_drift_ppm(self, source: random.Random) -> int:
        return source.randint(-DRIFT_PPM, DRIFT_PPM) if self.skewed else 0


NO_FAULTS = FaultPlan()


class Faults:
    """The plan in force, and the count of what it did."""

    __slots__ = ("_cumulative", "_random", "counts", "later_refusal_rate", "observed", "plan", "slow_rate")

    def __init__(self, plan: FaultPlan, source: random.Random) -> None:
        self._random = source.random
        self.counts: dict[str, int] = {}
        """How often each kind of fault was inflicted."""
        self.observed: dict[str, int] = {}
        """How often a fault had a consequence worth knowing, e.g. a late write that brought a dropped row back."""
        self.plan = plan
        self.set_rates(plan.rates)

    def set_rates(self, rates: Mapping[str, float]) -> None:
        """Other rates from now on, for faults of calls; what a nemesis does follows the plan."""
        self._cumulative = {
            verb: _cumulate(kinds, rates)
            for verb, kinds in (
                ("write", WRITE_FAULTS), ("change", CHANGE_FAULTS), ("drop", DROP_FAULTS), ("read", READ_FAULTS),
                ("request", REQUEST_FAULTS),
            )
        }
        self.slow_rate = rates.get(SLOW, 0.0)
        self.later_refusal_rate = rates.get(REFUSAL_READ_LATER, 0.0)

    def calm(self) -> None:
        """From now on no call fails any more."""
        self.set_rates({})

    def draw(self, verb: str) -> str | None:
        """The fault that meets this item of a call, if any; counted."""
        total, steps = self._cumulative[verb]
        if not total:
            return None
        at = self._random()
        if at >= total:
            return None
        for upper, kind in steps:
            if at < upper:
                self.counts[kind] = self.counts.get(kind, 0) + 1
                return kind
        return None

    def count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def observe(self, what: str) -> None:
        self.observed[what] = self.observed.get(what, 0) + 1


def _cumulate(kinds: Kinds, rates: Mapping[str, float]) -> tuple[float, tuple[tuple[float, str], ...]]:
    total = 0.0
    steps = []
    for kind in kinds:
        if rates.get(kind):
            total += rates[kind]
            steps.append((total, kind))
    return total, tuple(steps)
