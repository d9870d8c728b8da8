"""R12: a message of a fifo queue is delivered only when all before it in its group are settled, or with them."""

from angelhair.simulation.history import Delivered
from angelhair.simulation.outcome import Outcome


def group_order(outcome: Outcome) -> list[str]:
    groups: dict[tuple[str, str, str, str], list[Delivered]] = {}
    # What was purged holds nobody up, and may still be acked by whom it was delivered to before.
    purged = {cleared.queue for cleared in outcome.history.cleared if not cleared.deleted}
    for delivery in outcome.history.deliveries:
        if delivery.group and delivery.queue not in purged:
            queue, incarnation, place = delivery.place
            groups.setdefault((queue, incarnation, place.partition("-")[0], delivery.group), []).append(delivery)
    acked = _acked_from(outcome)
    return [text for deliveries in groups.values() for text in _overtaken(deliveries, acked)]


def _overtaken(deliveries: list[Delivered], acked: dict[str, int]) -> list[str]:
    """Deliveries of a message that came before one of an earlier message: that one was not settled yet."""
    last: dict[int, Delivered] = {}
    alive_us: dict[int, int] = {}
    together: dict[tuple[str, int, int], set[int]] = {}
    for delivery in deliveries:
        number = _number(delivery)
        together.setdefault(_receive(delivery), set()).add(number)
        # It was not settled when this delivery was asked for; nor when its only ack was.
        alive = max(delivery.asked_us, acked.get(delivery.receipt, 0))
        if alive >= alive_us.get(number, 0):
            alive_us[number], last[number] = alive, delivery
    return [
        f"{delivery.id} of group {delivery.group} was delivered at {delivery.answered_us} us "
        f"though {last[earlier].id} before it was not settled at {alive} us"
        for delivery in deliveries
        for earlier, alive in alive_us.items()
        if earlier < _number(delivery)
        and alive > delivery.answered_us
        and earlier not in together[_receive(delivery)]
    ]


def _acked_from(outcome: Outcome) -> dict[str, int]:
    """By receipt, when the ack was asked for that settled its message, if that can be told: all tries were heard of."""
    history = outcome.history
    begun: dict[str, list[int]] = {}
    for ack in history.acks:
        begun.setdefault(ack.receipt, []).append(ack.started_us)
    return {
        receipt: min(starts)
        for receipt, starts in begun.items()
        if receipt in history.true_acks and len(starts) == history.asked_acks[receipt]
    }


def _receive(delivery: Delivered) -> tuple[str, int, int]:
    return delivery.server, delivery.asked_us, delivery.answered_us


def _number(delivery: Delivered) -> int:
    return int(delivery.id.partition("-")[2])
