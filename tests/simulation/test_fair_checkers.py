"""The checker of turns can speak, and says nothing about what is in order."""

from __future__ import annotations

import random
from dataclasses import replace

from angelhair.simulation.checkers.turns import turns
from angelhair.simulation.fair_variation import FLOOD, draw_fair
from angelhair.simulation.history import CONFIRMED, Delivered, History, Put
from angelhair.simulation.outcome import Outcome
from angelhair.simulation.themes import PLAIN
from angelhair.simulation.variation import Variation

CALM = draw_fair(random.Random(1), PLAIN, calm=True)
BOUNDS = CALM.bounds | {"NOISY_MESSAGES": 5, "RANK_SHARE": 4}
PRIORITIES = 3
CALM = replace(CALM, bounds=BOUNDS, settings=replace(CALM.settings, priorities=PRIORITIES))


def judged(history: History, variation: Variation = CALM) -> list[str]:
    return turns(Outcome(0, "work", "dead", variation.settings, history, {}, 0, frozenset(), variation))


def played(puts: list[tuple[str, str, int]], order: list[str]) -> History:
    """All are put at once, then received one by one in this order."""
    history = History(puts=[
        Put("work", body, None, 0, 0, 1, CONFIRMED, "0-0", group, priority) for body, group, priority in puts
    ])
    priorities = {body: min(priority, PRIORITIES - 1) for body, _, priority in puts}
    for number, body in enumerate(order):
        at_us = 10 + 10 * number
        history.deliveries.append(
            Delivered("work", "s", "0-0", body, 1, body, at_us, at_us + 1, 30_000, "", "", priorities[body])
        )
    return history


def test_r11_in_the_order_of_their_priority_nobody_is_passed_over() -> None:
    puts = [(f"m{number}", "", number % 4) for number in range(20)]
    order = sorted((body for body, _, _ in puts), key=lambda body: -min(2, int(body[1:]) % 4))
    assert judged(played(puts, order)) == []


def test_r11_the_least_urgent_first() -> None:
    puts = [(f"m{number}", "", number % 2) for number in range(40)]
    order = sorted((body for body, _, _ in puts), key=lambda body: int(body[1:]) % 2)
    found = judged(played(puts, order))
    assert found and "less urgent" in found[0]
    assert judged(played(puts, order), replace(CALM, calm=False)) == []


def test_r11_a_quiet_tenant_behind_a_flood() -> None:
    puts = [(f"m{number}", FLOOD, 0) for number in range(300)] + [("quiet", "t1", 0)]
    bodies = [body for body, _, _ in puts]
    assert judged(played(puts, bodies)) == ["quiet, of a quiet tenant, waited for 300 messages of the flood"]
    assert judged(played(puts, ["quiet", *bodies[:-1]])) == []


def test_r11_a_priority_that_is_lost_on_the_way() -> None:
    history = played([("m1", "", 2), ("m2", "", 9)], ["m1", "m2"])
    assert judged(history) == []
    history.deliveries[1] = replace(history.deliveries[1], priority=0)
    assert judged(history) == ["0-0: m2 has priority 2, and was delivered with 0"]
    assert judged(history, replace(CALM, deeds=("priorities",), calm=False)) == []


def test_other_seeds_are_not_its_business() -> None:
    history = played([("m1", "", 2)], ["m1"])
    history.deliveries[0] = replace(history.deliveries[0], priority=0)
    assert judged(history, replace(CALM, tenants=0)) == []
