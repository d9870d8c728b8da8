"""A1, A3: no delivery that was asked for after its message's ack had been confirmed."""

from angelhair.simulation.history import CONFIRMED
from angelhair.simulation.outcome import Outcome


def ack_finality(outcome: Outcome) -> list[str]:
    by_receipt = {delivery.receipt: delivery for delivery in outcome.history.deliveries}
    acked: dict[tuple[str, str, str], int] = {}
    for ack in outcome.history.acks:
        if ack.outcome == CONFIRMED and ack.receipt in by_receipt:
            message = by_receipt[ack.receipt].place
            acked[message] = min(acked.get(message, ack.ended_us), ack.ended_us)
    return [
        f"{delivery.id} was acked at {acked[delivery.place]} us "
        f"and its delivery {delivery.number} asked for at {delivery.asked_us} us"
        for delivery in outcome.history.deliveries
        if delivery.asked_us > acked.get(delivery.place, delivery.asked_us)
    ]
