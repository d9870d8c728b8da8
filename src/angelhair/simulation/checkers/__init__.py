"""The checkers. Each is a function from a finished run to its violations, in words; none found is an empty list."""

from angelhair.simulation.checkers.ack_finality import ack_finality
from angelhair.simulation.checkers.dead_letters import dead_letters
from angelhair.simulation.checkers.dedup import dedup
from angelhair.simulation.checkers.drains import drains
from angelhair.simulation.checkers.group_order import group_order
from angelhair.simulation.checkers.incarnations import incarnations
from angelhair.simulation.checkers.marks import marks
from angelhair.simulation.checkers.one_winner import one_winner
from angelhair.simulation.checkers.run_order import run_order
from angelhair.simulation.checkers.total_queue import total_queue
from angelhair.simulation.checkers.true_acks import true_acks
from angelhair.simulation.checkers.turns import turns
from angelhair.simulation.checkers.unique_receipts import unique_receipts
from angelhair.simulation.checkers.visibility import visibility

CHECKERS = (
    total_queue, unique_receipts, one_winner, ack_finality, visibility, marks, drains, dedup, dead_letters,
    incarnations, true_acks, group_order, run_order, turns,
)

__all__ = ["CHECKERS"]
