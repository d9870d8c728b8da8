"""R7: nothing is delivered more often than allowed, and what is moved arrives under one id only."""

from angelhair.simulation.outcome import Outcome


def dead_letters(outcome: Outcome) -> list[str]:
    if outcome.settings.max_deliveries is None:
        return []
    violations = []
    arrived: dict[tuple[str, str], set[str]] = {}
    for delivery in outcome.history.deliveries:
        if delivery.queue == outcome.queue and delivery.number > outcome.settings.max_deliveries:
            violations.append(f"{delivery.id} was delivered {delivery.number} times")
        if delivery.queue == outcome.dead_letter_queue:
            # Ids begin anew when a queue is made again; bodies do not.
            arrived.setdefault((delivery.origin, delivery.body), set()).add(delivery.id)
    violations += [f"{body} of {origin} arrived as {sorted(ids)}" for (origin, body), ids in arrived.items() if len(ids) > 1]
    return violations
