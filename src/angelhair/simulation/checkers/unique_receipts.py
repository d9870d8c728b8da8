"""A3: every delivery has a receipt and a number of its own, and its queue knows it again."""

from angelhair.simulation.outcome import Outcome


def unique_receipts(outcome: Outcome) -> list[str]:
    violations = [f"issued and called invalid: {what}" for what in outcome.history.bad_receipts]
    receipts: dict[str, str] = {}
    for delivery in outcome.history.deliveries:
        what = f"{delivery.id} by {delivery.server}"
        if delivery.receipt in receipts:
            other = receipts[delivery.receipt]
            violations.append(f"receipt twice: delivery {delivery.number} of {what} and of {other}")
        receipts[delivery.receipt] = what
    return violations
