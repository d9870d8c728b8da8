"""A3: an ack that was confirmed took effect, and one that was said not to have happened did not."""

from angelhair.simulation.history import CONFIRMED
from angelhair.simulation.outcome import Outcome


def true_acks(outcome: Outcome) -> list[str]:
    history = outcome.history
    answers: dict[str, list[bool]] = {}
    violations = []
    for ack in history.acks:
        answers.setdefault(ack.receipt, []).append(ack.denied)
        if ack.outcome == CONFIRMED and ack.receipt not in history.true_acks:
            violations.append(f"confirmed and never done: {ack.receipt} in {ack.queue} at {ack.ended_us} us")
    for receipt, denied in answers.items():
        # Another try with the same receipt, of which nothing was heard, may be the one that took effect.
        answered = len(denied) == history.asked_acks[receipt]
        if answered and all(denied) and receipt in history.true_acks:
            violations.append(f"denied and done: {receipt}")
    return violations
