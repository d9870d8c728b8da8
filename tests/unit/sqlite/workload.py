"""What is done to a store before it is killed, and how to tell afterwards whether it kept its word.

Everything is announced to `tell` as a line: intentions before they are begun, confirmations after they came. From
the lines alone, `broken_promises` knows what must be in the file, whoever wrote it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable

from angelhair.engine.schema import BODIES, STATES
from angelhair.engine.store import APPLIED, Change, Partition, Row, RowChange, Span, Store, Write

PARTITION_ROWS = 20
"""Rows in a partition of blind writes before the next one is begun and the last but one dropped."""

COUNTER = -1
"""The key of the row that counts the others."""

SMALL_BYTES, LARGE_BYTES = 60, 9_000
"""A row among others on a page, and one over several pages."""


def body_of(run: str, task: int, number: int) -> bytes:
    """Follows from the names, so that nothing has to be remembered of it."""
    size = LARGE_BYTES if number % 7 == 3 else SMALL_BYTES
    word = b"%s/%d/%d;" % (run.encode(), task, number)
    return (word * (size // len(word) + 1))[:size]


def blind(run: str, task: int, part: int) -> Partition:
    return Partition(BODIES, f"{run}/{task}/{part}")


def counted(run: str, task: int) -> Partition:
    return Partition(STATES, f"{run}/{task}")


async def hammer(store: Store, tell: Callable[[str], None], run: str, tasks: int, steps: int) -> None:
    """Works with several tasks at once, so that they share transactions."""
    workers = [_write_blindly, _count]
    await asyncio.gather(*(workers[task % 2](store, tell, run, task, steps) for task in range(tasks)))


async def _write_blindly(store: Store, tell: Callable[[str], None], run: str, task: int, steps: int) -> None:
    for number in range(steps):
        part = number // PARTITION_ROWS
        if number % PARTITION_ROWS == 0 and part >= 2:
            tell(f"dropping {run} {task} {part - 2}")
            assert await store.drop([blind(run, task, part - 2)]) == [None]
            tell(f"dropped {run} {task} {part - 2}")
        row = Row(number, {"body": body_of(run, task, number), "enqueued_at": number})
        assert await store.write([Write(blind(run, task, part), [row])]) == [None]
        tell(f"wrote {run} {task} {number}")


async def _count(store: Store, tell: Callable[[str], None], run: str, task: int, steps: int) -> None:
    for number in range(steps):
        change = Change(
            counted(run, task),
            [
                RowChange(COUNTER, {"delivery": number - 1 if number else None}, {"delivery": number}),
                RowChange(number, {"delivery": None}, {"delivery": 1}),
            ],
            expect_flags={"admitted": number - 1 if number else None},
            set_flags={"admitted": number},
        )
        assert await store.change([change]) == [APPLIED]
        tell(f"counted {run} {task} {number}")


async def broken_promises(store: Store, lines: Iterable[str]) -> list[str]:
    """What the lines say and the store does not have, and changes of which it has a part."""
    wrote: dict[tuple[str, int, int], list[int]] = defaultdict(list)
    counters: dict[tuple[str, int], int] = {}
    dropping: set[tuple[str, int, int]] = set()
    dropped: set[tuple[str, int, int]] = set()
    for line in lines:
        verb, run, task_text, number_text = line.split(" ")
        task, number = int(task_text), int(number_text)
        if verb == "wrote":
            wrote[run, task, number // PARTITION_ROWS].append(number)
        elif verb == "counted":
            counters[run, task] = max(number, counters.get((run, task), -1))
        elif verb == "dropping":
            dropping.add((run, task, number))
        else:
            dropped.add((run, task, number))
    broken = []
    for (run, task, part), numbers in wrote.items():
        (found,) = await store.read([Span(blind(run, task, part))])
        bodies = {row.key: row.values.get("body") for row in found.rows}
        if (run, task, part) in dropped:
            broken += [f"row {number} of {run}/{task}/{part} outlived the drop" for number in bodies]
        elif (run, task, part) not in dropping:
            broken += [
                f"row {number} of {run}/{task}/{part} is lost"
                for number in numbers
                if bodies.get(number) != body_of(run, task, number)
            ]
    for (run, task), last in counters.items():
        (found,) = await store.read([Span(counted(run, task))])
        rows = {row.key: row.values.get("delivery") for row in found.rows}
        count = rows.pop(COUNTER, None)
        if not isinstance(count, int) or count < last:
            broken.append(f"{run}/{task} counted to {last} and has {count}")
        elif found.flags.get("admitted") != count or sorted(rows) != list(range(count + 1)):
            broken.append(f"{run}/{task} has a part of change {count}")
    return broken
