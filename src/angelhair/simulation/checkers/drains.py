"""A1, A14: when the faults end, everything is settled in bounded time, and finished buckets really go."""

from angelhair.simulation.outcome import Outcome


def drains(outcome: Outcome) -> list[str]:
    history = outcome.history
    stuck = [f"not drained: {body}" for body in history.undrained]
    return stuck + [f"left over: {what}" for what in history.leftovers]
