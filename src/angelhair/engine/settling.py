"""Conditional writes whose outcome is known, and blind writes that got through.

A conditional write that times out is a coin toss. Repeating *the very same* write decides it: either it is applied
now, or it is refused with rows that show what happened, ours among them if the first try had landed. So callers put
something unmistakable into what they write (an attempt token, a delivery number) and look for it when refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from angelhair import limits
from angelhair.engine.store import Change, ChangeOutcome, Slice, Span, Store, Write, WriteOutcome
from angelhair.errors import OutcomeUnknown, StoreError, Unavailable


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


async def have_land(store: Store, tests: Sequence[Change]) -> None:
    """What one read has seen of a partition, in part or whole, is decided; but others may not see it yet (row 19 of
    docs/cassandra.md). A conditional write of the same partition, even one that only tests, has it land first: whoever
    reads after this sees it. Whether the tests hold does not matter."""
    for outcome in await change_settled(store, tests):
        expect_decided(outcome)


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


@contextmanager
def begun(already: bool = True) -> Iterator[None]:
    """Around what follows the first effect of a verb: that one of its steps did not happen is not the whole truth."""
    try:
        yield
    except Unavailable as error:
        if not already:
            raise
        raise OutcomeUnknown(str(error)) from error


def expect_decided(outcome: ChangeOutcome) -> ChangeOutcome:
    """Raises what the store raised; lets Applied and Refused through."""
    if isinstance(outcome, StoreError):
        raise outcome
    return outcome
