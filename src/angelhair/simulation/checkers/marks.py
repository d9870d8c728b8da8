"""A8, R3, R14: marks only rise, keep their order, and pass nothing that is not finished. Sampled while it ran."""

from angelhair.simulation.outcome import Outcome


def marks(outcome: Outcome) -> list[str]:
    return list(outcome.history.mark_faults)
