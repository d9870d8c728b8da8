"""A seeded world that runs the engine unchanged: virtual time, simulated processes and clocks, a store with faults.

`World(seed)` is the door; `Nemesis` hurts its servers; `ask` carries requests between its processes.
"""

from angelhair.simulation.faults import NO_FAULTS, FaultPlan, Faults
from angelhair.simulation.nemesis import Nemesis
from angelhair.simulation.network import NoAnswer, ask
from angelhair.simulation.process import Process
from angelhair.simulation.scheduler import Crashed, ProcessCrashed, SimulatedPromise, SimulationFailure, Task
from angelhair.simulation.world import World

__all__ = [
    "NO_FAULTS",
    "Crashed",
    "FaultPlan",
    "Faults",
    "Nemesis",
    "NoAnswer",
    "Process",
    "ProcessCrashed",
    "SimulatedPromise",
    "SimulationFailure",
    "Task",
    "World",
    "ask",
]
