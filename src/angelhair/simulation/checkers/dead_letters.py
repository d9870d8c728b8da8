"""R7: nothing is delivered more often than allowed; what is moved arrives under one id, once it is not hidden any more;
what is acked is not moved."""

import math

from angelhair.simulation.checkers.visibility import hidden_until_us
from angelhair.simulation.history import CONFIRMED, Delivered, Put
from angelhair.simulation.outcome import Outcome


def dead_letters(outcome: Outcome) -> list[str]:
    if outcome.settings.max_deliveries is None:
        return []
    violations = []
    anew = _put_anew(outcome)
    arrived: dict[tuple[str, str], set[str]] = {}
    for delivery in outcome.history.deliveries:
        if delivery.queue == outcome.queue and delivery.number > outcome.settings.max_deliveries:
            violations.append(f"{delivery.id} was delivered {delivery.number} times")
        if delivery.queue == outcome.dead_letter_queue and delivery.body not in anew:
            # Ids begin anew when a queue is made again; bodies do not, unless they are put again.
            arrived.setdefault((delivery.origin, delivery.body), set()).add(delivery.id)
    violations += [
        f"{body} of {origin} arrived as {sorted(ids)}" for (origin, body), ids in arrived.items() if len(ids) > 1
    ]
    return violations + _acked_and_moved(outcome, anew) + _moved_while_hidden(outcome, anew)


def _put_anew(outcome: Outcome) -> set[str]:
    """Bodies that may have been put to the queue and, after it was deleted, to the one that was made in its place: two
    messages, perhaps of one id. By puts that were repeated, or by one that was under way meanwhile: its server found
    the queue gone, and put to the new one."""
    deletions = [cleared for cleared in outcome.history.cleared if cleared.deleted]
    puts: dict[str, list[Put]] = {}
    for put in outcome.history.puts if deletions else ():
        puts.setdefault(put.body, []).append(put)
    return {
        body
        for body, tries in puts.items()
        for cleared in deletions
        if (cleared.ended_us is None or cleared.ended_us >= min(put.started_us for put in tries))
        and cleared.started_us <= max(_over_us(put) for put in tries)
    }


def _over_us(put: Put) -> float:
    """From when on its server does nothing more for it. What it never answered it may still be about."""
    return put.ended_us or math.inf


def _acked_and_moved(outcome: Outcome, anew: set[str]) -> list[str]:
    """A move kills the message's receipts, and an ack settles it for good: only one of the two can have happened."""
    history = outcome.history
    winning = {ack.receipt for ack in history.acks if ack.outcome == CONFIRMED}
    # Redriven messages have new ids and the old bodies: id and body together name one message.
    acked = {
        (delivery.id, delivery.body)
        for delivery in history.deliveries
        if delivery.queue == outcome.queue and delivery.receipt in winning
    }
    return [
        f"{delivery.body} was acked as {origin} and arrived as {delivery.id}"
        for delivery in history.deliveries
        if delivery.queue == outcome.dead_letter_queue
        and delivery.body not in anew
        and (origin := delivery.origin.rpartition("/")[2], delivery.body) in acked
    ]


def _moved_while_hidden(outcome: Outcome, anew: set[str]) -> list[str]:
    """A message is moved once its last delivery has lapsed, and a consumer who extended that was promised more time."""
    until_us = hidden_until_us(outcome.history)
    last: dict[tuple[str, str], Delivered] = {}
    for delivery in outcome.history.deliveries:
        if delivery.queue == outcome.queue:
            known = last.setdefault((delivery.id, delivery.body), delivery)
            if delivery.number > known.number:
                last[delivery.id, delivery.body] = delivery
    violations = []
    for delivery in outcome.history.deliveries:
        if delivery.queue == outcome.dead_letter_queue and delivery.body not in anew:
            before = last.get((delivery.origin.rpartition("/")[2], delivery.body))
            if before is not None and delivery.answered_us < until_us.get(before.receipt, 0):
                violations.append(
                    f"{delivery.body}, hidden until {until_us[before.receipt]} us as {before.id}, "
                    f"arrived as {delivery.id} and was delivered at {delivery.answered_us} us"
                )
    return violations
