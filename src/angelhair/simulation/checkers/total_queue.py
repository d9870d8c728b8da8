"""A1: what was confirmed is delivered; what provably did not happen is not; nothing comes from nowhere."""

from angelhair.simulation.history import CONFIRMED, REFUSED
from angelhair.simulation.outcome import Outcome


def total_queue(outcome: Outcome) -> list[str]:
    history = outcome.history
    heard = {body for _, body in history.heard}
    delivered = {delivery.body for delivery in history.deliveries}
    violations = []
    refused: set[str] = set()
    possible: set[str] = set()
    for put in history.puts:
        if put.outcome == CONFIRMED and put.body not in heard and not outcome.may_be_cleared(put):
            violations.append(f"lost: {put.body} was confirmed as {put.id} in {put.queue} and never delivered")
        (refused if put.outcome == REFUSED else possible).add(put.body)
    violations += [
        f"undone: {body} was refused and delivered all the same" for body in sorted(delivered & (refused - possible))
    ]
    violations += [f"unexpected: {body} was delivered and never put" for body in delivered - refused - possible]
    return violations
