"""By the name of a kind, its verbs."""

from collections.abc import Mapping

from angelhair.engine.kinds.bucketed import Bucketed
from angelhair.engine.kinds.databag import Databag
from angelhair.engine.kinds.fifo import Fifo
from angelhair.engine.kinds.timeline import Timeline
from angelhair.engine.kinds.verbs import Verbs
from angelhair.model import BUCKETED, DATABAG, FIFO, TIMELINE

KINDS: Mapping[str, type[Verbs]] = {BUCKETED: Bucketed, FIFO: Fifo, TIMELINE: Timeline, DATABAG: Databag}
