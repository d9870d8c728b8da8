"""A3: of two acks of different deliveries of one message at most one wins."""

from angelhair.simulation.history import CONFIRMED
from angelhair.simulation.outcome import Outcome


def one_winner(outcome: Outcome) -> list[str]:
    by_receipt = {delivery.receipt: delivery for delivery in outcome.history.deliveries}
    winners: dict[tuple[str, str, str], set[int]] = {}
    for ack in outcome.history.acks:
        if ack.outcome == CONFIRMED and ack.receipt in by_receipt:
            delivery = by_receipt[ack.receipt]
            winners.setdefault(delivery.place, set()).add(delivery.number)
    return [
        f"{message}: acks of deliveries {sorted(numbers)} all won"
        for message, numbers in winners.items()
        if len(numbers) > 1
    ]
