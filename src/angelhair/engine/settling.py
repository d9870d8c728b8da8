"""Conditional writes whose outcome is known, and blind writes that got through.

A conditional write that times out is a coin toss. Repeating *the very same* write decides it: either it is applied
now, or it is refused with rows that show what happened, ours among them if the first try had landed. So callers put
something unmistakable into what they write (an attempt token, a delivery number) and look for it when refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from angelhair import limits
from angelhair.engine.store import (
    Applied,
    Change,
    ChangeOutcome,
    Partition,
    Refused,
    Slice,
    Span,
    Store,
    Write,
    WriteOutcome,
)
from angelhair.errors import OutcomeUnknown, RequestError, StoreError, Unavailable


async def change_settled(
    store: Store, changes: Sequence[Change], unsure: set[int] | None = None
) -> list[ChangeOutcome]:
    """Like `store.change`, but repeats what came back unknown; what stays unknown is said to be so. `unsure` is told
    which were repeated."""
    outcomes = await store.change(changes)
    unknown = [index for index, outcome in enumerate(outcomes) if isinstance(outcome, OutcomeUnknown)]
    if unsure is not None:
        unsure.update(unknown)
    for _ in range(limits.SETTLE_ATTEMPTS):
        if not unknown:
            break
        try:
            again = await store.change([changes[index] for index in unknown])
        except StoreError:
            # The store was closed meanwhile: what was unknown stays so.
            break
        for index, outcome in zip(unknown, again, strict=True):
            # An earlier try may still have landed: "did not happen" would be a lie now.
            outcomes[index] = OutcomeUnknown(str(outcome)) if isinstance(outcome, Unavailable) else outcome
        unknown = [index for index in unknown if isinstance(outcomes[index], OutcomeUnknown)]
    return outcomes


async def change_one(store: Store, change: Change) -> ChangeOutcome:
    return (await change_settled(store, [change]))[0]


async def write_through(store: Store, writes: Sequence[Write]) -> list[WriteOutcome]:
    """Like `store.write`, but repeats what failed; an item that failed differently is unknown."""
    outcomes = await store.write(writes)
    failed = [index for index, outcome in enumerate(outcomes) if outcome is not None]
    for _ in range(limits.WRITE_ATTEMPTS - 1):
        if not failed:
            break
        try:
            again = await store.write([writes[index] for index in failed])
        except StoreError:
            # The store was closed meanwhile: what failed stays as it was.
            break
        for index, outcome in zip(failed, again, strict=True):
            before = outcomes[index]
            if isinstance(outcome, Unavailable) and isinstance(before, OutcomeUnknown):
                continue
            outcomes[index] = outcome
        failed = [index for index in failed if outcomes[index] is not None]
    return outcomes


async def must_write(store: Store, writes: Sequence[Write]) -> None:
    for outcome in await write_through(store, writes):
        if outcome is not None:
            raise outcome


async def read_surely(store: Store, spans: Sequence[Span]) -> list[Slice]:
    """A read between a write and its confirmation: giving up at once would leave the caller with an unknown."""
    for _ in range(limits.READ_ATTEMPTS - 1):
        try:
            return await store.read(spans)
        except Unavailable:
            continue
    return await store.read(spans)


async def have_land(store: Store, tests: Sequence[Change]) -> list[Applied | Refused]:
    """What is decided of a partition may have landed in part (row 19 of docs/cassandra.md): of a row some columns, or
    the flags without the rows; and what one server has seen of it another may not. The next conditional write of that
    partition has all of it land before it is answered, also one that only tests, as these have to. Raises
    `Unavailable`: whatever became of a test, it changed nothing."""
    decided: list[Applied | Refused] = []
    for outcome in await change_settled(store, tests):
        if isinstance(outcome, StoreError):
            raise Unavailable(str(outcome)) from outcome
        decided.append(outcome)
    return decided


async def read_landed(store: Store, partition: Partition, counter: str) -> Slice:
    """All of a partition each change of which raises the flag `counter`, with flags that are no newer than its rows:
    for who remembers rows under that flag, or changes some of them, on condition of it, by what the others are."""
    for _ in range(limits.RESERVE_ROUNDS):
        (seen,) = await store.read([Span(partition, limit=1)])
        test = Change(partition, expect_flags={counter: seen.flags.get(counter)})
        (outcome,) = await have_land(store, [test])
        if isinstance(outcome, Applied):
            # What came with these flags has landed, and is in whatever is read from now on.
            (found,) = await store.read([Span(partition)])
            return found._replace(flags=seen.flags)
    raise Unavailable("it is being changed by others all the time")


@contextmanager
def begun(already: bool = True) -> Iterator[None]:
    """Around what follows the first effect of a verb: that one of its steps did not happen is not the whole truth."""
    try:
        yield
    except Unavailable as error:
        if not already:
            raise
        raise OutcomeUnknown(str(error)) from error


@contextmanager
def not_denied(unsure: Collection[int]) -> Iterator[None]:
    """Around all tries of a verb. One whose answer was lost, which `unsure` is told of, may have been made, and undone
    by somebody else before the next: then neither is the whole truth that this one did not happen, nor that the request
    is wrong as things are by now."""
    try:
        yield
    except (Unavailable, RequestError) as error:
        if not unsure:
            raise
        raise OutcomeUnknown(f"{error}; an earlier try may have been made, and undone by somebody else") from error


def expect_decided(outcome: ChangeOutcome) -> ChangeOutcome:
    """Raises what the store raised; lets Applied and Refused through."""
    if isinstance(outcome, StoreError):
        raise outcome
    return outcome
