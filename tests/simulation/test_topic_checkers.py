"""The checkers of topics speak when something is wrong, and only then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from angelhair.simulation.checkers.topics import TOPIC_CHECKERS
from angelhair.simulation.history import CONFIRMED, REFUSED, UNKNOWN
from angelhair.simulation.topic_history import CREATE, DELETE, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, Deed, TopicHistory
from angelhair.simulation.topic_outcome import TopicOutcome

SECOND_US = 1_000_000
QUEUES = ("a", "b")


def deed(verb: str, at_s: float, what: str = "", outcome: str = CONFIRMED, group: str = "") -> Deed:
    start_us = int(at_s * SECOND_US)
    return Deed(verb, "news", what, group, start_us, start_us + SECOND_US // 2, outcome)


def clean() -> TopicHistory:
    """Three publications in one group; the first queue has all of them, the second comes for the last one."""
    deeds = [deed(CREATE, 1), deed(SUBSCRIBE, 2, "a"), deed(SUBSCRIBE, 12, "b")]
    deeds += [deed(PUBLISH, 10 + spot, f"p{spot}", group="g") for spot in range(3)]
    arrived = {("a", f"p{spot}"): {f"0-{spot}"} for spot in range(3)}
    return TopicHistory(deeds=deeds, arrived=arrived, operations=len(deeds))


def judged(history: TopicHistory) -> dict[str, list[str]]:
    outcome = TopicOutcome(history, True, QUEUES, QUEUES, False)
    return {checker.__name__: found for checker in TOPIC_CHECKERS if (found := checker(outcome))}


def test_a_clean_history_is_clean() -> None:
    assert judged(clean()) == {}


def _lost(history: TopicHistory) -> None:
    del history.arrived["a", "p1"]


def _never_published(history: TopicHistory) -> None:
    history.arrived["a", "p9"] = {"0-9"}


def _refused_and_there(history: TopicHistory) -> None:
    history.deeds.append(deed(PUBLISH, 20, "p3", REFUSED))
    history.arrived["a", "p3"] = {"0-3"}


def _not_subscribed(history: TopicHistory) -> None:
    history.arrived["b", "p0"] = {"0-0"}


def _after_the_end_of_it(history: TopicHistory) -> None:
    history.deeds += [deed(UNSUBSCRIBE, 20, "a"), deed(PUBLISH, 21, "p3")]
    history.arrived["a", "p3"] = history.arrived["b", "p3"] = {"0-3"}


def _confirmed_by_nobody(history: TopicHistory) -> None:
    history.deeds += [deed(DELETE, 20), deed(PUBLISH, 21, "p3")]


def _twice(history: TopicHistory) -> None:
    history.arrived["a", "p1"].add("0-7")


def _out_of_order(history: TopicHistory) -> None:
    history.arrived["a", "p0"], history.arrived["a", "p1"] = {"0-1"}, {"0-0"}


@pytest.mark.parametrize(
    ("plant", "checker"),
    [
        (_lost, "topic_reach"), (_never_published, "topic_strays"), (_refused_and_there, "topic_strays"),
        (_not_subscribed, "topic_strays"), (_after_the_end_of_it, "topic_strays"),
        (_confirmed_by_nobody, "topic_strays"), (_twice, "topic_copies"), (_out_of_order, "topic_order"),
    ],
)
def test_a_planted_violation_is_noticed_by_its_checker_alone(
    plant: Callable[[TopicHistory], None], checker: str
) -> None:
    history = clean()
    plant(history)
    assert list(judged(history)) == [checker]


@pytest.mark.parametrize(
    ("plant", "before"),
    [
        (_confirmed_by_nobody, deed(CREATE, 5, outcome=UNKNOWN)),
        (_not_subscribed, deed(SUBSCRIBE, 5, "b", UNKNOWN)),
        (_after_the_end_of_it, deed(SUBSCRIBE, 5, "a", UNKNOWN)),
        (_lost, deed(UNSUBSCRIBE, 5, "a", UNKNOWN)),
    ],
)
def test_what_came_back_unknown_may_take_effect_at_any_time_later(
    plant: Callable[[TopicHistory], None], before: Deed
) -> None:
    history = clean()
    plant(history)
    assert judged(history)
    history.deeds.append(before)
    assert judged(history) == {}
