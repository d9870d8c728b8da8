"""R10: puts that carried one key are one message: one id, delivered under no other."""

from angelhair.simulation.history import CONFIRMED
from angelhair.simulation.outcome import Outcome


def dedup(outcome: Outcome) -> list[str]:
    confirmed: dict[str, set[str]] = {}
    keyed: dict[str, str] = {}
    for put in outcome.history.puts:
        # In a queue that was made again a key stands for another message. A purge takes messages, and no key.
        if put.key is not None and not outcome.may_be_cleared(put, deleted=True):
            keyed[put.body] = put.key
            if put.outcome == CONFIRMED and put.id is not None and not outcome.may_be_cleared(put):
                confirmed.setdefault(put.key, set()).add(put.id)
    violations = [
        f"key {key} was confirmed as {sorted(ids)}"
        for key, ids in confirmed.items()
        if len(ids) > 1
    ]
    delivered: dict[str, set[str]] = {}
    for delivery in outcome.history.deliveries:
        if delivery.body in keyed and delivery.body not in outcome.redriven and delivery.queue == outcome.queue:
            delivered.setdefault(keyed[delivery.body], set()).add(delivery.id)
    for key, ids in delivered.items():
        if len(ids) > 1:
            violations.append(f"key {key} was delivered as {sorted(ids)}")
    return violations
