"""What was seen in part, once more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from angelhair.engine import places
from angelhair.engine.engine import Engine
from angelhair.engine.ledger import Run
from angelhair.engine.runs import Bodies
from angelhair.engine.schema import BAG_MESSAGES, BODIES, DUES, STATES
from angelhair.engine.store import Partition, Row, Span
from angelhair.errors import OutcomeUnknown
from angelhair.model import DATABAG, TIMELINE, Ask, MessageId, NewMessage, QueueSettings
from angelhair.spark.reading.cassandra import and_the_rest
from tests.attacks.minority import Minority, dates, never
from tests.attacks.worlds import HookedStore, SteppedClock, bodies, consume, new_world, played, receive_one, server

SECOND = 1_000
MINUTE = 60 * SECOND


@pytest.mark.parametrize("half_seen", [5, 12])
@played
async def test_the_reader_gets_past_what_is_there_in_part(half_seen: int) -> None:
    """As many rows in part as one read brings: the reader's place does not move, and what was confirmed behind them is
    given to nobody, for ever if the replica is lost."""
    clock, store = new_world()
    minority = Minority(store, BODIES)
    putter, other = server(minority.writer(), clock), server(minority.seen(), clock)
    await other.create_queue("shop", "jobs", QueueSettings(bucket_size=100))
    outcomes = await putter.put("shop", "jobs", [NewMessage(b"lost")] * half_seen)
    assert all(isinstance(outcome, OutcomeUnknown) for outcome in outcomes)
    confirmed = await other.put("shop", "jobs", [NewMessage(b"quick")] * 3)
    assert all(isinstance(outcome, MessageId) for outcome in confirmed)
    minority.near = dates
    await other.stats("shop", "jobs")
    minority.near = never
    assert bodies(await consume(other, clock, steps=3_000)) == [b"quick"] * 3


async def claimed_by_nobody(other: Engine, clock: SteppedClock, minority: Minority, queue: str) -> None:
    """The bucket is looked into because of its first message, which comes again; what is there in part is claimed and
    not handed out. Then the replica is lost."""
    clock.ms += 2 * SECOND
    minority.near = dates
    ((first, *rest),) = await other.receive("shop", queue, [Ask(10)])
    assert (first.body, rest) == (b"first", [])
    minority.near = never
    await other.ack("shop", queue, [first.receipt])


async def first_message(other: Engine, queue: str) -> None:
    await other.put("shop", queue, [NewMessage(b"first")])
    assert (await receive_one(other, queue, SECOND)).body == b"first"


@pytest.mark.parametrize("claimed", [False, True])
@played
async def test_a_run_puts_again_what_was_claimed_and_not_handed_out(claimed: bool) -> None:
    """A delivery number is taken for a delivery: a run that is tried again leaves the message out, and is committed."""
    clock, store = new_world()
    minority = Minority(store, BODIES)
    writer, other = server(minority.writer(), clock), server(minority.seen(), clock)
    await other.create_queue("shop", "jobs", QueueSettings(bucket_size=100, visibility_timeout_ms=SECOND))
    await first_message(other, "jobs")
    run = Run("task", 0, 2, "digest", 10 * MINUTE)
    begun = await writer.begin_run("shop", "jobs", run)
    assert begun is not None
    with pytest.raises(OutcomeUnknown):
        await writer.finish_run(begun, Bodies([b"a", b"b"]))
    assert bodies((await other.receive("shop", "jobs", [Ask(10)]))[0]) == []
    if claimed:
        await claimed_by_nobody(other, clock, minority, "jobs")
    again = await other.begin_run("shop", "jobs", run)
    assert again is not None
    await other.finish_run(again, Bodies([b"a", b"b"]))
    assert await other.begin_run("shop", "jobs", run) is None, "committed"
    got = bodies(await consume(other, clock, steps=600))
    assert {b"a", b"b"} <= {*got}


@pytest.mark.parametrize("claimed", [False, True])
@played
async def test_a_move_whose_copy_was_claimed_and_not_handed_out(claimed: bool) -> None:
    """It went on from an id that is then seen in part, and claimed: the move counts as done, and its message is
    nowhere."""
    clock, store = new_world()
    minority = Minority(store, BODIES)
    mover, other = server(minority.writer(), clock), server(minority.seen(), clock)
    await other.create_queue(
        "shop", "dead", QueueSettings(bucket_size=100, visibility_timeout_ms=SECOND, retention_ms=10 * MINUTE)
    )
    settings = QueueSettings(dead_letter_queue="dead", max_deliveries=1, visibility_timeout_ms=SECOND)
    await other.create_queue("shop", "jobs", settings)
    (confirmed,) = await other.put("shop", "jobs", [NewMessage(b"poison")])
    assert isinstance(confirmed, MessageId)
    await receive_one(other, "jobs", SECOND)
    # The mover reserves an id, marks the source, and writes the copy to one replica.
    for _ in range(100):
        clock.ms += 100
        await mover.receive("shop", "jobs", [Ask(1)])
        await mover.step("shop", "jobs")
        if minority._there:
            break
    assert minority._there
    # It is gone. Half of the target's retention later somebody goes on, does not see the copy, and dies on the way.
    clock.ms += 6 * MINUTE
    seen = minority.seen()

    async def die_behind(items: Any) -> Any:
        if any("moving_before" in (row.values or {}) for item in items for row in item.rows):
            await minority.store.change(items)
            raise asyncio.CancelledError
        return None

    seen.hooks["change"] = die_behind
    second = server(seen, clock)

    async def step_on() -> None:
        for _ in range(1_000):
            clock.ms += 100
            await second.step("shop", "jobs")

    with pytest.raises(asyncio.CancelledError):
        await step_on()
    await other.put("shop", "dead", [NewMessage(b"first")])
    if claimed:
        assert (await receive_one(other, "dead", SECOND)).body == b"first"
        await claimed_by_nobody(other, clock, minority, "dead")
    third = server(minority.seen(), clock)
    await consume(third, clock, "jobs", steps=600)
    got = bodies(await consume(third, clock, "dead", steps=600))
    queue = await other.find_queue("shop", "jobs")
    (states,) = await store.read([Span(places.states(queue.incarnation, 0, 0))])
    assert [row.values.get("settled") for row in states.rows] == ["dead"], "it counts as moved"
    assert b"poison" in got


@pytest.mark.parametrize("claimed", [False, True])
@played
async def test_a_put_with_a_key_whose_first_try_was_claimed_and_not_handed_out(claimed: bool) -> None:
    """Its first try has expired, with nobody having been given it. Put again it counts as given: it is confirmed, and
    nobody ever gets it."""
    clock, store = new_world()
    minority = Minority(store, BODIES)
    putter, other = server(minority.writer(), clock), server(minority.seen(), clock)
    settings = QueueSettings(
        bucket_size=100, visibility_timeout_ms=SECOND, retention_ms=MINUTE, dedup_window_ms=5 * MINUTE
    )
    await other.create_queue("shop", "jobs", settings)
    await first_message(other, "jobs")
    (unknown,) = await putter.put("shop", "jobs", [NewMessage(b"keyed", key="k")])
    assert isinstance(unknown, OutcomeUnknown)
    assert bodies((await other.receive("shop", "jobs", [Ask(10)]))[0]) == []
    if claimed:
        await claimed_by_nobody(other, clock, minority, "jobs")
    clock.ms += 2 * MINUTE
    (confirmed,) = await other.put("shop", "jobs", [NewMessage(b"keyed", key="k")])
    assert isinstance(confirmed, MessageId)
    assert b"keyed" in bodies(await consume(other, clock, steps=400))


@pytest.mark.parametrize("near", [False, True])
@played
async def test_a_databag_puts_again_what_is_there_in_part(near: bool) -> None:
    """Whoever goes on with a key asks for the date of its message alone, finds it, and commits the key."""
    clock, store = new_world()
    minority = Minority(store, BAG_MESSAGES, lambda write: any("body" in row.values for row in write.rows))
    putter, other = server(minority.writer(), clock), server(minority.seen(), clock)
    settings = QueueSettings(kind=DATABAG, visibility_timeout_ms=SECOND, dedup_window_ms=5 * MINUTE)
    await other.create_queue("shop", "bag", settings)
    (unknown,) = await putter.put("shop", "bag", [NewMessage(b"keyed", key="k")])
    assert isinstance(unknown, OutcomeUnknown)
    if near:
        minority.near = dates
    (confirmed,) = await other.put("shop", "bag", [NewMessage(b"keyed", key="k")])
    assert isinstance(confirmed, MessageId), confirmed
    minority.near = never
    assert bodies(await consume(other, clock, "bag", steps=300)) == [b"keyed"]


@pytest.mark.parametrize("near", [False, True])
@played
async def test_the_delay_line_gets_past_what_is_there_in_part(near: bool) -> None:
    """Its next due time is asked for alone. What is there in part has no id: handing over fails for all that are due
    together with it, again and again."""
    clock, store = new_world()
    minority = Minority(store, DUES)
    putter, other = server(minority.writer(), clock), server(minority.seen(), clock)
    await other.create_queue("shop", "jobs", QueueSettings())
    hour = 60 * MINUTE
    (unknown,) = await putter.put("shop", "jobs", [NewMessage(b"lost", delay_ms=hour)])
    assert isinstance(unknown, OutcomeUnknown), unknown
    clock.ms += 100
    confirmed = await other.put("shop", "jobs", [NewMessage(b"later", delay_ms=hour)] * 3)
    assert all(not isinstance(outcome, Exception) for outcome in confirmed), confirmed
    clock.ms += hour + 1_000
    if near:
        minority.near = lambda span: span.columns == ("due",)
    got: list[bytes] = []
    errors: list[BaseException] = []
    for _ in range(3_000):
        try:
            await other.step("shop", "jobs")
        except Exception as error:
            errors.append(error)
            minority.near = never
        (found,) = await other.receive("shop", "jobs", [Ask(10)])
        assert isinstance(found, list)
        got += bodies(found)
        await other.ack("shop", "jobs", [each.receipt for each in found])
        clock.ms += 1_000
    assert got == [b"later"] * 3, (got, len(errors), errors[:1])


@pytest.mark.parametrize("near", [False, True])
@played
async def test_a_timeline_gives_no_empty_message(near: bool) -> None:
    """Before a mark is raised the due times above it are asked for alone; then all of the rows."""
    clock, store = new_world()
    minority = Minority(store, DUES)
    putter, other = server(minority.writer(), clock), server(minority.seen(), clock)
    await other.create_queue("shop", "line", QueueSettings(kind=TIMELINE, lanes=1, producer_delay_ms=5 * SECOND))
    due_ms = clock.ms + 10 * SECOND
    (unknown,) = await putter.put("shop", "line", [NewMessage(b"lost", due_ms=due_ms)])
    assert isinstance(unknown, OutcomeUnknown), unknown
    await other.put("shop", "line", [NewMessage(b"whole", due_ms=due_ms)])
    if near:
        minority.near = dates
        await other.stats("shop", "line")
    got: list[bytes] = []
    for _ in range(400):
        (found,) = await other.receive("shop", "line", [Ask(10, consumer="a")])
        assert isinstance(found, list)
        got += bodies(found)
        await other.ack("shop", "line", [each.receipt for each in found])
        clock.ms += 100
    assert got == [b"whole"]


@pytest.mark.parametrize("names", [(), ("body",), ("body", "enqueued_at"), ("enqueued_at",), ("attributes",)])
@played
async def test_what_spark_read_of_a_row_is_not_taken_for_all_of_it(names: tuple[str, ...]) -> None:
    """A batch reads all that is there, and of each row what its query asks for (`spark/columns.py`). Naive: with the
    body there, and the dates, the rest counted as not set: the message was given without its attributes, and after a
    query that did not ask for `due_at`, before its time."""
    columns = and_the_rest(BODIES, names)
    clock, store = new_world()
    minority = Minority(store, BODIES)
    minority.lands = asyncio.Event()
    putter, other = server(minority.writer(), clock), server(minority.seen(), clock)
    await other.create_queue("shop", "jobs", QueueSettings())
    queue = await other.find_queue("shop", "jobs")
    slow = NewMessage(b"slow", '{"unit":"cents"}', delay_ms=60 * SECOND)
    putting = asyncio.create_task(putter.put("shop", "jobs", [slow]))
    while not minority._there:
        await asyncio.sleep(0)
    await other.put("shop", "jobs", [NewMessage(b"quick")])
    begin_ms = clock.ms
    if columns:
        minority.near = lambda span: True
        await minority.seen().read([Span(places.bodies(queue.incarnation, 0, 0), 0, None, None, columns)])
        minority.near = never if "enqueued_at" in names else dates
    got = [(each.body, each.attributes, clock.ms - begin_ms) for each in await consume(other, clock, steps=50)]
    await other.stats("shop", "jobs")
    got += [(each.body, each.attributes, clock.ms - begin_ms) for each in await consume(other, clock, steps=650)]
    minority.lands.set()
    (confirmed,) = await putting
    assert isinstance(confirmed, MessageId), confirmed
    got += [(each.body, each.attributes, clock.ms - begin_ms) for each in await consume(other, clock, steps=1_300)]
    early = [each for each in got if each[0] == b"slow" and each[2] < 60 * SECOND]
    assert ((b"slow", '{"unit":"cents"}') in [each[:2] for each in got], early) == (True, []), got


@pytest.mark.parametrize("near", [False, True])
@played
async def test_a_peek_into_a_databag_shows_no_empty_message(near: bool) -> None:
    clock, store = new_world()
    minority = Minority(store, BAG_MESSAGES)
    putter, other = server(minority.writer(), clock), server(minority.seen(), clock)
    await other.create_queue("shop", "bag", QueueSettings(kind=DATABAG))
    (unknown,) = await putter.put("shop", "bag", [NewMessage(b"lost")])
    assert isinstance(unknown, OutcomeUnknown)
    if near:
        minority.near = dates
    await other.stats("shop", "bag")
    assert [each.body for each in await other.peek("shop", "bag", 10)] == []


@pytest.mark.parametrize("near", [False, True])
@played
async def test_what_is_on_its_way_in_part_keeps_no_other_bucket(near: bool) -> None:
    """docs/known-limits.md says that it keeps its bucket. It keeps all buckets behind it too, whatever their history
    and retention, and the archive mark: none of these marks passes the repair mark."""
    clock, store = new_world()
    minority = Minority(store, BODIES)
    putter, other = server(minority.writer(), clock), server(minority.seen(), clock)
    await other.create_queue("shop", "dead", QueueSettings())
    settings = QueueSettings(
        bucket_size=2, dead_letter_queue="dead", max_deliveries=1, visibility_timeout_ms=100, repair_timeout_ms=1_000,
        history_ms=0, retention_ms=10 * MINUTE,
    )
    await other.create_queue("shop", "jobs", settings)
    (unknown,) = await putter.put("shop", "jobs", [NewMessage(b"lost")])
    assert isinstance(unknown, OutcomeUnknown)
    if near:
        minority.near = dates
    for _ in range(20):
        await other.put("shop", "jobs", [NewMessage(b"quick")] * 2)
        await consume(other, clock, steps=20)
    await consume(other, clock, steps=600)
    await other.purge("shop", "jobs")
    clock.ms += 60 * MINUTE
    await consume(other, clock, steps=600)
    assert (await other.marks("shop", "jobs"))[0].floor >= 10


@pytest.mark.parametrize("in_part", [False, True])
@played
async def test_a_move_that_is_marked_in_part(in_part: bool) -> None:
    """Whoever marked it died; the commit of its conditional write reached one replica, and `examine`, which asks for
    `settled` and not for `moving_to`, spread that. The next conditional write of that bucket ends this; there is none.
    What goes on with moves asserts that a row says where it is moving: the step fails, and the move stands still."""
    clock, store = new_world()
    other = server(store, clock)
    await other.create_queue("shop", "dead", QueueSettings())
    settings = QueueSettings(dead_letter_queue="dead", max_deliveries=1, visibility_timeout_ms=100)
    await other.create_queue("shop", "jobs", settings)
    await other.put("shop", "jobs", [NewMessage(b"poison")])
    await receive_one(other, "jobs")
    dying = HookedStore(store)

    async def dies(items: Any) -> Any:
        if any("moving_to" in (row.values or {}) for item in items for row in item.rows):
            await store.change(items)
            raise asyncio.CancelledError
        return None

    dying.hooks["change"] = dies
    mover = server(dying, clock)

    async def move_on() -> None:
        for _ in range(200):
            clock.ms += 100
            await mover.receive("shop", "jobs", [Ask(1)])
            await mover.step("shop", "jobs")

    with pytest.raises(asyncio.CancelledError):
        await move_on()
    seen = HookedStore(store)
    healed: set[Partition] = set()

    async def read(spans: Any) -> Any:
        answers = []
        for span, found in zip(spans, await store.read(spans), strict=True):
            if in_part and span.partition.table is STATES and span.partition not in healed:
                rows = [Row(row.key, {n: v for n, v in row.values.items() if n != "moving_to"}) for row in found.rows]
                found = found._replace(rows=rows)
            answers.append(found)
        return answers

    async def change(items: Any) -> None:
        healed.update(item.partition for item in items)

    seen.hooks.update(read=read, change=change)
    third = server(seen, clock)
    failed = 0
    for _ in range(2_000):
        clock.ms += 100
        try:
            await third.step("shop", "jobs")
        except AssertionError:
            failed += 1
    assert bodies(await consume(third, clock, "dead", steps=100)) == [b"poison"], f"{failed} steps failed"
