"""R12, A2, A3 of fifo queues: the messages of a group come in order, and one in flight holds back those behind it."""

from __future__ import annotations

from angelhair.errors import MessageGone, NotInFlight, StaleReceipt
from angelhair.model import Ask, WantedChange
from tests.promises.fifo import QUEUE, bodies, make, message, put
from tests.queues import SECOND, World, succeeded


async def test_r12_a_group_is_delivered_in_order(world: World) -> None:
    server = world.server()
    await make(server, bucket_size=3)
    assert await put(server, "a", "b", "c", "d", "e") == [0, 1, 2, 3, 4]
    taken = await server.drain(QUEUE, 1)
    assert bodies(taken) == ["a", "b", "c", "d", "e"]
    assert {delivery.group for delivery in taken} == {"g"}


async def test_r12_a_message_in_flight_holds_back_its_group_and_no_other(world: World) -> None:
    server = world.server()
    await make(server)
    await put(server, "a1", "a2", group="a")
    await put(server, "b1", group="b")
    (first,) = await server.receive(QUEUE)
    assert bodies([first]) == ["a1"]
    assert bodies(await server.receive(QUEUE, 10)) == ["b1"]
    assert await server.receive(QUEUE, 10) == []
    assert await server.ack(QUEUE, first) == [None]
    assert bodies(await server.receive(QUEUE, 10)) == ["a2"]


async def test_r12_a_receive_takes_several_of_one_group_before_it_goes_on(world: World) -> None:
    server = world.server()
    await make(server)
    for body in ("a1", "b1", "a2", "b2", "c1", "a3"):
        await put(server, body, group=body[0])
    assert bodies(await server.receive(QUEUE, 4)) == ["a1", "a2", "a3", "b1"]
    assert bodies(await server.receive(QUEUE, 4)) == ["c1"]


async def test_r12_two_receives_of_one_commit_share_no_group(world: World) -> None:
    server = world.server()
    await make(server)
    await put(server, "a1", "a2", "a3", group="a")
    await put(server, "b1", "b2", group="b")
    answers = await server.engine.receive(world.account, QUEUE, [Ask(2), Ask(5)])
    assert [bodies(succeeded(answer)) for answer in answers] == [["a1", "a2"], ["b1", "b2"]]


async def test_a02_what_was_not_acked_comes_again_before_what_is_behind_it(world: World) -> None:
    server = world.server()
    await make(server, visibility_timeout_ms=10 * SECOND)
    await put(server, "a", "b", "c")
    first, second = await server.receive(QUEUE, 2)
    assert await server.ack(QUEUE, second) == [None]
    world.wait(10 * SECOND)
    again = await server.receive(QUEUE, 10)
    assert bodies(again) == ["a", "c"]
    assert [delivery.deliveries for delivery in again] == [2, 1]
    (stale,) = await server.ack(QUEUE, first)
    assert isinstance(stale, StaleReceipt)


async def test_r12_after_one_was_extended_only_those_before_it_come(world: World) -> None:
    server = world.server()
    await make(server, visibility_timeout_ms=10 * SECOND)
    await put(server, "a", "b", "c")
    _, second, _ = await server.receive(QUEUE, 3)
    assert await server.extend(QUEUE, second, 60 * SECOND) is None
    world.wait(10 * SECOND)
    assert bodies(await server.receive(QUEUE, 10)) == ["a"]


async def test_r12_what_is_released_comes_at_once_and_in_order(world: World) -> None:
    server = world.server()
    await make(server)
    await put(server, "a", "b", "c")
    deliveries = await server.receive(QUEUE, 2)
    for delivery in reversed(deliveries):
        assert await server.extend(QUEUE, delivery, 0) is None
    assert bodies(await server.receive(QUEUE, 10)) == ["a", "b", "c"]


async def test_a03_acking_again_is_a_success_while_the_group_remembers(world: World) -> None:
    server, other = world.server(), world.server()
    await make(server)
    await put(server, "a", "b")
    first, second = await server.receive(QUEUE, 2)
    assert await server.ack(QUEUE, first, second, first) == [None, None, None]
    assert await other.ack(QUEUE, second, first) == [None, None]


async def test_a03_an_ack_can_be_asked_for_only_while_in_flight(world: World) -> None:
    """As SQS does it with fifo queues: an expired receipt is refused though nobody received the message since."""
    server = world.server()
    await make(server, visibility_timeout_ms=10 * SECOND)
    await put(server, "a")
    (delivery,) = await server.receive(QUEUE)
    world.wait(10 * SECOND)
    (refused,) = await server.engine.ack(world.account, QUEUE, [delivery.receipt], in_flight=True)
    assert isinstance(refused, NotInFlight)
    (changed,) = await server.engine.change(
        world.account, QUEUE, [WantedChange(delivery.receipt, 5 * SECOND, in_flight=True)]
    )
    assert isinstance(changed, NotInFlight)
    assert await server.ack(QUEUE, delivery) == [None]


async def test_r12_a_server_acks_and_goes_on_with_what_another_delivered(world: World) -> None:
    first, second = world.server(), world.server()
    await make(first)
    await put(first, "a", "b", "c")
    (delivery,) = await first.receive(QUEUE)
    assert await second.receive(QUEUE) == []
    assert await second.ack(QUEUE, delivery) == [None]
    (delivery,) = await second.receive(QUEUE)
    assert bodies([delivery]) == ["b"]
    assert await second.ack(QUEUE, delivery) == [None]
    world.wait(SECOND)
    assert bodies(await first.receive(QUEUE)) == ["c"]


async def test_r12_a_restarted_server_knows_the_order(world: World) -> None:
    first = world.server()
    await make(first, bucket_size=2)
    await put(first, "a", "b", "c", "d", "e")
    await first.take(QUEUE, 2)
    (delivery,) = await first.receive(QUEUE)
    second = world.server()
    assert await second.receive(QUEUE) == []
    assert await second.ack(QUEUE, delivery) == [None]
    assert bodies(await second.receive(QUEUE, 10)) == ["d", "e"]


async def test_r05_a_clock_that_is_a_year_ahead_hides_nothing_for_a_year(world: World) -> None:
    """R5"""
    wrong, right = world.server(ahead_ms=365 * 86_400 * SECOND), world.server()
    await make(right, visibility_timeout_ms=10 * SECOND)
    await put(wrong, "a")
    assert bodies(await wrong.receive(QUEUE)) == ["a"]
    assert await right.receive(QUEUE) == []
    world.wait(10 * SECOND)
    assert bodies(await right.receive(QUEUE)) == ["a"]


async def test_a10_the_delay_is_the_queues_own(world: World) -> None:
    """A10"""
    server = world.server()
    await make(server, delay_ms=5 * SECOND)
    await put(server, "a", "b")
    assert await server.receive(QUEUE) == []
    world.wait(5 * SECOND)
    assert bodies(await server.receive(QUEUE, 2)) == ["a", "b"]


async def test_a_receive_is_repeated_under_its_attempt(world: World) -> None:
    server, other = world.server(), world.server()
    await make(server, visibility_timeout_ms=10 * SECOND)
    await put(server, "a", "b", "c")

    async def ask(count: int, attempt: str) -> list[str]:
        (answer,) = await other.engine.receive(world.account, QUEUE, [Ask(count, None, attempt)])
        return [f"{delivery.body.decode()} {delivery.receipt}" for delivery in succeeded(answer)]

    given = await ask(2, "first")
    assert len(given) == 2
    world.wait(8 * SECOND)
    assert await ask(2, "first") == given
    world.wait(8 * SECOND)
    assert await ask(2, "second") == [], "the time-out has begun anew"
    world.wait(3 * SECOND)
    again = await ask(2, "first")
    assert len(again) == 2 and again != given, "its time-out has passed: a new delivery"


async def test_r12_lanes_keep_the_order_of_each_group(world: World) -> None:
    server = world.server()
    await make(server, lanes=4, dedup_scope="group", bucket_size=4)
    wanted = {f"group-{number}": [f"{number}.{place}" for place in range(5)] for number in range(12)}
    for place in range(5):
        outcomes = await server.put_outcomes(
            QUEUE, [message(group[place], name) for name, group in wanted.items()]
        )
        assert all(not isinstance(outcome, Exception) for outcome in outcomes)
    assert len({succeeded(outcome).lane for outcome in outcomes}) > 1
    seen: dict[str, list[str]] = {}
    while taken := await server.take(QUEUE, 3):
        for delivery in taken:
            seen.setdefault(delivery.group or "", []).append(delivery.body.decode())
    assert seen == wanted


async def test_a03_a_receipt_whose_message_is_long_gone_says_so(world: World) -> None:
    server = world.server()
    await make(server)
    await put(server, *[f"m{number}" for number in range(150)])
    first, *others = await server.receive(QUEUE, 150)
    assert await server.ack(QUEUE, first) == [None]
    assert await server.ack(QUEUE, *others) == [None] * 149
    (answer,) = await world.server().ack(QUEUE, first)
    assert answer is None or isinstance(answer, MessageGone)
