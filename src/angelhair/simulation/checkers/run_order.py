"""R12: messages of a run lie in the log of a fifo queue in the order that they have in it, whichever try put them."""

from angelhair.model import FIFO
from angelhair.simulation.outcome import Outcome


def run_order(outcome: Outcome) -> list[str]:
    if outcome.settings.kind != FIFO:
        return []
    place_of: dict[str, tuple[str, int]] = {}
    for put in outcome.history.puts:
        writer, dot, index = (put.key or "").partition(".")
        if dot:
            place_of[put.body] = writer, int(index)
    found: dict[tuple[str, str, str, str], dict[int, int]] = {}
    for delivery in outcome.history.deliveries:
        if delivery.body in place_of and delivery.queue == outcome.queue and delivery.body not in outcome.redriven:
            run, offset = place_of[delivery.body]
            _, incarnation, place = delivery.place
            lane, _, number = place.partition("-")
            found.setdefault((incarnation, lane, delivery.group, run), {})[offset] = int(number)
    return [
        f"messages of run {writer} and group {group}, by their place in it, lie at {numbers}"
        for (_, _, group, writer), numbers in found.items()
        if sorted(numbers.values()) != [numbers[offset] for offset in sorted(numbers)]
    ]
