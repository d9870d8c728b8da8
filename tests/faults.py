"""A store between an engine and the real one, through which a test makes things go wrong on purpose.

`Between` is the part that such stores share; `tests/attacks/worlds.py` has one that is told what to do call by call.
`FaultyStore` is told item by item: everything that is not named by a rule goes through to the real store untouched. A
rule names a verb and a table, and what is to happen the next time that somebody asks for it (of changes, unless it says
otherwise, one that changes something: others only test):

    LOSE_ANSWER    it is done, and the answer never arrives: `OutcomeUnknown`
    NEVER_SENT     it is not done, and nobody can tell: `OutcomeUnknown`
    ARRIVE_LATE    nobody can tell, and it is done when the test says so (`land`): `OutcomeUnknown`
    UNAVAILABLE    it is provably not done: `Unavailable`
    a coroutine function    is run first; then the call goes on as if nothing had been
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from angelhair.engine.store import (
    Change,
    ChangeOutcome,
    Partition,
    Slice,
    Span,
    Store,
    Table,
    Write,
    WriteOutcome,
)
from angelhair.errors import OutcomeUnknown, StoreError, Unavailable

LOSE_ANSWER = "lose answer"
NEVER_SENT = "never sent"
ARRIVE_LATE = "arrive late"
UNAVAILABLE = "unavailable"

Happening = str | Callable[[], Awaitable[None]]
Item = Any


@dataclass(eq=False)
class Rule:
    verb: str
    table: Table | None
    happening: Happening
    when: Callable[[Item], bool]
    after: bool
    """A coroutine function runs behind the call instead of before it."""
    times: int
    """How often it still happens."""
    happened: int = 0

    def meets(self, verb: str, item: Item) -> bool:
        if self.times <= 0 or verb != self.verb:
            return False
        partition = item if isinstance(item, Partition) else item.partition
        return (self.table is None or partition.table is self.table) and self.when(item)


class Between:
    """The port, all of it through one place."""

    def __init__(self, store: Store) -> None:
        self.real = store

    async def read(self, spans: Sequence[Span]) -> list[Slice]:
        return await self._pass("read", spans)

    async def write(self, writes: Sequence[Write]) -> list[WriteOutcome]:
        return await self._pass("write", writes)

    async def change(self, changes: Sequence[Change]) -> list[ChangeOutcome]:
        return await self._pass("change", changes)

    async def drop(self, partitions: Sequence[Partition]) -> list[WriteOutcome]:
        return await self._pass("drop", partitions)

    async def time_ms(self) -> int:
        return await self.real.time_ms()

    async def close(self) -> None:
        await self.real.close()

    async def _pass(self, verb: str, items: Sequence[Item]) -> list[Any]:
        outcomes: list[Any] = await getattr(self.real, verb)(items)
        return outcomes


class FaultyStore(Between):
    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.rules: list[Rule] = []
        self.touched: dict[Partition, None] = {}
        """Every partition that was ever named, for those who compare before and after."""
        self._late: list[tuple[str, Item]] = []

    def next(
        self,
        verb: str,
        table: Table | None,
        happening: Happening,
        *,
        when: Callable[[Item], bool] | None = None,
        after: bool = False,
        times: int = 1,
    ) -> Rule:
        rule = Rule(verb, table, happening, when or _does_something, after, times)
        self.rules.append(rule)
        return rule

    def heal(self) -> None:
        self.rules.clear()

    async def land(self) -> list[Any]:
        """Lets arrive what was held back, in the order in which it was sent."""
        late, self._late = self._late, []
        outcomes = []
        for verb, item in late:
            outcomes += await getattr(self.real, verb)([item])
        return outcomes

    async def _pass(self, verb: str, items: Sequence[Item]) -> list[Any]:
        rules = self._rules_for(verb, items)
        await self._interrupt(rules, after=False)
        faults = {index: rule.happening for index, rule in rules if isinstance(rule.happening, str)}
        if verb == "read":
            for fault in faults.values():
                raise Unavailable(f"the test says: {fault}")
            outcomes = await super()._pass(verb, items)
        else:
            outcomes = await self._each(verb, items, faults)
        await self._interrupt(rules, after=True)
        return outcomes

    async def _each(self, verb: str, items: Sequence[Item], faults: Mapping[int, str]) -> list[Any]:
        """What changes something fails item by item."""
        passing = [index for index in range(len(items)) if faults.get(index, LOSE_ANSWER) == LOSE_ANSWER]
        self._late += [(verb, items[index]) for index, fault in faults.items() if fault == ARRIVE_LATE]
        answers = await super()._pass(verb, [items[index] for index in passing]) if passing else []
        outcomes: list[Any] = [_error(faults.get(index)) for index in range(len(items))]
        for index, answer in zip(passing, answers, strict=True):
            if index not in faults:
                outcomes[index] = answer
        return outcomes

    def _rules_for(self, verb: str, items: Sequence[Item]) -> list[tuple[int, Rule]]:
        found = []
        for index, item in enumerate(items):
            self.touched[item if isinstance(item, Partition) else item.partition] = None
            for rule in self.rules:
                if rule.meets(verb, item):
                    rule.times -= 1
                    rule.happened += 1
                    found.append((index, rule))
                    break
        return found

    async def _interrupt(self, rules: Sequence[tuple[int, Rule]], after: bool) -> None:
        for _, rule in rules:
            if not isinstance(rule.happening, str) and rule.after is after:
                await rule.happening()


def changes_something(change: Change) -> bool:
    return bool(change.set_flags) or any(row.values is None or row.values for row in change.rows)


def _does_something(item: Item) -> bool:
    return not isinstance(item, Change) or changes_something(item)


def _error(fault: Happening | None) -> StoreError:
    if fault == UNAVAILABLE:
        return Unavailable("the test says: unavailable")
    return OutcomeUnknown(f"the test says: {fault}")
