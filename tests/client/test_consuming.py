"""When a consumer asks for messages and for how many, and what it may be told: its plan is asked for its steps."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from angelhair import limits
from angelhair.client.consuming import Rest, Rules
from angelhair.client.plans import Broken
from angelhair.errors import InvalidRequest, QueueNotFound
from tests.client.desk import BROKE, Desk, asked, finish, handled, received
from tests.client.test_retrying import DONE, refused


def test_it_asks_for_as_many_as_it_has_places_for() -> None:
    desk = Desk(concurrency=4)
    fetching = desk.consuming.fetching()
    assert asked(next(fetching)) == 4
    assert asked(fetching.send(received())) == 4, "nothing came: the same again, at once, as the server has waited"
    first = handled(desk, fetching.send(received(1, 2, 3)))
    handled(desk, next(fetching))
    handled(desk, next(fetching))
    assert asked(next(fetching)) == 1
    handled(desk, fetching.send(received(4)))
    assert next(fetching) == Rest(None), "all places are taken"
    assert next(fetching) == Rest(None), "whatever woke it, none is free"
    finish(first, None, DONE)
    assert asked(next(fetching)) == 1


def test_it_asks_for_no_more_than_a_request_may() -> None:
    with pytest.raises(InvalidRequest):
        Desk(concurrency=limits.BATCH_MESSAGES + 1)


def test_a_place_is_free_only_when_the_message_is_settled() -> None:
    desk = Desk(concurrency=1)
    fetching = desk.consuming.fetching()
    next(fetching)
    handling = handled(desk, fetching.send(received(1)))
    acking = handling.send(None)
    assert acking.request.method == "DELETE"
    assert next(fetching) == Rest(None)
    with pytest.raises(StopIteration):
        handling.send(DONE)
    assert asked(next(fetching)) == 1


def test_told_to_stop_it_finishes_what_it_holds_also_what_is_just_coming() -> None:
    desk = Desk()
    fetching = desk.consuming.fetching()
    next(fetching)
    desk.consuming.stop()
    handling = handled(desk, fetching.send(received(1)))
    assert next(fetching) == Rest(None)
    finish(handling, None, DONE)
    with pytest.raises(StopIteration):
        next(fetching)


def test_told_to_stop_before_it_began_it_asks_for_nothing() -> None:
    desk = Desk()
    desk.consuming.stop()
    with pytest.raises(StopIteration):
        next(desk.consuming.fetching())


def test_a_server_that_is_away_is_asked_again_ever_more_slowly(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    fetching = desk.consuming.fetching()
    next(fetching)
    pauses = []
    with caplog.at_level(logging.WARNING, "angelhair.client"):
        for _ in range(8):
            step = fetching.send(Broken("refused", sent=False))
            assert isinstance(step, Rest)
            assert step.seconds is not None
            pauses.append(step.seconds)
            desk.clock.seconds += step.seconds / 2
            early = next(fetching)
            assert isinstance(early, Rest), "something else changed: it is not time yet"
            assert early.seconds is not None
            desk.clock.seconds += early.seconds + 0.001
            assert asked(next(fetching)) == 4
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5], abs=0.002)
    assert "refused" in caplog.text
    handled(desk, fetching.send(received(1)))
    assert asked(next(fetching)) == 3
    assert fetching.send(BROKE) == Rest(pytest.approx(0.1, abs=0.002)), "after a success it begins anew"


def test_told_to_stop_it_does_not_wait_for_a_server_that_is_away() -> None:
    desk = Desk()
    fetching = desk.consuming.fetching()
    next(fetching)
    assert isinstance(fetching.send(BROKE), Rest)
    desk.consuming.stop()
    with pytest.raises(StopIteration):
        next(fetching)


def test_a_refusal_is_raised_when_the_rest_is_done() -> None:
    desk = Desk()
    fetching = desk.consuming.fetching()
    next(fetching)
    handling = handled(desk, fetching.send(received(1)))
    assert asked(next(fetching)) == 3
    assert fetching.send(refused(404, "queue_not_found")) == Rest(None)
    finish(handling, None, DONE)
    with pytest.raises(QueueNotFound):
        next(fetching)


# --- rules ----------------------------------------------------------------------------------------------------------

WRONG: dict[str, Callable[[], Rules]] = {
    "concurrency": lambda: Rules("chores", 0, 30, 20),
    "visibility": lambda: Rules("chores", 1, 0.5, 20),
    "wait": lambda: Rules("chores", 1, 30, limits.WAIT_MAXIMUM_SECONDS + 1),
    "queue": lambda: Rules("no/name", 1, 30, 20),
}


@pytest.mark.parametrize("field", WRONG)
def test_a_wrong_rule_is_named(field: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        WRONG[field]()
    assert raised.value.field == field
