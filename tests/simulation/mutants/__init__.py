"""Named ways to break the engine. Each must be caught, or shown to be covered by another rule, in `test_mutants.py`."""

from tests.simulation.mutants.controls import CONTROLS
from tests.simulation.mutants.databags import BAGS, RARE_BAGS
from tests.simulation.mutants.delays import DELAYS
from tests.simulation.mutants.deliveries import DELIVERIES, RARE_DELIVERIES
from tests.simulation.mutants.fifo import ORDERED
from tests.simulation.mutants.patching import Mutant
from tests.simulation.mutants.puts import PUTS, RUNS, SLEEPERS
from tests.simulation.mutants.queues import QUEUES, SEALED
from tests.simulation.mutants.ranks import RANKS
from tests.simulation.mutants.repairs import ADMISSIONS, REPAIRS
from tests.simulation.mutants.timelines import DUE
from tests.simulation.mutants.topics import SPREAD

MUTANTS = (*PUTS, *RUNS, *REPAIRS, *DELIVERIES, *DELAYS, *QUEUES, *ORDERED, *RANKS, *SPREAD, *DUE, *BAGS)
RARE = (*SLEEPERS, *ADMISSIONS, *RARE_DELIVERIES, *SEALED, *RARE_BAGS)
"""What seeds bring about too seldom: a directed attack catches each of these."""

__all__ = ["CONTROLS", "MUTANTS", "RARE", "Mutant"]
