"""R11: a message keeps its priority; and where nothing went wrong, it is passed over by few that come after it in rank.

Only for seeds with priorities and tenants. That nobody waits for ever is what `drains` sees.
"""

from collections import Counter
from collections.abc import Sequence

from angelhair.simulation.fair_variation import FLOOD
from angelhair.simulation.history import CONFIRMED, Delivered
from angelhair.simulation.outcome import Outcome
from angelhair.simulation.variation import Variation

SLACK_CALLS = 2
"""Receives that were joined with one whose turn it was, and the first turn itself."""


def turns(outcome: Outcome) -> list[str]:
    variation = outcome.variation
    if variation is None or not variation.tenants:
        return []
    violations = []
    if not {"priorities", "lanes"} & {*variation.deeds}:
        violations += _lost_priorities(outcome)
    if variation.calm:
        violations += _passed_over(outcome, variation)
    return violations


def _lost_priorities(outcome: Outcome) -> list[str]:
    highest = outcome.settings.priorities - 1
    wanted = {put.body: min(put.priority, highest) for put in outcome.history.puts}
    return [
        f"{delivery.id}: {delivery.body} has priority {wanted[delivery.body]}, and was delivered with "
        f"{delivery.priority}"
        for delivery in outcome.history.deliveries
        if delivery.queue == outcome.queue and wanted.get(delivery.body, delivery.priority) != delivery.priority
    ]


def _passed_over(outcome: Outcome, variation: Variation) -> list[str]:
    noisy, share = variation.bounds["NOISY_MESSAGES"], variation.bounds["RANK_SHARE"]
    sent = Counter(put.group for put in outcome.history.puts)
    calls: dict[int, list[Delivered]] = {}
    for found in outcome.history.deliveries:
        calls.setdefault(found.asked_us, []).append(found)
    first = {each.body: each for each in reversed(outcome.history.deliveries)}
    groups = {put.body: put.group for put in outcome.history.puts}
    violations = []
    for put in outcome.history.puts:
        delivery = first.get(put.body)
        if put.outcome != CONFIRMED or delivery is None:
            continue
        while_waiting = [call for asked_us, call in calls.items() if put.ended_us <= asked_us < delivery.asked_us]
        turns_of_others = len(while_waiting) // share + SLACK_CALLS
        lower = sum(any(item.priority < delivery.priority for item in call) for call in while_waiting)
        if lower > turns_of_others:
            violations.append(
                f"{put.body}, of priority {delivery.priority}, waited for {len(while_waiting)} receives, {lower} of "
                "which gave something less urgent"
            )
        # Who sends that many may be noisy too.
        flood = [] if sent[put.group] >= noisy else _of_the_flood(delivery, while_waiting, groups)
        if sum(flood[turns_of_others:]) > noisy + max(variation.put_sizes):
            violations.append(f"{put.body}, of a quiet tenant, waited for {sum(flood)} messages of the flood")
    return violations


def _of_the_flood(delivery: Delivered, calls: Sequence[Sequence[Delivered]], groups: dict[str, str]) -> list[int]:
    """How many messages of the tenant that floods the queue, no more urgent than this one, each call gave, the most
    first: those may have been its turn."""
    counts = [
        sum(groups.get(item.body) == FLOOD and item.priority <= delivery.priority for item in call) for call in calls
    ]
    return sorted(counts, reverse=True)
