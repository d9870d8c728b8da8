"""The checker of order can speak, and says nothing about what is in order."""

from __future__ import annotations

from angelhair.model import BUCKETED, FIFO, QueueSettings
from angelhair.simulation.checkers.group_order import group_order
from angelhair.simulation.checkers.run_order import run_order
from angelhair.simulation.history import CONFIRMED, Cleared, Delivered, History, Put, Settled
from angelhair.simulation.outcome import Outcome

HIDDEN_MS = 10


def delivered(number: int, at_us: int, times: int = 1, group: str = "g") -> Delivered:
    receipt = f"incarnation0.{number}.{times}"
    return Delivered(
        "work", "server-1", f"0-{number}", f"m{number}", times, receipt, at_us, at_us + 1, HIDDEN_MS, "", group
    )


def judged(deliveries: list[Delivered], acked: dict[str, int] | None = None, *, purged: bool = False) -> int:
    history = History(deliveries=deliveries)
    for receipt, at_us in (acked or {}).items():
        history.acks.append(Settled("work", receipt, at_us, at_us + 1, CONFIRMED))
        history.asked_acks[receipt] += 1
        history.true_acks.add(receipt)
    if purged:
        history.cleared.append(Cleared("work", 0, 1, False))
    return len(group_order(Outcome(0, "work", "dead", QueueSettings(), history, {}, 0)))


def test_r12_messages_of_one_group_in_order_are_in_order() -> None:
    first, second, other = delivered(1, 10), delivered(2, 30), delivered(3, 5, group="h")
    assert judged([other, first, second], {first.receipt: 20, second.receipt: 40}) == 0


def test_r12_one_receive_may_hold_several_and_they_may_come_again() -> None:
    first, second, again = delivered(1, 10), delivered(2, 10), delivered(1, 50, 2)
    assert judged([first, second, again]) == 0


def test_r12_a_later_one_before_an_earlier_one_is_noticed() -> None:
    assert judged([delivered(2, 10), delivered(1, 30)]) == 1


def test_r12_a_later_one_while_an_earlier_one_is_in_flight_is_noticed() -> None:
    first, second = delivered(1, 10), delivered(2, 30)
    assert judged([first, second], {first.receipt: 50}) == 1
    assert judged([first, second], {first.receipt: 50}, purged=True) == 0


def out_of_order(
    *places: tuple[str, int, int], kind: str = FIFO, group: str = "g", redriven: frozenset[str] = frozenset()
) -> int:
    """Messages of runs: whose, the place in it, and where they were found."""
    history = History(deliveries=[delivered(number, 10 * number, group=group) for _, _, number in places])
    history.puts += [Put("work", f"m{number}", f"{run}.{index}", 0, 0) for run, index, number in places]
    return len(run_order(Outcome(0, "work", "dead", QueueSettings(kind=kind), history, {}, 0, redriven)))


def test_r12_runs_in_order_and_among_each_other_are_in_order() -> None:
    assert out_of_order(("w1", 0, 3), ("w2", 9, 4), ("w1", 1, 5), ("w2", 10, 6)) == 0


def test_r12_a_run_that_lies_otherwise_is_noticed() -> None:
    assert out_of_order(("w1", 9, 3), ("w1", 10, 2)) == 1
    assert out_of_order(("w1", 1, 3), ("w1", 0, 4), ("w2", 1, 5), ("w2", 0, 6)) == 2
    assert out_of_order(("w1", 1, 3), ("w1", 0, 4), kind=BUCKETED) == 0
    assert out_of_order(("w1", 1, 3), ("w1", 0, 4), redriven=frozenset({"m4"})) == 0
