"""A3: every delivery has a receipt and a number of its own."""

from angelhair.simulation.outcome import Outcome


def unique_receipts(outcome: Outcome) -> list[str]:
    violations = []
    receipts: dict[str, str] = {}
    for delivery in outcome.history.deliveries:
        what = f"{delivery.id} by {delivery.server}"
        if delivery.receipt in receipts:
            other = receipts[delivery.receipt]
            violations.append(f"receipt twice: delivery {delivery.number} of {what} and of {other}")
        receipts[delivery.receipt] = what
    return violations
