"""R6: a queue that was deleted and made again shows none of the old messages."""

from angelhair.simulation.history import CONFIRMED
from angelhair.simulation.outcome import Outcome


def incarnations(outcome: Outcome) -> list[str]:
    history = outcome.history
    violations: list[str] = []
    for cleared in history.cleared:
        if not cleared.deleted or cleared.ended_us is None:
            continue
        old = {
            put.body
            for put in history.puts
            if put.queue == cleared.queue and put.outcome == CONFIRMED and put.ended_us < cleared.started_us
        }
        # What was moved to the dead letters before the deletion may have come back into the new queue, rightly.
        old -= outcome.redriven
        # A repeated put of unknown outcome may have gone into the new queue.
        old -= {put.body for put in history.puts if put.outcome != CONFIRMED or put.ended_us >= cleared.started_us}
        violations += [
            f"{delivery.body} was in the queue deleted at {cleared.started_us} us "
            f"and delivered at {delivery.asked_us} us"
            for delivery in history.deliveries
            if delivery.queue == cleared.queue and delivery.body in old and delivery.asked_us > cleared.ended_us
        ]
    return violations
