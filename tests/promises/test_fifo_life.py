"""A14, R5, R6, R14 of fifo queues: purge, retention, deletion, epochs, bounds, and what is no input."""

from __future__ import annotations

from typing import Any

import pytest

from angelhair import limits
from angelhair.engine import places
from angelhair.engine.schema import GROUPS, LOGS
from angelhair.engine.store import Span
from angelhair.errors import AngelhairError, InvalidRequest, QueueNotFound
from angelhair.model import MessageId, NewMessage, WantedChange
from tests.faults import LOSE_ANSWER
from tests.promises.fifo import QUEUE, bodies, make, message, put, put_one
from tests.queues import MINUTE, SECOND, World, succeeded


async def test_purge_takes_all_that_was_put_before(world: World) -> None:
    server, other = world.server(), world.server()
    await make(server)
    await put(server, "a", "b", "c")
    await server.receive(QUEUE)
    await other.engine.purge(world.account, QUEUE)
    await put(server, "d")
    assert bodies(await server.drain(QUEUE)) == ["d"]
    assert (await server.engine.stats(world.account, QUEUE)).visible == 0


async def test_r05_what_outlived_its_retention_is_gone_and_its_bucket_is_finished(world: World) -> None:
    """R5, A14"""
    server = world.server()
    await make(server, bucket_size=2, retention_ms=MINUTE, history_ms=0, dedup_window_ms=SECOND)
    await put(server, "a", "b", "c")
    (held,) = await server.receive(QUEUE, 1, 10 * MINUTE)
    world.wait(MINUTE)
    assert await server.receive(QUEUE, 10) == [], "one in flight holds its group up"
    await server.work(QUEUE, SECOND)
    assert (await world.marks(QUEUE)).repair == 0
    assert await server.ack(QUEUE, held) == [None]
    await server.work(QUEUE, 20 * SECOND)
    assert (await world.marks(QUEUE)).repair == 1
    await put(server, "d")
    assert bodies(await server.drain(QUEUE)) == ["d"]


async def test_r06_a_deleted_queue_takes_and_gives_nothing_and_can_be_made_again_at_once(world: World) -> None:
    """R6"""
    server, stale = world.server(), world.server()
    await make(server, bucket_size=2)
    await put(stale, "old", "older", "oldest")
    (delivery,) = await stale.receive(QUEUE)
    await server.engine.delete_queue(world.account, QUEUE)
    with pytest.raises(QueueNotFound):
        await stale.receive(QUEUE)
    await make(server, bucket_size=2)
    assert await stale.receive(QUEUE) == []
    assert isinstance((await stale.ack(QUEUE, delivery))[0], AngelhairError)
    assert await put_one(stale, "new") == MessageId(0, 0)
    assert bodies(await server.drain(QUEUE)) == ["new"]


async def test_r06_a_server_that_remembers_a_deleted_queue_puts_into_the_new_one(world: World) -> None:
    """R6"""
    server, stale = world.server(), world.server()
    await make(server)
    await put(stale, "old")

    async def meanwhile() -> None:
        await server.engine.delete_queue(world.account, QUEUE)
        await make(server)

    stale.store.next("change", LOGS, meanwhile)
    assert await put_one(stale, "a") == MessageId(0, 0)
    assert bodies(await server.drain(QUEUE)) == ["a"]


async def test_a14_what_a_deleted_queue_held_is_dropped(world: World) -> None:
    """A14"""
    server = world.server()
    queue = await server.create(QUEUE, kind="fifo", bucket_size=2)
    await put(server, "a", "b", "c", "d", "e")
    await server.receive(QUEUE, 2)
    await server.engine.delete_queue(world.account, QUEUE)
    await server.bury()
    spans = [Span(places.log(queue.incarnation, 0, bucket)) for bucket in range(5)]
    spans.append(Span(places.groups(queue.incarnation, 0, 0)))
    for found in await world.store.read(spans):
        assert not found.rows and all(value is None for value in found.flags.values())


async def test_a14_finished_buckets_go_and_groups_move_to_a_new_epoch(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A14, R14"""
    monkeypatch.setattr(limits, "EPOCH_ROWS", 5)
    server, other = world.server(), world.server()
    await make(server, bucket_size=4, history_ms=0, dedup_window_ms=SECOND)
    await put(other, "held", group="held")
    (held,) = await other.receive(QUEUE, 1, 60 * MINUTE)
    for number in range(12):
        await put(server, f"m{number}", group=f"g{number}")
    assert len(await server.drain(QUEUE)) == 12
    assert await other.ack(QUEUE, held) == [None]
    await put(server, "again", group="g3")
    (again,) = await server.receive(QUEUE, 1, 60 * MINUTE)
    await server.work(QUEUE, MINUTE)
    marks = await world.marks(QUEUE)
    assert marks.epoch >= 1 and marks.epoch_dropped == marks.epoch
    assert marks.dropped == 3
    (old,) = await world.store.read([Span(places.groups((await world.queue(QUEUE)).incarnation, 0, 0))])
    assert not old.rows
    assert await other.ack(QUEUE, again) == [None]
    await put(other, "on", group="g3")
    assert bodies(await other.drain(QUEUE)) == ["on"]


async def test_r14_an_epoch_that_was_left_half_way_is_gone_on_with(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R14"""
    monkeypatch.setattr(limits, "EPOCH_ROWS", 2)
    worker, server = world.server(), world.server()
    await make(server, bucket_size=2, dedup_window_ms=SECOND)
    for number in range(6):
        await put(server, f"m{number}", group=f"g{number}")
    await server.drain(QUEUE)
    await put(server, "last", group="g0")

    async def dies() -> None:
        raise RuntimeError("the worker dies")

    worker.store.next("change", GROUPS, dies, when=lambda change: "ready" in change.set_flags)
    with pytest.raises(RuntimeError):
        await worker.work(QUEUE, MINUTE)
    (delivery,) = await server.receive(QUEUE)
    assert bodies([delivery]) == ["last"]
    assert await server.ack(QUEUE, delivery) == [None]
    assert (await world.marks(QUEUE)).epoch == 1


async def test_r12_an_ack_whose_answer_is_lost_is_an_ack(world: World) -> None:
    server = world.server()
    await make(server)
    await put(server, "a", "b")
    (delivery,) = await server.receive(QUEUE)
    server.store.next("change", GROUPS, LOSE_ANSWER)
    assert await server.ack(QUEUE, delivery) == [None]
    server.store.next("change", GROUPS, LOSE_ANSWER)
    assert bodies(await server.receive(QUEUE)) == ["b"]


async def test_a14_a_receive_looks_a_bounded_number_of_messages_ahead(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A14"""
    monkeypatch.setattr(limits, "LOOK_AHEAD_MESSAGES", 4)
    server = world.server()
    await make(server, bucket_size=2)
    await put(server, "a1", "a2", "a3", "a4", group="a")
    await put(server, "b", group="b")
    (first,) = await server.receive(QUEUE)
    assert await server.receive(QUEUE) == [], "b lies beyond"
    await server.ack(QUEUE, first)
    assert bodies(await server.take(QUEUE, 10)) == ["a2", "a3", "a4", "b"]


async def test_peek_stats_and_marks(world: World) -> None:
    server = world.server()
    await make(server, bucket_size=2)
    await put(server, "a1", "a2", group="a")
    await put(server, "b1", group="b")
    await server.receive(QUEUE)
    world.wait(SECOND)
    seen = await server.engine.peek(world.account, QUEUE, 10)
    assert [(item.body, item.group) for item in seen] == [(b"b1", "b")]
    stats = await server.engine.stats(world.account, QUEUE)
    assert (stats.visible, stats.in_flight, stats.delayed, stats.oldest_age_ms) == (2, 1, 0, SECOND)
    marks = await world.marks(QUEUE)
    assert (marks.next_id, marks.repair, marks.reader) == (3, 0, 1)


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (NewMessage(b"-", key="k"), "group"),
        (NewMessage(b"-", group="g"), "key"),
        (message("-", delay_ms=1), "delay"),
        (message("-", origin="a/b/0-1"), "origin"),
    ],
)
async def test_a_message_that_is_none_for_a_fifo_queue_harms_no_other(
    world: World, bad: NewMessage, field: str
) -> None:
    server = world.server()
    await make(server)
    refused, put_ = await server.put_outcomes(QUEUE, [bad, message("good")])
    assert isinstance(refused, InvalidRequest) and refused.field == field
    assert put_ == MessageId(0, 0)


@pytest.mark.parametrize("group", ["", "x" * 129, 7, "\ud800"])
async def test_a_group_has_a_name_of_bounded_length(world: World, group: Any) -> None:
    server = world.server()
    await make(server)
    with pytest.raises(InvalidRequest, match="group"):
        await server.put_outcomes(QUEUE, [NewMessage(b"-", key="k", group=group)])


async def test_settings_that_do_not_go_with_fifo(world: World) -> None:
    server = world.server()
    for wrong in ({"lanes": 2}, {"dedup_window_ms": limits.FIFO_WINDOW_MAXIMUM_MS + 1}, {"dedup_scope": "both"},
                  {"archive": True}):
        with pytest.raises(InvalidRequest):
            await make(server, **wrong)
    await make(server, lanes=2, dedup_scope="group")
    for wrong in ({"lanes": 3}, {"dedup_scope": "queue"}, {"kind": "bucketed"}):
        with pytest.raises(InvalidRequest):
            await server.engine.change_queue(world.account, QUEUE, wrong)


async def test_a_verb_that_a_fifo_queue_cannot_do_says_so(world: World) -> None:
    server = world.server()
    await make(server)
    await put(server, "a")
    engine, account = server.engine, world.account
    for verb in (
        engine.reserve(account, QUEUE, 1),
        engine.archived_up_to(account, QUEUE, 0, 0),
        engine.move_back(account, QUEUE, 0, 0),
        engine.buckets(account, QUEUE, 0, None, 1),
        engine.erase(account, QUEUE, MessageId(0, 0)),
    ):
        with pytest.raises(InvalidRequest, match="kind"):
            await verb
    (delivery,) = await server.receive(QUEUE)
    (outcome,) = await engine.change(account, QUEUE, [WantedChange(delivery.receipt, None, b"other")])
    assert isinstance(outcome, InvalidRequest)
    assert succeeded(await server.receive(QUEUE)) == []
