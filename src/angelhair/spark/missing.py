"""What cannot be read any more, or was never there: which ids, and why. One wording for batches and streams."""

from __future__ import annotations

from angelhair.spark.planning import Run
from angelhair.spark.refusals import DataLost

LENIENT = "failOnDataLoss=false passes over what is not there"


def dropped(run: Run, purged: int) -> DataLost:
    """Ids of buckets that the engine has dropped. `purged`: the lane's purge mark. What is above was settled one by one
    or outlived the retention; which of the two went with it."""
    border = min(max(run.first, purged), run.end)
    reasons = []
    if border > run.first:
        reasons.append(
            f"{_ids(run._replace(end=border))} were dropped before they were read: the queue was purged up to id "
            f"{purged - 1}"
        )
    if run.end > border:
        reasons.append(
            f"{_ids(run._replace(first=border))} were dropped before they were read: acked, moved or expired, and the "
            "queue's history is over for them"
        )
    return DataLost(f"{'; '.join(reasons)} ({LENIENT})")


def dropped_epoch(block: int, epoch: int) -> DataLost:
    return DataLost(
        f"epoch {epoch} of block {block} was dropped before it was read: all of it was deleted, purged or expired, and "
        f"the databag's history is over for it; or the databag itself was deleted ({LENIENT})"
    )


def unarchived(run: Run) -> DataLost:
    return DataLost(f"{_ids(run)} were dropped before they came to the lake: was `archive` off? ({LENIENT})")


def never_written(run: Run) -> DataLost:
    return DataLost(
        f"{_ids(run)} were never written: the next id of the lane is {run.first}. Is this the store that they come "
        f"from? ({LENIENT})"
    )


def _ids(run: Run) -> str:
    return f"ids {run.first} to {run.end - 1} of lane {run.lane}"
