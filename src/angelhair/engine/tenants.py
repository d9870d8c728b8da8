"""Which tenants flood a queue, as far as one server can tell: how many messages of each wait that it has put itself.

A tenant is noisy when it has many messages waiting, and many of all that wait. Nothing is asked of the store for it: a
message has been handed out when its lane has been, up to its id, which every put and receive learns by the way. What a
server forgets, or never knew, costs a tenant nothing but its turn: every lane is read, and its messages come.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

from angelhair import limits
from angelhair.model import MessageId


@dataclass(slots=True)
class _Run:
    """Messages that were put one after the other."""

    last: int
    messages: int


@dataclass(slots=True)
class _Tenant:
    noisy: bool = False
    on_the_way: int = 0
    """Being put right now."""
    put: dict[int, deque[_Run]] = field(default_factory=dict)
    """By lane."""

    def waiting(self, handed_out: Mapping[int, int]) -> int:
        """How many wait; what is not among them any more is forgotten."""
        for lane in list(self.put):
            runs, end = self.put[lane], handed_out.get(lane)
            while runs and (end is None or runs[0].last < end):
                runs.popleft()
            if not runs:
                del self.put[lane]
        return self.on_the_way + sum(run.messages for runs in self.put.values() for run in runs)


class Tenants:
    """Of one queue."""

    def __init__(self) -> None:
        self._tenants: OrderedDict[str, _Tenant] = OrderedDict()

    def put(self, name: str, handed_out: Mapping[int, int], waiting: int) -> bool:
        """Whether the tenant is noisy, of which one more message is being put. `handed_out`: by lane, up to which id.
        `waiting`: so many messages wait in all."""
        tenant = self._tenants.setdefault(name, _Tenant())
        self._tenants.move_to_end(name)
        if len(self._tenants) > limits.TENANTS:
            # One that floods the queue is never the one that was silent for longest.
            self._tenants.popitem(last=False)
        own = tenant.waiting(handed_out)
        # Who has become noisy is quiet again when it is well below: else each of its messages that goes makes room for
        # another among the quiet.
        least = limits.NOISY_MESSAGES // 2 if tenant.noisy else limits.NOISY_MESSAGES
        tenant.noisy = own >= least and own * limits.NOISY_SHARE > waiting
        tenant.on_the_way += 1
        return tenant.noisy

    def was_put(self, name: str, message: MessageId | None) -> None:
        """What became of a message that was being put; None when it was not, or nobody knows."""
        tenant = self._tenants.get(name)
        if tenant is None:
            return
        tenant.on_the_way = max(0, tenant.on_the_way - 1)
        if message is None:
            return
        runs = tenant.put.setdefault(message.lane, deque())
        if len(runs) >= limits.TENANT_RUNS:
            runs = tenant.put[message.lane] = _coarser(runs)
        runs.append(_Run(message.number, 1))


def _coarser(runs: deque[_Run]) -> deque[_Run]:
    """Half as many: each counts until the last of it has been handed out."""
    pairs = zip_longest(*[iter(runs)] * 2)
    return deque(
        first if second is None else _Run(max(first.last, second.last), first.messages + second.messages)
        for first, second in pairs
    )
