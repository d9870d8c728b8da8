"""The book finds what it is there to find: each promise broken once, on purpose."""

from __future__ import annotations

import pytest

from tests.killed.ledger import Ledger

VISIBILITY_SECONDS = 1.0

WHOLE_LIFE = [
    "0.0 putting a",
    "0.1 put a 0-0",
    "0.2 receiving c",
    "0.3 got c a 0-0 1",
    "0.4 acking a 1",
    "0.5 acked a 1",
]


def judged(*entries: str) -> Ledger:
    ledger = Ledger(VISIBILITY_SECONDS)
    ledger.enter(entries)
    return ledger


def test_a_whole_life_is_in_order() -> None:
    account = judged(*WHOLE_LIFE).account()
    assert account.broken == []
    assert (account.confirmed, account.delivered, account.acked, account.duplicates) == (1, 1, 1, 0)


@pytest.mark.parametrize(
    ("entries", "complaint"),
    [
        (["0.0 putting a", "0.1 put a 0-0"], "lost: a"),
        ([*WHOLE_LIFE[:4]], "lost: a"),
        ([*WHOLE_LIFE[:5], "0.5 unacked a 1"], "lost: a"),
        ([*WHOLE_LIFE[:5], "2.0 stale a 1"], "lost: a"),
        ([*WHOLE_LIFE, "2.0 receiving c", "2.1 got c a 0-0 2"], "a was delivered after its ack was confirmed"),
        (["0.0 receiving c", "0.1 got c a 0-0 1"], "a was delivered and never put"),
        (["0.0 putting a", "0.1 refused a", "0.2 receiving c", "0.3 got c a 0-0 1"], "a was refused and delivered"),
        ([*WHOLE_LIFE, "0.6 putting b", "0.7 put b 0-0", "0.7 receiving c", "0.8 got c b 0-0 1", "0.9 acking b 1"],
         "id 0-0 was given to a and to b"),
        (["0.0 putting a", "0.1 put a 0-7", *WHOLE_LIFE[2:]], "a was put as 0-7 and delivered as 0-0"),
        ([*WHOLE_LIFE[:4], "0.4 receiving d", "1.5 got d a 0-0 1", *WHOLE_LIFE[4:]],
         "delivery 1 of a was handed out twice"),
        ([*WHOLE_LIFE[:4], "0.4 receiving d", "0.5 got d a 0-0 2", *WHOLE_LIFE[4:]],
         "delivery 2 of a came 0.300 s after the one before"),
        ([*WHOLE_LIFE[:4], "0.4 receiving d", "1.5 got d a 0-0 2", *WHOLE_LIFE[4:], "2.0 acking a 2", "2.1 acked a 2"],
         "deliveries 1 and 2 of a were both acked"),
        ([*WHOLE_LIFE, "0.6 acking a 1", "0.7 stale a 1"], "delivery 1 of a was acked and then called stale"),
    ],
)
def test_broken_promises_are_found(entries: list[str], complaint: str) -> None:
    assert judged(*entries).account().broken == [complaint]


@pytest.mark.parametrize(
    "entries",
    [
        ["0.0 putting a"],
        ["0.0 putting a", "0.1 unknown a"],
        ["0.0 putting a", "0.1 refused a"],
        # A kill between the ack and its answer: nobody is owed another delivery, and one may come.
        WHOLE_LIFE[:5],
        [*WHOLE_LIFE[:5], "0.5 perhaps a 1"],
        [*WHOLE_LIFE[:5], "2.0 receiving c", "2.1 got c a 0-0 2", "2.2 acking a 2", "2.3 acked a 2"],
        # A receive that began before the ack was confirmed may still bring the message.
        [*WHOLE_LIFE[:4], "0.4 receiving d", *WHOLE_LIFE[4:], "1.5 got d a 0-0 2"],
        # Of unknown outcome, and there.
        ["0.0 putting a", "0.1 unknown a", *WHOLE_LIFE[2:]],
    ],
)
def test_what_may_happen_is_no_complaint(entries: list[str]) -> None:
    assert judged(*entries).account().broken == []
