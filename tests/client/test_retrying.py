"""Trying again, without a network: plans are asked for their steps, on a clock and a chance that the test holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from angelhair.client import Receipt
from angelhair.client.plans import Answer, Broken, Pause, Plan, Send
from angelhair.client.retrying import Manner, Retry
from angelhair.client.verbs import deliveries, operating, puts, queues
from angelhair.clock import Moment
from angelhair.errors import AngelhairError, OutcomeUnknown, QueueNotFound, StaleReceipt, Unavailable

REFUSED = Broken("refused", sent=False)
BROKE = Broken("broke", sent=True)
RECEIPT = Receipt("chores", "A" * 44)


class Hours:
    """A clock that moves when a plan pauses or waits for an answer."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> Moment:
        return Moment(0, round(self.seconds * 1000))


def answer(status: int, body: str = "", **headers: str) -> Answer:
    return Answer(status, {name.replace("_", "-"): value for name, value in headers.items()}, body.encode())


def refused(status: int, code: str, **headers: str) -> Answer:
    return answer(status, f'{{"code": "{code}", "message": "no", "request_id": "1"}}', **headers)


UNAVAILABLE = refused(503, "unavailable", retry_after="1")
UNKNOWN = refused(504, "outcome_unknown")
PUT = answer(201, '{"id": "0-0", "queue": "chores"}')
DONE = answer(204)


class World:
    def __init__(self, retry: Retry | None = Retry(), chance: float = 1.0) -> None:  # noqa: B008
        self.clock = Hours()
        self.manner = Manner(30.0, retry, self.clock, lambda: chance)
        self.sent: list[Send] = []
        self.pauses: list[float] = []

    def run(self, plan: Plan[Any], *answers: Any, answering_seconds: float = 0.0) -> Any:
        """Gives these answers, the last one again and again."""
        outcome: Any = None
        try:
            while True:
                step = plan.send(outcome)
                if isinstance(step, Pause):
                    self.pauses.append(step.seconds)
                    self.clock.seconds += step.seconds
                    outcome = None
                else:
                    outcome = answers[min(len(self.sent), len(answers) - 1)]
                    self.sent.append(step)
                    self.clock.seconds += answering_seconds
        except StopIteration as end:
            return end.value


Make = Callable[[Manner], Plan[Any]]

REPEATABLE: dict[str, tuple[Make, Answer]] = {
    "put": (lambda manner: puts.put(manner, "chores", b"x"), PUT),
    "put with the caller's key": (lambda manner: puts.put(manner, "chores", b"x", key="k"), PUT),
    "put_many": (
        lambda manner: puts.put_many(manner, "chores", [b"x"]),
        answer(201, '{"messages": [{"id": "0-0"}], "queue": "chores"}'),
    ),
    "ack": (lambda manner: deliveries.ack(manner, RECEIPT), DONE),
    "ack_many": (lambda manner: deliveries.ack_many(manner, [RECEIPT]), answer(200, '{"acked": 1, "failed": []}')),
    "extend": (lambda manner: deliveries.extend(manner, RECEIPT, 5), DONE),
    "release": (lambda manner: deliveries.release(manner, RECEIPT), DONE),
    "change": (lambda manner: deliveries.change(manner, RECEIPT, b"x"), DONE),
    "receive": (lambda manner: deliveries.receive(manner, "chores"), answer(200, '{"messages": []}')),
    "purge": (lambda manner: queues.purge(manner, "chores"), DONE),
    "delete_queue": (lambda manner: queues.delete_queue(manner, "chores"), DONE),
    "queues": (queues.queues, answer(200, '{"queues": [], "next": null}')),
    "peek": (lambda manner: operating.peek(manner, "chores"), answer(200, '{"messages": []}')),
    "pointers": (lambda manner: operating.pointers(manner, "chores"), answer(200, '{"lanes": []}')),
    "move_back": (lambda manner: operating.move_back(manner, "chores", 0, 0), answer(200, '{"lane": 0, "repair": 0}')),
}


@pytest.mark.parametrize("verb", REPEATABLE)
@pytest.mark.parametrize("failure", [REFUSED, BROKE, UNAVAILABLE, UNKNOWN, refused(500, "internal_error")])
def test_what_can_be_repeated_is(verb: str, failure: Any) -> None:
    plan, good = REPEATABLE[verb]
    world = World()
    world.run(plan(world.manner), failure, failure, good)
    assert len(world.sent) == 3
    assert len({send.request for send in map(hashable, world.sent)}) == 1, "the same request, key and all"


def hashable(send: Send) -> Any:
    return send._replace(request=send.request._replace(query=tuple(send.request.query.items())))  # type: ignore[arg-type]


@pytest.mark.parametrize("verb", REPEATABLE)
def test_without_retries_everything_is_sent_once(verb: str) -> None:
    plan, _ = REPEATABLE[verb]
    for failure in (BROKE, UNAVAILABLE):
        world = World(retry=None)
        try:
            outcome = world.run(plan(world.manner), failure)
        except AngelhairError:
            pass
        else:
            # Verbs for many give an outcome for each.
            (item,) = outcome
            assert isinstance(item.error, AngelhairError)
        assert len(world.sent) == 1
        assert world.pauses == []


def test_redrive_is_repeated_only_if_it_provably_did_not_happen() -> None:
    """Twice it would move twice as many."""
    moved = answer(200, '{"moved": 3}')
    for failure in (REFUSED, UNAVAILABLE):
        world = World()
        assert world.run(operating.redrive(world.manner, "chores"), failure, moved) == 3
    for failure in (BROKE, UNKNOWN):
        world = World()
        with pytest.raises(OutcomeUnknown):
            world.run(operating.redrive(world.manner, "chores"), failure, moved)
        assert len(world.sent) == 1


def test_every_put_has_a_key_of_its_own_when_retries_are_on() -> None:
    world = World()
    for _ in range(2):
        world.run(puts.put(world.manner, "chores", b"x"), PUT)
    first, second = (send.request.query["key"] for send in world.sent)
    assert first != second
    world = World(retry=None)
    world.run(puts.put(world.manner, "chores", b"x"), PUT)
    assert "key" not in world.sent[0].request.query


def test_a_put_without_key_is_not_repeated_when_it_may_have_happened() -> None:
    """No client makes such a call; the core refuses all the same."""
    world = World()
    plan = puts.put(World(retry=None).manner, "chores", b"x")
    with pytest.raises(OutcomeUnknown):
        world.run(plan, BROKE, PUT)
    assert len(world.sent) == 1


# --- what is said in the end ----------------------------------------------------------------------------------------


def test_unavailable_is_said_only_if_no_try_may_have_happened() -> None:
    world = World()
    with pytest.raises(Unavailable):
        world.run(puts.put(world.manner, "chores", b"x"), REFUSED)
    world = World()
    with pytest.raises(OutcomeUnknown, match="an earlier try"):
        world.run(puts.put(world.manner, "chores", b"x"), BROKE, REFUSED)


def test_the_same_for_each_of_many() -> None:
    item = '{"error": {"code": "%s", "message": "no"}}'
    said = ['{"id": "0-0"}', item % "outcome_unknown", item % "unavailable", item % "unavailable"]
    later = [item % "unavailable", '{"id": "0-2"}', item % "unavailable"]
    last = [item % "unavailable", item % "unavailable"]
    world = World()
    outcomes = world.run(
        puts.put_many(world.manner, "chores", [b"a", b"b", b"c", b"d"]),
        *(answer(207, f'{{"messages": [{", ".join(items)}], "queue": "chores"}}') for items in (said, later, last)),
    )
    assert [outcome.id for outcome in outcomes] == ["0-0", None, "0-2", None]
    assert [type(outcome.error) for outcome in outcomes] == [type(None), OutcomeUnknown, type(None), Unavailable]
    assert world.sent[1].request.body is not None
    assert world.sent[1].request.body.count(b"body") == 3, "what was put is not put again"


def test_reading_is_never_of_unknown_outcome() -> None:
    world = World()
    with pytest.raises(Unavailable):
        world.run(operating.peek(world.manner, "chores"), BROKE)


def test_a_queue_that_is_gone_after_a_lost_answer_was_deleted_by_us() -> None:
    gone = refused(404, "queue_not_found")
    world = World()
    world.run(queues.delete_queue(world.manner, "chores"), BROKE, gone)
    for first in (gone, REFUSED):
        world = World()
        with pytest.raises(QueueNotFound):
            world.run(queues.delete_queue(world.manner, "chores"), first, gone)


def test_a_message_that_others_have_after_a_lost_answer_was_released_by_us() -> None:
    stale = refused(409, "stale_receipt")
    world = World()
    world.run(deliveries.release(world.manner, RECEIPT), BROKE, stale)
    world = World()
    with pytest.raises(StaleReceipt):
        world.run(deliveries.extend(world.manner, RECEIPT, 5), BROKE, stale)


def test_what_is_wrong_is_not_repeated() -> None:
    world = World()
    with pytest.raises(QueueNotFound):
        world.run(puts.put(world.manner, "chores", b"x"), refused(404, "queue_not_found"))
    assert len(world.sent) == 1


# --- how long -------------------------------------------------------------------------------------------------------


def test_pauses_double_up_to_a_bound_and_end_in_time() -> None:
    world = World(Retry(total_seconds=10, first_pause_seconds=0.5, most_pause_seconds=3))
    with pytest.raises(Unavailable):
        world.run(operating.peek(world.manner, "chores"), REFUSED)
    assert world.pauses == [0.5, 1, 2, 3, 3]
    assert world.clock.seconds <= 10


@pytest.mark.parametrize("chance", [0.0, 0.25, 0.999])
def test_pauses_are_drawn_from_all_that_is_below_their_bound(chance: float) -> None:
    world = World(Retry(total_seconds=100, first_pause_seconds=1, most_pause_seconds=4), chance)
    world.run(operating.peek(world.manner, "chores"), REFUSED, REFUSED, REFUSED, answer(200, '{"messages": []}'))
    assert world.pauses == [chance, 2 * chance, 4 * chance]


def test_the_server_says_when_to_come_again() -> None:
    world = World(Retry(first_pause_seconds=0.5), chance=0.5)
    failure = refused(503, "unavailable", retry_after="7")
    world.run(operating.peek(world.manner, "chores"), failure, answer(200, '{"messages": []}'))
    assert world.pauses == [7.25]


@pytest.mark.parametrize("text", ["", "soon", "-1", "Wed, 21 Oct 2015 07:28:00 GMT"])
def test_what_is_not_a_number_of_seconds_is_passed_over(text: str) -> None:
    world = World(Retry(first_pause_seconds=0.5))
    failure = refused(503, "unavailable", retry_after=text)
    world.run(operating.peek(world.manner, "chores"), failure, answer(200, '{"messages": []}'))
    assert world.pauses == [0.5]


def test_a_pause_that_would_last_too_long_is_not_begun() -> None:
    world = World()
    with pytest.raises(Unavailable):
        world.run(operating.peek(world.manner, "chores"), refused(503, "unavailable", retry_after="3600"))
    assert world.pauses == []


def test_slow_failures_count_against_the_time_too() -> None:
    world = World(Retry(total_seconds=60, first_pause_seconds=0.1))
    with pytest.raises(OutcomeUnknown):
        world.run(puts.put(world.manner, "chores", b"x"), BROKE, answering_seconds=25)
    assert len(world.sent) == 3
    timeouts = [send.timeout_seconds for send in world.sent]
    assert timeouts[0] == 30
    assert timeouts[2] <= 10, "the last try has what is left"


def test_a_long_receive_may_take_as_long_as_it_asked_for() -> None:
    world = World()
    world.run(deliveries.receive(world.manner, "chores", wait=60), answer(200, '{"messages": []}'))
    assert (world.sent[0].timeout_seconds, world.sent[0].wait_seconds) == (30, 60)


def test_after_very_many_tries_the_bound_still_holds() -> None:
    assert Retry(most_pause_seconds=5).bound_seconds(100_000) == 5
